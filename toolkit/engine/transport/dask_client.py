"""The clients of a Dask cluster: their certificates, and what Dask logs as they lose it."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from distributed import Security

from toolkit.contract.errors import ErrorCode, RequestError, ServiceError
from toolkit.setting_types import TlsFiles, is_scheduler

DASK_SCHEME = "dask://"
TCP_SCHEME = "tcp://"
TLS_SCHEME = "tls://"
# Where Dask says, with a traceback, that connections and what was asked for by them are lost.
_LOSS_LOGGERS = (
    "distributed.batched", "distributed.client", "distributed.comm.core", "distributed.comm.tcp",
    "distributed.core", "distributed.utils", "distributed.utils_comm",
)  # fmt: skip

log = logging.getLogger(__name__)


def to_dask_address(address: str) -> str:
    """Write the address of a scheduler as Dask has it.

    Raises:
        RequestError: `INVALID_REQUEST` where it is none.

    >>> to_dask_address("dask://10.0.0.7:8786"), to_dask_address("tls://10.0.0.7:8786")
    ('tcp://10.0.0.7:8786', 'tls://10.0.0.7:8786')
    """
    host = address.removeprefix(DASK_SCHEME).removeprefix(TCP_SCHEME).removeprefix(TLS_SCHEME)
    if not is_scheduler(host):
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"`{address}` is not the address of a Dask scheduler: name its host and port, such as"
            " 10.0.0.7:8786, or tls://10.0.0.7:8786 where it encrypts.",
        )
    return f"{TLS_SCHEME if address.startswith(TLS_SCHEME) else TCP_SCHEME}{host}"


def make_security(address: str, files: TlsFiles | None) -> Security:
    """Make the certificates by which a client and a scheduler know each other.

    Args:
        address: of the scheduler, as Dask writes it.
        files: where they are; none for those that Dask's own configuration names.

    Raises:
        RequestError: `INVALID_REQUEST` where there are some, and the address encrypts nothing.
        ServiceError: `UNAVAILABLE` where an encrypted connection has none, or they cannot be read.
    """
    given: dict[str, str] = {}
    if files is not None:
        given = {
            "tls_ca_file": str(files.ca_file),
            "tls_client_cert": str(files.cert_file),
            "tls_client_key": str(files.key_file or files.cert_file),
        }
    try:
        security = Security(require_encryption=files is not None or None, **given)
        context = security.get_connection_args("client").get("ssl_context")
    except OSError as error:  # as those of `ssl` are, too
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            f"The certificates for {address} cannot be used: correct `dispatch_tls`"
            f" ({error.strerror or error}).",
        ) from None
    is_encrypted = address.startswith(TLS_SCHEME)
    if security.require_encryption and not is_encrypted:
        host = address.removeprefix(TCP_SCHEME)
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "Certificates are given (`dispatch_tls`, or Dask's `require-encryption`), and"
            f" {address} encrypts nothing: write {TLS_SCHEME}{host}, or give none.",
        )
    if is_encrypted and context is None:
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            f"{address} needs certificates: name their files in `dispatch_tls`, or in Dask's own"
            " configuration (`distributed.comm.tls`).",
        )
    return security


class LossFilter(logging.Filter):
    """Turns what Dask tells of losses into lines for debugging, as we tell each in a line.

    Args:
        thread_id: of the thread whose records these are; none for all threads.
    """

    def __init__(self, thread_id: int | None) -> None:
        super().__init__()
        self._thread_id = thread_id

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a record is another thread's."""
        if self._thread_id not in (None, record.thread):
            return True
        log.debug("%s: %s", record.name, record.getMessage(), exc_info=record.exc_info)
        return False


@contextmanager
def quiet_losses(*, everywhere: bool = False) -> Iterator[None]:
    """Have Dask's clients of this thread, or of all, be quiet about what they lose."""
    quiet = LossFilter(None if everywhere else threading.get_ident())
    loggers = [logging.getLogger(name) for name in _LOSS_LOGGERS]
    for logger in loggers:
        logger.addFilter(quiet)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(quiet)
