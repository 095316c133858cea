"""Access to the engine behind an embedded client, which the client keeps private."""

import httpx

from toolkit import Client
from toolkit.local import LOCAL_URL, EngineThread, LoopChannel
from toolkit.server import create_app


class AppTransport(httpx.BaseTransport):
    """The app of `/v1` over an engine of this process, without a socket."""

    def __init__(self, thread: EngineThread) -> None:
        self._thread = thread
        self._app = httpx.ASGITransport(create_app(thread.engine), raise_app_exceptions=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Run the app on the engine's loop, and wait for its response."""
        request.read()
        return self._thread.call(self._answer(request))

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        answer = await self._app.handle_async_request(request)
        content = await answer.aread()
        return httpx.Response(answer.status_code, headers=answer.headers, content=content)


def find_thread(client: Client) -> EngineThread | None:
    """Return the thread of the engine that a client owns; None for a client of a server."""
    return client._thread


def get_thread(client: Client) -> EngineThread:
    """Return the thread of the engine that a client owns."""
    thread = find_thread(client)
    assert thread is not None
    return thread


def make_transport(client: Client) -> httpx.BaseTransport | None:
    """Make a transport to the service of a client; None selects httpx's own transport."""
    thread = find_thread(client)
    return None if thread is None else AppTransport(thread)


def with_key(client: Client, api_key: str) -> Client:
    """Make a client of the same service with another key."""
    thread = find_thread(client)
    if thread is None:
        return Client(client.access.base_url, api_key)
    return open_in_process(thread, api_key)


def open_in_process(thread: EngineThread, api_key: str) -> Client:
    """Open a client of an engine that it does not own, without HTTP between them."""
    client = Client(LOCAL_URL, api_key, transport=httpx.BaseTransport())
    client._http.channel = LoopChannel(thread)
    return client
