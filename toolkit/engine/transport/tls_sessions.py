"""TLS to vendors: the authorities that are trusted, and sessions that are resumed."""

import os
import ssl
from collections import OrderedDict
from functools import lru_cache

import certifi

MAX_SESSIONS = 256


class ResumingContext(ssl.SSLContext):
    """A context that offers each host the last session it gave, which spares most of a handshake.

    A resumed handshake shows no certificate: the host proves by the session itself that it is the
    one whose certificate was checked when that session began. So a session is offered to its own
    host alone. It lasts as long as the host says, and of hosts the last `MAX_SESSIONS` are known.
    """

    _sessions: OrderedDict[str, ssl.SSLSession]

    def __new__(cls) -> "ResumingContext":
        """Make a context of a client, which checks certificates and the names in them."""
        context = super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)
        context._sessions = OrderedDict()
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
        if session is None and isinstance(server_hostname, str):
            session = self._sessions.get(server_hostname)
        return super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)

    def keep_session(self, tls: object) -> None:
        """Keep the session of a connection, once it has been answered by: tickets come that late.

        Args:
            tls: the object that wraps it.
        """
        if not isinstance(tls, ssl.SSLObject) or not isinstance(tls.server_hostname, str):
            return
        session = tls.session  # a copy, which takes long to make
        if session is not None and session.has_ticket:
            self._sessions[tls.server_hostname] = session
            self._sessions.move_to_end(tls.server_hostname)
            if len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)


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
