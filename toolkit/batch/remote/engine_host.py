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
        listens: address to listen on, which may be the wildcard address of all networks.
        told: address for workers, which is never the wildcard address.
    """

    listens: str
    told: str

    @property
    def is_loopback(self) -> bool:
        """Return True if only this machine can reach it."""
        return _is_loopback(self.listens)


def choose_engine_host(choice: EngineChoice) -> EngineHost:
    """Choose the addresses of an engine of this process, without sending anything.

    Raises:
        RequestError: `INVALID_REQUEST` if workers would not reach it.
    """
    listens = choice.host or LOOPBACK
    route = None if choice.scheduler is None else _find_route(choice.scheduler)
    if _is_unspecified(listens):
        if route is None:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"{listens} is no address by which workers reach the engine here: name this"
                " machine's own by --host (`host=`), or a server by --base-url.",
            )
        return EngineHost(listens, route.here)
    if route is None or not _is_loopback(listens) or _is_loopback(route.there):
        return EngineHost(listens, listens)
    if choice.host is None or route.here != route.there:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"The workers of the Dask scheduler at {choice.scheduler} do not reach an engine on"
            f" {listens}: name this machine's address by --host {route.here} (`host=`), where it"
            " then listens, or a server by --base-url.",
        )
    return EngineHost(listens, listens)


@dataclass(frozen=True, slots=True)
class _Route:
    """The addresses of a scheduler, and of this machine as the scheduler sees it."""

    there: str
    here: str


def _find_route(scheduler: str) -> _Route | None:
    """Find the route to a scheduler. Returns None if its name or the route is unknown."""
    host, _, port = scheduler.rpartition("://")[2].rpartition(":")
    with suppress(OSError, ValueError):
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)
        family, kind, _, _, address = found[0]
        with socket.socket(family, kind) as asking:
            asking.connect(address)  # of UDP: it only looks for the way
            return _Route(str(address[0]), str(asking.getsockname()[0]))
    return None


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _is_unspecified(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_unspecified
    return False
