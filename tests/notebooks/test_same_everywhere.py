"""One scenario notebook: the same outputs from an engine of its own and from several machines."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.conftest import Server
from tests.notebooks.execution import NOTEBOOKS, ROOT, execute, find_differences
from tests.support.dask_cluster import DaskCluster
from tests.support.nginx import NGINX, run_nginx
from tests.support.ports import free_port
from toolkit import Client
from toolkit.settings import Settings

(SCENARIO,) = [path for path in NOTEBOOKS if path.stem == "01_social_card"]
CLIENT_CELL = "cell-02"  # which says where the client asks
CONFIG = ROOT / "docs" / "deploy" / "nginx.conf"


@contextmanager
def serve_engines(*settings: Settings) -> Iterator[list[Server]]:
    """Serve engines until the block ends."""
    with ExitStack() as stack:
        servers = []
        for each in settings:
            server = Server(each)
            stack.callback(server.close)
            servers.append(server)
        yield servers


@contextmanager
def balance(servers: list[Server], folder: Path) -> Iterator[str]:
    """Have nginx pass requests on to several servers, by the configuration of the compose file."""
    port = free_port()
    config = CONFIG.read_text("utf-8")
    upstream = "server engine:8000 resolve max_fails=2 fail_timeout=5s;"
    resolver = "resolver 127.0.0.11 valid=5s;"  # of the containers; addresses need none
    assert upstream in config
    assert resolver in config
    listed = "\n".join(
        upstream.replace("engine:8000 resolve", f"127.0.0.1:{one.port}") for one in servers
    )
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


def test_by_a_server_on_postgresql(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a server on PostgreSQL, then the notebook's outputs are those of its own engine."""
    there = Settings(data_dir=tmp_path / "data", sandbox=True, database=postgres_url)
    with serve_engines(there) as (server,):
        assert run_scenario(server.url, tmp_path, monkeypatch) == []


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
def test_by_two_engines_with_all_that_they_share(
    tmp_path: Path,
    postgres_url: str,
    s3_url: str,
    s3_server: str,
    cluster: DaskCluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given two engines on PostgreSQL, S3 and Dask behind nginx, then its outputs are the same."""
    settings = [
        Settings(
            data_dir=tmp_path / name,
            sandbox=True,
            database=postgres_url,
            artifact_url=s3_url,
            artifact_endpoint_url=s3_server,
            dispatch=cluster.dispatch,
        )
        for name in ("one", "two")
    ]
    with serve_engines(*settings) as servers, balance(servers, tmp_path) as url:
        assert run_scenario(url, tmp_path, monkeypatch) == []
        asked = set((tmp_path / "asked").read_text().split())
    assert asked == {f"127.0.0.1:{server.port}" for server in servers}
