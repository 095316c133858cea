"""The socket of a server, bound before anything is opened for it."""

import errno
import os
import socket
import time

from toolkit.contract.errors import ErrorCode, ServiceError

# A process that is killed while it starts a child leaves its sockets to that child, until the
# child runs its own program: some ms, more where all cores are busy.
PATIENCE_S = 0.5
PAUSE_S = 0.01


def bind_socket(
    host: str,
    port: int,
    *,
    is_shared: bool = False,
    purpose: str = "",
    patience_s: float = PATIENCE_S,
) -> socket.socket:
    """Bind an address; nothing listens on it yet.

    If it is taken, this retries for a moment, and blocks meanwhile. A server that starts as soon as
    its predecessor was killed therefore gets its address.

    Args:
        host: host name or address.
        port: port; 0 picks any free port.
        is_shared: whether other processes of the same user may bind it, too; the system then
            distributes connections among the listeners.
        purpose: purpose of the address, for the message of an error.
        patience_s: seconds to retry while the address is taken.

    Raises:
        ServiceError: `UNAVAILABLE` if it is taken or cannot be bound.

    Example:
        >>> with bind_socket("127.0.0.1", 0) as listener:
        ...     listener.getsockname()[0]
        '127.0.0.1'
    """
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return _bind_once(host, port, is_shared=is_shared)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > deadline:
                suffix = f" for {purpose}" if purpose else ""
                raise ServiceError(
                    ErrorCode.UNAVAILABLE,
                    f"The server cannot listen on {host}:{port}{suffix}: {error.strerror}.",
                ) from error
        time.sleep(PAUSE_S)


def _bind_once(host: str, port: int, *, is_shared: bool) -> socket.socket:
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        # asyncio only does so for sockets that name TCP as their protocol, unlike this socket.
        # Without it the body of a response waits for its head to be acknowledged.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    return listener
