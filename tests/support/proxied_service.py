"""A served engine behind a proxy that counts requests, and a key of it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tests.conftest import Server
from tests.support.network_link import RecordingLink
from toolkit import Client
from toolkit.sandbox import Faults
from toolkit.settings import Settings

REQUEST = re.compile(rb"(?:GET|POST|DELETE) (/v1\S*) HTTP/1\.1\r\n")
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")


class ProxiedService:
    """The service: the proxy's URL, an account's key, and the vendors' faults."""

    def __init__(self, server: Server, proxy: RecordingLink, faults: Faults, key: str) -> None:
        self._server, self._proxy = server, proxy
        self.url, self.key, self.faults = f"http://127.0.0.1:{proxy.port}", key, faults

    def list_requests(self) -> list[str]:
        """List the paths of the requests so far, in order."""
        return [path.decode() for path in REQUEST.findall(bytes(self._proxy.recorded))]

    def list_statuses(self) -> list[int]:
        """List the statuses of the responses so far, in order."""
        return [int(status) for status in STATUS.findall(bytes(self._proxy.recorded))]


@contextmanager
def open_proxied_service(settings: Settings) -> Iterator[ProxiedService]:
    """Serve an engine behind a proxy; the account has connected minimax."""
    faults = Faults()
    server = Server(settings.model_copy(update={"connection_test_s": 0.0}), faults)
    with Client(server.url) as client:
        key = client.account.create("ada@example.org").api_key
    with Client(server.url, key) as client:
        client.connections.connect("minimax")
    with RecordingLink(server.port) as proxy:
        yield ProxiedService(server, proxy, faults, key)
    server.close()
