"""The sandbox on a real socket, for the vendors' official SDKs: the proof that it is honest."""

import gc
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn

from toolkit.sandbox import create_app


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the SDKs leave their sockets and clients to the garbage collector; we do not."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            ignored = "ignore::pytest.PytestUnraisableExceptionWarning"
            item.add_marker(pytest.mark.filterwarnings(ignored))


@pytest.fixture(scope="module", autouse=True)
def _collect_leftovers() -> Iterator[None]:
    """Collect what an SDK leaves behind here, and not in somebody else's test."""
    yield
    gc.collect()


@pytest.fixture(scope="session")
def cloud_url() -> Iterator[str]:
    """The address of a vendor cloud that runs for all of these tests."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(create_app(seed=1), log_level="warning", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(timeout=5)


@pytest.fixture
def order(cloud_url: str) -> Iterator["Order"]:
    """Orders faults, and takes back what was not used up."""
    yield Order(cloud_url)
    httpx.delete(f"{cloud_url}/_sandbox/faults")


class Order:
    """Faults for the next calls, by the cloud's own door."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, vendor: str, **fault: object) -> None:
        """Order a fault for the next call."""
        answer = httpx.post(f"{self._url}/_sandbox/faults", json={"vendor": vendor, **fault})
        assert answer.status_code == 201, answer.text
