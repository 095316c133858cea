"""TLS to vendors: the authorities that are trusted, and sessions that are resumed."""

import os
import ssl
from collections import OrderedDict
from contextlib import suppress
from functools import lru_cache

import certifi

MAX_HOSTS = 64


class ResumingContext(ssl.SSLContext):
    """A context that offers each host the last session it gave, which spares most of a handshake.

    A resumed handshake shows no certificate: the host proves by the session itself that it is the
    one whose certificate was checked when that session began. So a session is offered to its own
    host alone. It lasts as long as the host says, and of hosts the last `MAX_HOSTS` are known.
    """

    _latest: OrderedDict[str, ssl.SSLObject]
    _sessions: dict[str, ssl.SSLSession]

    def __new__(cls) -> "ResumingContext":
        """Make a context of a client, which checks certificates and the names in them."""
        context = super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)
        context._latest, context._sessions = OrderedDict(), {}
        return context

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Wrap a connection, as event loops do, and offer the session that is kept for its host."""
        if not isinstance(server_hostname, str):
            return super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        session = session or self._find_session(server_hostname)
        made = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        self._latest[server_hostname] = made
        self._latest.move_to_end(server_hostname)
        if len(self._latest) > MAX_HOSTS:
            forgotten, _ = self._latest.popitem(last=False)
            self._sessions.pop(forgotten, None)
        return made

    def _find_session(self, host: str) -> ssl.SSLSession | None:
        """Find the last session of a host.

        Its last connection is asked only now: tickets come after the handshake, with an answer, and
        a session is a copy, which takes long to make.
        """
        latest = self._latest.get(host)
        with suppress(ValueError):  # its handshake came to nothing
            session = None if latest is None else latest.session
            if session is not None and session.has_ticket:
                self._sessions[host] = session
        return self._sessions.get(host)


def load_tls_context() -> ResumingContext:
    """Return the context that the environment asks for; equal ones share their sessions."""
    return _load_context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@lru_cache(maxsize=4)
def _load_context(file: str | None, folder: str | None) -> ResumingContext:
    """Load the certificates of authorities: once for all vendors, as that takes 20 ms.

    Args:
        file: of certificates to trust, in place of the usual ones.
        folder: of such files.
    """
    context = ResumingContext()
    if file or not folder:
        context.load_verify_locations(cafile=file or certifi.where())
    else:
        context.load_verify_locations(capath=folder)
    context.set_alpn_protocols(["http/1.1"])
    return context
