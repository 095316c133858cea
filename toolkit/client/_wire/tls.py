"""TLS: the certificates that a client trusts."""

import os
import ssl
from functools import cache
from pathlib import Path

import httpx

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.profiles.resolution import ServerAccess


def load_ssl_context(cacert: str | Path | None) -> ssl.SSLContext:
    """Load certificates of authorities: those of the machine, or those of `SSL_CERT_FILE`.

    Args:
        cacert: a file of further trusted certificates, in PEM.

    Raises:
        RequestError: `INVALID_REQUEST` for a file without certificates.
    """
    names = ("SSL_CERT_FILE", "SSL_CERT_DIR")
    return _load_ssl_context(cacert and str(cacert), tuple(os.environ.get(name) for name in names))


def choose_ssl_context(access: ServerAccess, cacert: str | Path | None) -> ssl.SSLContext:
    """Choose the TLS context for an address; for plain HTTP, a context without certificates.

    Args:
        cacert: a file of certificates, which takes precedence over that of a profile.

    Raises:
        RequestError: `INVALID_REQUEST` for a file that holds no certificates.
    """
    cacert = cacert or access.cacert
    if cacert is None and access.base_url.startswith("http://"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return load_ssl_context(cacert)


@cache
def _load_ssl_context(cacert: str | None, environment: tuple[str | None, ...]) -> ssl.SSLContext:
    """Load certificates, once for all clients of a process: it takes 25 ms."""
    try:
        context = httpx.create_ssl_context()
    except OSError:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"SSL_CERT_FILE ({environment[0]}) cannot be read: name a file of"
            " certificates in PEM format.",
        ) from None
    if cacert is not None:
        try:
            context.load_verify_locations(cafile=cacert)
        except OSError:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"cacert ({cacert}) cannot be read: name a file of certificates in PEM format.",
            ) from None
    return context
