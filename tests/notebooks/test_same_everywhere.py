"""A scenario notebook has the same outputs with its own engine and with several machines."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.crash.processes import process
from tests.notebooks.execution import NOTEBOOKS, ROOT, execute, find_differences
from tests.support.dask_cluster import DaskCluster
from tests.support.nginx import NGINX, run_nginx
from tests.support.ports import free_port
from toolkit import Client

if TYPE_CHECKING:
    from distributed import Worker

# Servers and kernels.
pytestmark = pytest.mark.usefixtures("fork_programs")
(SCENARIO,) = [path for path in NOTEBOOKS if path.stem == "01_social_card"]
CLIENT_CELL = "cell-02"  # it shows the address of the client
CONFIG = ROOT / "docs" / "deploy" / "nginx.conf"


@contextmanager
def serve_engines(folder: Path, count: int, settings: dict[str, str]) -> Iterator[list[int]]:
    """Serve engines until the block ends, each in a process of its own; yield their ports."""
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
    """Run nginx in front of several servers, with the configuration of the compose file."""
    port = free_port()
    config = CONFIG.read_text("utf-8")
    upstream = "server engine:8000 resolve max_fails=2 fail_timeout=5s;"
    resolver = "resolver 127.0.0.11 valid=5s;"  # only names of containers need it
    assert upstream in config
    assert resolver in config
    servers = (upstream.replace("engine:8000 resolve", f"127.0.0.1:{engine}") for engine in ports)
    config = config.replace(upstream, "\n".join(servers)).replace(resolver, "")
    config = config.replace("listen 80;", f"listen 127.0.0.1:{port};")
    url = f"http://127.0.0.1:{port}"
    with (
        httpx.Client(base_url=url, trust_env=False) as http,
        run_nginx(config, folder, http),
    ):
        yield url


def run_scenario(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run the notebook as a new account of a server; return the differences from the file."""
    with Client(url) as nobody:
        key = nobody.account.create("ada@example.org").api_key
    with Client(url, key) as client:
        for provider in client.providers.list():
            variable = provider.record.conventional_variable
            client.connections.create(provider.id, "environment", variable)
    monkeypatch.setenv("TOOLKIT_API_KEY", key)
    differences = find_differences(SCENARIO, execute(SCENARIO, folder, {"base_url": url}))
    return [text for text in differences if not text.startswith(f"{CLIENT_CELL}:")]


def count_steps(cluster: DaskCluster) -> int:
    """Return by Dask itself how many steps the workers of a cluster have executed so far."""
    from distributed import Client as DaskClient

    def count(dask_worker: "Worker") -> int:
        return int(dask_worker.state.executed_count)

    with DaskClient(cluster.address, set_as_default=False) as dask:
        return sum(dask.run(count).values())


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
def test_two_engines_behind_a_proxy_give_the_same_outputs(
    tmp_path: Path,
    postgres_url: str,
    s3_url: str,
    s3_server: str,
    cluster: DaskCluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given two engines on PostgreSQL, S3 and Dask behind nginx, then the outputs are the same.

    Both engines got requests, the saved bytes are objects in the bucket and in no engine's folder,
    and the workers of the cluster executed steps.
    """
    pytest.importorskip("distributed")
    settings = {
        "TOOLKIT_DATABASE": postgres_url,
        "TOOLKIT_ARTIFACT_URL": s3_url,
        "TOOLKIT_ARTIFACT_ENDPOINT_URL": s3_server,
        "TOOLKIT_DISPATCH": cluster.dispatch,
    }
    steps_before = count_steps(cluster)
    with serve_engines(tmp_path, 2, settings) as ports, balance(ports, tmp_path) as url:
        assert run_scenario(url, tmp_path, monkeypatch) == []
        engines = set((tmp_path / "asked").read_text().split())
    assert engines == {f"127.0.0.1:{port}" for port in ports}
    saved = [path for path in (tmp_path / "demo-output").iterdir() if path.suffix != ".json"]
    assert {path.suffix for path in saved} == {".png", ".mp3"}
    from s3fs import S3FileSystem  # part of an extra

    bucket = S3FileSystem(endpoint_url=s3_server, skip_instance_cache=True)
    for path in saved:
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        assert bucket.cat_file(f"{s3_url}/{sha256[:2]}/{sha256[2:]}") == path.read_bytes()
        assert not list(tmp_path.glob(f"engine*/**/*{sha256[2:]}"))
    assert count_steps(cluster) > steps_before
