"""The one engine that all notebooks of a batch ask, wherever they run: its address and a key."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec

from toolkit.batch.remote.executors import EngineChoice
from toolkit.client import Client
from toolkit.contract.errors import ErrorCode, ServiceError, ToolkitError
from toolkit.local import LOCAL_URL, LoopTransport, start_engine
from toolkit.profiles.resolution import API_KEY_VARIABLE, BASE_URL_VARIABLE, names_server

STOP_TIMEOUT_S = 10.0
KEY_NAME = "toolkit batch"


@contextmanager
def open_access(choice: EngineChoice) -> Iterator[dict[str, str]]:
    """Open the engine of a batch, and yield the variables by which notebooks ask it.

    They get a key of their own, which may read and write, and ends with the batch.

    Raises:
        ServiceError: `UNAVAILABLE` when it cannot be opened, served or reached.
    """
    if _is_own(choice):
        with _serve_own(choice) as (client, url), _lend_key(client) as key:
            yield {BASE_URL_VARIABLE: url, API_KEY_VARIABLE: key}
        return
    with Client(choice.base_url) as client, _lend_key(client) as key:
        yield {BASE_URL_VARIABLE: client.access.base_url, API_KEY_VARIABLE: key}


def _is_own(choice: EngineChoice) -> bool:
    """Tell whether it is an engine of this process."""
    local = choice.data_dir is not None or choice.sandbox
    return local or not names_server(choice.base_url, None)


@contextmanager
def _lend_key(client: Client) -> Iterator[str]:
    made = client.api_keys.create(name=KEY_NAME, scopes=["read", "write"])
    try:
        yield made.api_key
    finally:
        with suppress(ToolkitError):  # a server that is away by now
            client.api_keys.delete(made.id)


@contextmanager
def _serve_own(choice: EngineChoice) -> Iterator[tuple[Client, str]]:
    """Serve an engine of this process; yield a client of it, and its address."""
    if find_spec("uvicorn") is None:
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            "Workers ask an engine over HTTP, which needs an extra: pip install"
            " 'capability-toolkit[server]'.",
        )
    from toolkit.server.serve import bind_socket, serve_beside

    listener = bind_socket(choice.host, 0)
    url = f"http://{_quote_host(choice.host)}:{listener.getsockname()[1]}"
    try:
        thread, key = start_engine(
            choice.data_dir,
            sandbox=choice.sandbox,
            settings=None,
            registry=None,
            faults=None,
            cassette=None,
            mode="replay",
            take_up=None,
            read_only=False,
            dispatch=None,
            database=None,
        )
    except BaseException:
        listener.close()
        raise
    listener.listen()  # who is early waits for the server
    stopped = asyncio.Event()
    serving = thread.submit(serve_beside(thread.engine, listener, stopped))
    try:
        with Client(LOCAL_URL, key, transport=LoopTransport(thread)) as client:
            yield client, url
    finally:
        thread.call(_set(stopped))
        try:
            serving.result(STOP_TIMEOUT_S)
        except TimeoutError:
            print("A request is still being answered: it is cut off.", file=sys.stderr)
        thread.close()


async def _set(event: asyncio.Event) -> None:
    event.set()


def _quote_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
