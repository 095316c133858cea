"""A proxy before PostgreSQL that drops notifications, as a connection pool does."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

NOTICE = b"A"
# Each response is then a message: a type, the length of the rest, and the rest.
PLAIN = "sslmode=disable&gssencmode=disable"


@contextmanager
def run_deaf_proxy(port: int) -> Iterator[int]:
    """Run a proxy before a server on a port of loopback; yields its own port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, port), daemon=True).start()
        yield listener.getsockname()[1]
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, port: int) -> None:
    with suppress(OSError):
        while True:
            near, _ = listener.accept()
            far = socket.create_connection(("127.0.0.1", port))
            for work, *sides in ((_pass_on, near, far), (_pass_back, far, near)):
                threading.Thread(target=work, args=sides, daemon=True).start()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError), source, sink:
        while data := source.recv(65_536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_RDWR)


def _pass_back(source: socket.socket, sink: socket.socket) -> None:
    stream: BinaryIO = source.makefile("rb")
    with suppress(OSError):
        while head := stream.read(5):
            payload = stream.read(int.from_bytes(head[1:], "big") - 4)
            if not head.startswith(NOTICE):
                sink.sendall(head + payload)
