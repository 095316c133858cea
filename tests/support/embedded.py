"""The engine behind a client of this process, which the client itself keeps to itself."""

import httpx

from toolkit import Client
from toolkit.local import LOCAL_URL, EngineThread, LoopChannel, LoopTransport


def find_thread(client: Client) -> EngineThread | None:
    """Find the thread of the engine that a client owns; none for a client of a server."""
    return client._thread


def get_thread(client: Client) -> EngineThread:
    """Return the thread of the engine that a client owns."""
    thread = find_thread(client)
    assert thread is not None
    return thread


def make_transport(client: Client) -> httpx.BaseTransport | None:
    """Make another transport to the service of a client; none for httpx's own to a server."""
    thread = find_thread(client)
    return None if thread is None else LoopTransport(thread)


def with_key(client: Client, api_key: str) -> Client:
    """Make a client of the same service with another key."""
    return Client(client.access.base_url, api_key, transport=make_transport(client))


def open_in_process(thread: EngineThread, api_key: str) -> Client:
    """Open a client of an engine that it does not own, without any HTTP between them."""
    client = Client(LOCAL_URL, api_key, transport=LoopTransport(thread))
    client._http.attach_channel(LoopChannel(thread))
    return client
