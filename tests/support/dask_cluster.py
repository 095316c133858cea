"""A Dask cluster of processes on loopback, in a process of its own: `python -m`, or `DaskCluster`.

The tests are its remote client. It lives until its standard input closes, and may be killed.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from tests.support.ports import free_port

if TYPE_CHECKING:
    from distributed import Security

ROOT = Path(__file__).parents[2]
WORKERS = 2


class DaskCluster:
    """A cluster with two worker processes, of one thread each.

    Args:
        port: of its scheduler.
        workers: how many there are.
        certificates: a folder of them, as `write_certificates` makes it; none to encrypt nothing.
    """

    def __init__(
        self, port: int | None = None, workers: int = WORKERS, certificates: Path | None = None
    ) -> None:
        self.port = port or free_port()
        more = [] if certificates is None else [str(certificates)]
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.support.dask_cluster",
                str(self.port),
                str(workers),
                *more,
            ],
            cwd=ROOT,
            env=clean_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def dispatch(self) -> str:
        """Its address, as the setting says it."""
        return f"dask://127.0.0.1:{self.port}"

    @property
    def address(self) -> str:
        """Its address, as Dask says it."""
        return f"tcp://127.0.0.1:{self.port}"

    def wait_until_ready(self) -> Self:
        """Wait until its workers are there."""
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"
        return self

    def kill(self) -> None:
        """Kill the scheduler and all workers at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def __enter__(self) -> Self:
        return self.wait_until_ready()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()


def clean_environment() -> dict[str, str]:
    """The variables of this process without settings, and with what leads to the tests' modules."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("TOOLKIT_")}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {**kept, "PYTHONPATH": path}


@contextlib.contextmanager
def start_worker(
    address: str, *options: str, environment: Mapping[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """Start one more worker of a cluster, which is this very process."""
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny"]
    process = subprocess.Popen(
        [*command, "--no-dashboard", "--nthreads", "1", "--host", "127.0.0.1", *options],
        cwd=ROOT,
        env={**clean_environment(), **(environment or {})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def write_certificates(folder: Path) -> dict[str, Path]:
    """Make an authority and one certificate by it; return the paths, as the setting names them."""
    from distributed import Security

    made = Security.temporary()
    texts = {"ca_file": made.tls_ca_file, "cert_file": made.tls_client_cert}
    folder.mkdir(exist_ok=True)
    for name, text in {**texts, "key_file": made.tls_client_key}.items():
        (folder / name).touch(0o600)
        (folder / name).write_text(text)
    return {name: folder / name for name in (*texts, "key_file")}


def load_security(folder: Path) -> "Security":
    """Load what `write_certificates` made, for all processes of a cluster."""
    from distributed import Security

    cert, key = str(folder / "cert_file"), str(folder / "key_file")
    roles = ("client", "scheduler", "worker")
    return Security(
        tls_ca_file=str(folder / "ca_file"),
        require_encryption=True,
        **{f"tls_{role}_cert": cert for role in roles},
        **{f"tls_{role}_key": key for role in roles},
    )


def main() -> None:
    """Run a cluster until standard input closes."""
    from distributed import LocalCluster

    port, workers, *folders = int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]
    security = load_security(Path(folders[0])) if folders else None
    with LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        scheduler_port=port,
        dashboard_address=None,
        security=security,
        protocol="tls" if security else None,
    ):
        print("ready", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
