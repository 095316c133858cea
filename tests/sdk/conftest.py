"""The sandbox on a real socket, for the vendors' official SDKs."""

import gc
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette

from toolkit.assembly import list_compatible_vendors
from toolkit.engine import Registry
from toolkit.sandbox import create_app

Order = Callable[..., None]
Calls = Callable[..., list[dict[str, Any]]]


def skip_without(*names: str) -> pytest.MarkDecorator:
    """Skip tests without an SDK; no SDK is imported, because some take seconds."""
    missing = [name for name in names if not _is_installed(name)]
    return pytest.mark.skipif(bool(missing), reason="needs the extra `sdk`")


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # not even its parent package
        return False


def poll(get: Callable[[], Any], is_ended: Callable[[Any], bool]) -> Any:
    """Poll a batch until it has ended."""
    for _ in range(5_000):
        if is_ended(batch := get()):
            return batch
    raise AssertionError("the batch never ends")


@dataclass(frozen=True)
class ReceivedRequest:
    """A request as the cloud received it from the socket.

    Attributes:
        target: path and query, in the spelling of the client.
        headers: headers with names in lower case.
    """

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class Cloud:
    """A vendor cloud that keeps a copy of each request that comes over its socket.

    Attributes:
        received: requests so far.
        url: address of the cloud, while it is served.
    """

    def __init__(self, app: Starlette) -> None:
        self._app = app
        self.received: list[ReceivedRequest] = []
        self.url = ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Have the app answer a request, and keep a copy once all of it was read."""
        body = bytearray()

        async def receive_part() -> Any:
            part = await receive()
            body.extend(part.get("body", b""))
            if part["type"] == "http.request" and not part.get("more_body"):
                query = scope["query_string"].decode()
                target = scope["raw_path"].decode() + (f"?{query}" if query else "")
                headers = {name.decode(): value.decode() for name, value in scope["headers"]}
                self.received.append(ReceivedRequest(scope["method"], target, headers, bytes(body)))
            return part

        await self._app(scope, receive_part, send)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignore warnings about sockets and clients that the SDKs leave open."""
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            ignored = "ignore::pytest.PytestUnraisableExceptionWarning"
            item.add_marker(pytest.mark.filterwarnings(ignored))


@pytest.fixture(scope="module", autouse=True)
def _collect_leftovers() -> Iterator[None]:
    """Collect the objects that an SDK leaves behind before the next module starts."""
    yield
    gc.collect()


@pytest.fixture(scope="session")
def cloud() -> Iterator[Cloud]:
    """A cloud of all vendors, built-in and installed, for all tests of this folder."""
    compatible = list_compatible_vendors(Registry.load())
    served = Cloud(create_app(seed=1, compatible=compatible))
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(served, log_level="warning", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    served.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    yield served
    server.should_exit = True
    thread.join(timeout=5)


@pytest.fixture
def cloud_url(cloud: Cloud) -> str:
    """The address of the cloud."""
    return cloud.url


@pytest.fixture
def order(cloud_url: str) -> Iterator[Order]:
    """Orders a fault for the next call, and removes unused faults after the test."""
    url = f"{cloud_url}/_sandbox/faults"

    def order_fault(vendor: str, **fault: object) -> None:
        answer = httpx.post(url, json={"vendor": vendor, **fault})
        assert answer.status_code == 201, answer.text

    yield order_fault
    httpx.delete(url)


@pytest.fixture
def logged(cloud_url: str) -> Calls:
    """Lists the logged calls with a batch's id, without the calls before the test."""
    url = f"{cloud_url}/_sandbox/calls"
    httpx.delete(url)

    def list_calls(batch_id: str, *, are_items: bool) -> list[dict[str, Any]]:
        calls = httpx.get(url).json()["calls"]
        return [
            call
            for call in calls
            if call["batch_id"] == batch_id and bool(call["custom_id"]) is are_items
        ]

    return list_calls
