"""The addresses of a batch's engine: the address it listens on, and that for workers."""

import ipaddress
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from toolkit.batch.remote.executors import EngineChoice
from toolkit.contract.errors import ErrorCode, RequestError

LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class EngineHost:
    """The address that an engine listens on, and the address that workers receive.

    Attributes:
        listen_address: address to listen on, which may be the wildcard address of all networks.
        worker_address: address for workers, which is never the wildcard address.
    """

    listen_address: str
    worker_address: str

    @property
    def is_loopback(self) -> bool:
        """Return True if only this machine can reach it."""
        return _is_loopback(self.listen_address)


def choose_engine_host(choice: EngineChoice) -> EngineHost:
    """Choose the addresses of an engine of this process, without sending anything.

    Raises:
        RequestError: `INVALID_REQUEST` if workers would not reach it.
    """
    host = choice.host or LOOPBACK
    route = None if choice.scheduler is None else _find_route(choice.scheduler)
    if _is_unspecified(host):
        if route is None:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"Workers cannot reach an engine at {host}, which is the address of all networks:"
                " give this machine's own address by --host (`host=`), or a server by --base-url.",
            )
        return EngineHost(host, route.local_address)
    if route is None or not _is_loopback(host) or _is_loopback(route.scheduler_address):
        return EngineHost(host, host)
    if choice.host is None or route.local_address != route.scheduler_address:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"The workers of the Dask scheduler at {choice.scheduler} cannot reach an engine on"
            f" {host}: give this machine's address by --host {route.local_address} (`host=`), or a"
            " server by --base-url.",
        )
    return EngineHost(host, host)


@dataclass(frozen=True, slots=True)
class _Route:
    """The addresses of a scheduler, and of this machine as the scheduler sees it."""

    scheduler_address: str
    local_address: str


def _find_route(scheduler: str) -> _Route | None:
    """Find the route to a scheduler. Returns None if its name or the route is unknown."""
    host, _, port = scheduler.rpartition("://")[2].rpartition(":")
    with suppress(OSError, ValueError):
        addresses = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)
        family, kind, _, _, address = addresses[0]
        with socket.socket(family, kind) as probe:
            probe.connect(address)  # of UDP: it only looks for the way
            return _Route(str(address[0]), str(probe.getsockname()[0]))
    return None


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _is_unspecified(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_unspecified
    return False
