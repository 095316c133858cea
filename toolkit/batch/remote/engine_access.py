"""The engine that all notebooks of a batch use, on any machine: its address and a key."""

import asyncio
import ipaddress
import math
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from toolkit.batch.remote.executors import EngineChoice
from toolkit.client import Client
from toolkit.contract.account import MAX_OVERLAP_S
from toolkit.contract.choices import Scope
from toolkit.contract.errors import ErrorCode, RequestError, ServiceError, ToolkitError
from toolkit.engine import Engine
from toolkit.local import start_engine
from toolkit.profiles.resolution import API_KEY_VARIABLE, BASE_URL_VARIABLE
from toolkit.settings import Settings

LOOPBACK: Final = "127.0.0.1"
STOP_TIMEOUT_S = 10.0
KEY_NAME = "toolkit batch"
LIFETIME_S = MAX_OVERLAP_S  # seconds; a rotated key may live no longer
SCOPES: tuple[Scope, ...] = ("work",)  # no connections, keys, lists or rented machines
Access = Callable[[], Mapping[str, str]]  # the variables by which notebooks ask the engine


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
        """Return True if only this machine can reach the engine."""
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
        return EngineHost(host, route[1])
    if route is None or not _is_loopback(host) or _is_loopback(route[0]):
        return EngineHost(host, host)
    scheduler_address, local_address = route
    if choice.host is None or local_address != scheduler_address:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"The workers of the Dask scheduler at {choice.scheduler} cannot reach an engine on"
            f" {host}: give this machine's address by --host {local_address} (`host=`), or a"
            " server by --base-url.",
        )
    return EngineHost(host, host)


def _find_route(scheduler: str) -> tuple[str, str] | None:
    """Find the addresses of a scheduler, and of this machine as the scheduler sees it.

    Returns None if the scheduler's name or the route is unknown.
    """
    host, _, port = scheduler.rpartition("://")[2].rpartition(":")
    with suppress(OSError, ValueError):
        addresses = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)
        family, kind, _, _, address = addresses[0]
        with socket.socket(family, kind) as probe:
            probe.connect(address)  # of UDP: it only looks for the way
            return str(address[0]), str(probe.getsockname()[0])
    return None


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _is_unspecified(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_unspecified
    return False


@contextmanager
def open_access(choice: EngineChoice, host: EngineHost | None) -> Iterator[Access]:
    """Open the engine of a batch, and yield a function that returns the notebooks' variables.

    The notebooks get a key of their own. It asks for work and reads its results, spends no more
    than the budget of the batch, and ends with the batch.

    Args:
        host: addresses of the engine, if it is an engine of this process.

    Raises:
        ServiceError: `UNAVAILABLE` if the engine cannot be opened, served or reached.
    """
    if host is not None:
        with _serve_own(choice, host) as (url, key):
            variables = {BASE_URL_VARIABLE: url, API_KEY_VARIABLE: key}
            yield lambda: variables
        return
    with Client(choice.base_url) as client:
        keys = LentKeys(client, choice.max_cost_usd)
        try:
            url = client.access.base_url
            keys.get()  # so that a missing key is reported before any notebook runs
            yield lambda: {BASE_URL_VARIABLE: url, API_KEY_VARIABLE: keys.get()}
        finally:
            keys.take_back()


class LentKeys:
    """The keys that a server lends to the notebooks of a batch.

    Each key expires after seven days, in case no process is left to revoke it. Notebooks of a batch
    that takes longer get later keys, which share the budget of the first.

    Args:
        client: a client whose key may create keys.
    """

    def __init__(self, client: Client, max_cost_usd: float) -> None:
        self._client = client
        self._max_cost_usd = max_cost_usd
        self._ids: list[str] = []
        self._key = ""
        self._renewed_at = -math.inf

    def get(self) -> str:
        """Return a key that stays valid for at least three and a half days."""
        if time.monotonic() - self._renewed_at > LIFETIME_S / 2:
            self._lend()
            self._renewed_at = time.monotonic()
        return self._key

    def _lend(self) -> None:
        keys = self._client.api_keys
        if self._ids:
            key = keys.rotate(self._ids[-1], overlap_s=LIFETIME_S)
        else:
            key = keys.create(
                name=KEY_NAME,
                scopes=SCOPES,
                max_cost_usd=self._max_cost_usd,
                expires_in_s=LIFETIME_S,
            )
        self._ids.append(key.id)
        self._key = key.api_key

    def take_back(self) -> None:
        """Revoke all API keys that were made for workers; errors of the server are ignored."""
        for key_id in self._ids:
            with suppress(ToolkitError):  # a server that is away by now
                self._client.api_keys.delete(key_id)


@contextmanager
def _serve_own(choice: EngineChoice, host: EngineHost) -> Iterator[tuple[str, str]]:
    """Serve an engine of this process; yield its address, and a key that ends with the process."""
    if find_spec("uvicorn") is None:
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            "Workers reach the engine over HTTP, which needs an extra: pip install"
            " 'capability-toolkit[server]'.",
        )
    from toolkit.server.listening import bind_socket
    from toolkit.server.serve import serve_beside

    listener = bind_socket(host.listen_address, 0)
    port = listener.getsockname()[1]
    url = f"http://{_quote_host(host.worker_address)}:{port}"
    if not host.is_loopback:
        print(
            f"The batch's engine listens on {_quote_host(host.listen_address)}:{port}, which other"
            f" machines can reach: workers call {url} with a key until the batch ends.",
            file=sys.stderr,
        )
    try:
        thread, _ = start_engine(
            choice.data_dir,
            sandbox=choice.sandbox,
            settings=Settings(closed_signup=True),  # it is its owner's and the notebooks' alone
        )
    except BaseException:
        listener.close()
        raise
    listener.listen()  # an early client waits for the server
    stopped = asyncio.Event()
    serving = thread.submit(serve_beside(thread.engine, listener, stopped))
    try:
        yield url, thread.call(_make_key(thread.engine, choice.max_cost_usd))
    finally:
        thread.call(_set(stopped))
        try:
            serving.result(STOP_TIMEOUT_S)
        except TimeoutError:
            print(
                "A request to the batch's engine did not end in time and is cancelled.",
                file=sys.stderr,
            )
        thread.close()


async def _make_key(engine: Engine, max_cost_usd: float) -> str:
    account, _ = await engine.accounts.open_local_account()
    key = engine.accounts.make_local_key(account.id, SCOPES)
    context = await engine.accounts.authenticate(key)
    engine.keys.limit_local_key(context, max_cost_usd)
    return key


async def _set(event: asyncio.Event) -> None:
    event.set()


def _quote_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
