"""One scenario notebook: the same outputs from an engine of its own and from several machines."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.conftest import Server
from tests.crash.processes import process
from tests.notebooks.execution import NOTEBOOKS, ROOT, execute, find_differences
from tests.support.dask_cluster import DaskCluster
from tests.support.nginx import NGINX, run_nginx
from tests.support.ports import free_port
from toolkit import Client
from toolkit.settings import Settings

if TYPE_CHECKING:
    from distributed import Worker

# Servers and kernels.
pytestmark = pytest.mark.usefixtures("fork_programs")
(SCENARIO,) = [path for path in NOTEBOOKS if path.stem == "01_social_card"]
CLIENT_CELL = "cell-02"  # which says where the client asks
CONFIG = ROOT / "docs" / "deploy" / "nginx.conf"


@contextmanager
def serve_engines(folder: Path, count: int, settings: dict[str, str]) -> Iterator[list[int]]:
    """Serve engines until the block ends, each in a process of its own; gives their ports."""
    with ExitStack() as stack:
        ports = []
        for number in range(count):
            port = free_port()
            command = ("toolkit", "serve", "--sandbox", "--port", str(port), "--data-dir")
            url = f"http://127.0.0.1:{port}/v1/health"
            stack.enter_context(
                process(*command, str(folder / f"engine{number}"), env=settings, ready=url)
            )
            ports.append(port)
        yield ports


@contextmanager
def balance(ports: Sequence[int], folder: Path) -> Iterator[str]:
    """Have nginx pass requests on to several servers, by the configuration of the compose file."""
    port = free_port()
    config = CONFIG.read_text("utf-8")
    upstream = "server engine:8000 resolve max_fails=2 fail_timeout=5s;"
    resolver = "resolver 127.0.0.11 valid=5s;"  # of the containers; addresses need none
    assert upstream in config
    assert resolver in config
    listed = "\n".join(upstream.replace("engine:8000 resolve", f"127.0.0.1:{one}") for one in ports)
    config = config.replace(upstream, listed).replace(resolver, "")
    config = config.replace("listen 80;", f"listen 127.0.0.1:{port};")
    url = f"http://127.0.0.1:{port}"
    with (
        httpx.Client(base_url=url, trust_env=False) as http,
        run_nginx(config, folder, http),
    ):
        yield url


def run_scenario(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run the notebook as a new account of a server; return what differs from the file."""
    with Client(url) as nobody:
        key = nobody.account.create("ada@example.org").api_key
    with Client(url, key) as client:
        for provider in client.providers.list():
            variable = provider.record.conventional_variable
            client.connections.create(provider.id, "environment", variable)
    monkeypatch.setenv("TOOLKIT_API_KEY", key)
    made = execute(SCENARIO, folder, {"base_url": url})
    found = find_differences(SCENARIO, made)
    return [each for each in found if not each.startswith(f"{CLIENT_CELL}:")]


def list_done_steps(cluster: DaskCluster) -> dict[str, int]:
    """Tell by Dask itself how many steps each worker of a cluster has done so far."""
    from distributed import Client as DaskClient

    def count(dask_worker: "Worker") -> int:
        return int(dask_worker.state.executed_count)

    with DaskClient(cluster.address, set_as_default=False) as dask:
        counts: dict[str, int] = dask.run(count)
        return counts


def test_by_a_server_on_postgresql(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a server on PostgreSQL, then the notebook's outputs are those of its own engine."""
    there = Settings(data_dir=tmp_path / "data", sandbox=True, database=postgres_url)
    server = Server(there)
    try:
        assert run_scenario(server.url, tmp_path, monkeypatch) == []
    finally:
        server.close()


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
def test_by_two_engines_with_all_that_they_share(
    tmp_path: Path,
    postgres_url: str,
    s3_url: str,
    s3_server: str,
    cluster: DaskCluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given two engines on PostgreSQL, S3 and Dask behind nginx, then its outputs are the same.

    Both engines were asked, the bytes that it saved are objects in the bucket and in no engine's
    folder, and the cluster's workers did steps.
    """
    pytest.importorskip("distributed")
    settings = {
        "TOOLKIT_DATABASE": postgres_url,
        "TOOLKIT_ARTIFACT_URL": s3_url,
        "TOOLKIT_ARTIFACT_ENDPOINT_URL": s3_server,
        "TOOLKIT_DISPATCH": cluster.dispatch,
    }
    done_before = list_done_steps(cluster)
    with serve_engines(tmp_path, 2, settings) as ports, balance(ports, tmp_path) as url:
        assert run_scenario(url, tmp_path, monkeypatch) == []
        asked = set((tmp_path / "asked").read_text().split())
    assert asked == {f"127.0.0.1:{port}" for port in ports}
    saved = [path for path in (tmp_path / "demo-output").iterdir() if path.suffix != ".json"]
    assert {path.suffix for path in saved} == {".png", ".mp3"}
    from s3fs import S3FileSystem  # which is an extra's

    bucket = S3FileSystem(endpoint_url=s3_server, skip_instance_cache=True)
    for path in saved:
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        assert bucket.cat_file(f"{s3_url}/{sha256[:2]}/{sha256[2:]}") == path.read_bytes()
        assert not list(tmp_path.glob(f"engine*/**/*{sha256[2:]}"))
    done = list_done_steps(cluster)
    assert sum(done.values()) > sum(done_before.values())
