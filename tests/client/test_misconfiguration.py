"""Mistakes in a client's configuration raise errors of one line, with advice."""

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Server
from toolkit import AsyncClient, Client, ErrorCode, RequestError, ServiceError, ToolkitError

KEY = "sk_live_" + "c4nary" * 7


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLKIT_BASE_URL", raising=False)
    monkeypatch.delenv("TOOLKIT_API_KEY", raising=False)
    monkeypatch.setenv("TOOLKIT_MAX_WAIT_S", "0")


def get_message(error: ToolkitError) -> str:
    """Return the message of an error, which is one line without a key."""
    text = str(error)
    assert len(text.splitlines()) == 1
    assert "c4nary" not in text
    assert "Retry-After" not in text
    return text


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("address", [None, "", "  "])
def test_rejects_a_missing_address(kind: type[Client], address: str | None) -> None:
    """Given no address, then the error names the local engine and the options of an address."""
    with pytest.raises(ServiceError) as refused:
        kind(address)
    for way in ("Client.local()", "base_url", "TOOLKIT_BASE_URL"):
        assert way in get_message(refused.value)


@pytest.mark.parametrize(
    "address", ["127.0.0.1:8000", "localhost", "./.toolkit", "ftp://a.test", "http://", KEY]
)
def test_rejects_invalid_addresses(address: str) -> None:
    """Given a host alone, a folder or a key as the address, then an error is raised at once."""
    with pytest.raises(RequestError) as refused:
        Client(address, KEY)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert "http://" in get_message(refused.value)


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("sk_live_c4nary\x00", "copy it again"),
        ("sk_live_c4nary\u00a0b", "not ASCII"),
        ("sk_live_\r\nc4nary", "a line end"),
    ],
)
def test_rejects_invalid_keys(key: str, says: str) -> None:
    """Given a key with characters that no header takes, then the error does not show it."""
    with pytest.raises(RequestError) as refused:
        Client("http://127.0.0.1:8000", key)
    assert refused.value.code is ErrorCode.UNAUTHENTICATED
    assert says in get_message(refused.value)


@pytest.mark.parametrize("tail", ["", "/", "/v1", "/v1/"])
def test_accepts_addresses_with_a_version(server: Server, tail: str) -> None:
    """Given an address with a slash or `/v1` at its end, then it is the same address."""
    with Client(f" {server.url}{tail} ") as client:
        assert client.health().status == "ok"
        assert repr(client) == f"<Client {server.url}/v1>"


def test_strips_the_line_end_of_a_key(server: Server) -> None:
    """Given a key with a line end, as in a file, then the client strips it."""
    with Client(server.url, f"{server.sign_up()}\n") as client:
        assert len(client.capabilities.list())


@pytest.mark.parametrize(
    ("key", "ways"), [(None, ("api_key", "TOOLKIT_API_KEY", "account.create")), (KEY, ())]
)
def test_reports_missing_and_unknown_keys(
    server: Server, key: str | None, ways: tuple[str, ...]
) -> None:
    """Given no key, then the error names the options and the call that creates a key."""
    with Client(server.url, key) as client, pytest.raises(RequestError) as refused:
        client.runs.list()
    assert refused.value.code is ErrorCode.UNAUTHENTICATED
    message = get_message(refused.value)
    assert [way for way in ways if way not in message] == []


def test_reports_a_closed_port() -> None:
    """Given a port without a server, then the error names it."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        port = holder.getsockname()[1]
        client = Client(f"http://127.0.0.1:{port}", KEY)
        with client, pytest.raises(ServiceError) as refused:
            client.account.create("ada@example.org")
    assert f"127.0.0.1:{port}" in get_message(refused.value)


def test_suggests_http_for_a_server_without_tls(server: Server) -> None:
    """Given an https address of an http server, then the error suggests http."""
    client = Client(server.url.replace("http", "https"), KEY)
    with client, pytest.raises(ServiceError) as refused:
        client.account.create("ada@example.org")
    assert "try http://" in get_message(refused.value)


@pytest.fixture
def answering() -> Iterator[Callable[[bytes], str]]:
    """Starts a server that sends the same bytes to each request; returns its address."""
    listener = socket.create_server(("127.0.0.1", 0))

    def start(answer: bytes) -> str:
        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    listener.close()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>", "answered 200"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "answered 200"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "answered 404"),
        (
            b"HTTP/1.1 301 Moved\r\nLocation: https://a.test/v1\r\nContent-Length: 0\r\n\r\n",
            "points to https://a.test",
        ),
        (b"\x15\x03\x01\x00\x02\x02\x46", "does it use http://"),  # the alert of a TLS server
    ],
)
def test_reports_responses_of_another_service(
    answering: Callable[[bytes], str], answer: bytes, says: str
) -> None:
    """Given the address of another service, then the error has its status or location."""
    with Client(answering(answer), KEY) as client, pytest.raises(ServiceError) as refused:
        client.account.create("ada@example.org")
    assert says in get_message(refused.value)


def test_reports_a_body_too_large_for_a_proxy(answering: Callable[[bytes], str]) -> None:
    """Given a proxy that rejects a large body, then the error is one of the request."""
    page = b"<html><h1>413 Request Entity Too Large</h1></html>"
    head = f"HTTP/1.1 413 Request Entity Too Large\r\nContent-Length: {len(page)}\r\n\r\n"
    address = answering(head.encode() + page)
    with Client(address, KEY) as client, pytest.raises(RequestError) as refused:
        client.artifacts.upload(b"leaves")
    assert refused.value.code is ErrorCode.PAYLOAD_TOO_LARGE
    assert address in get_message(refused.value)
    assert "base_url" not in get_message(refused.value)


def test_repr_names_the_data_directory(tmp_path: Path) -> None:
    """Given a local engine, then the client's repr has its folder and mode."""
    with Client.local(tmp_path / "play", sandbox=True) as client:
        assert repr(client) == f"<Client in the sandbox, data in {tmp_path / 'play'}>"
    with Client.local(tmp_path / "work") as client:
        assert repr(client) == f"<Client live, data in {tmp_path / 'work'}>"
