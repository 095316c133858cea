"""A Dask cluster of processes on loopback, in a separate process: `python -m`, or `DaskCluster`.

The tests are its remote client. It runs until its standard input closes, and may be killed.
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
        port: port of its scheduler.
        workers: number of workers.
        certificates: folder of certificates, made by `write_certificates`; None disables
            encryption.
    """

    def __init__(
        self, port: int | None = None, workers: int = WORKERS, certificates: Path | None = None
    ) -> None:
        self.port = port or free_port()
        folders = [] if certificates is None else [str(certificates)]
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.support.dask_cluster",
                str(self.port),
                str(workers),
                *folders,
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
        """Return its address, in the form of the setting."""
        return f"dask://127.0.0.1:{self.port}"

    @property
    def address(self) -> str:
        """Return its address, in Dask's form."""
        return f"tcp://127.0.0.1:{self.port}"

    def wait_until_ready(self) -> Self:
        """Wait until its workers are ready."""
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
    """Return the variables of this process without settings, with the path of the tests."""
    variables = {name: text for name, text in os.environ.items() if not name.startswith("TOOLKIT_")}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {**variables, "PYTHONPATH": path}


@contextlib.contextmanager
def start_worker(
    address: str, *options: str, environment: Mapping[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """Start one more worker of a cluster, as a single process."""
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
    """Make an authority and a certificate signed by it; return the paths by setting name."""
    from distributed import Security

    security = Security.temporary()
    texts = {"ca_file": security.tls_ca_file, "cert_file": security.tls_client_cert}
    folder.mkdir(exist_ok=True)
    for name, text in {**texts, "key_file": security.tls_client_key}.items():
        (folder / name).touch(0o600)
        (folder / name).write_text(text)
    return {name: folder / name for name in (*texts, "key_file")}


def load_security(folder: Path) -> "Security":
    """Load the files of `write_certificates`, for all processes of a cluster."""
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
