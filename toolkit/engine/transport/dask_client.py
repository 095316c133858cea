"""The address of a Dask cluster, and the certificates of its clients."""

from distributed import Security

from toolkit.contract.errors import ErrorCode, RequestError, ServiceError
from toolkit.setting_types import TlsFiles, is_scheduler

DASK_SCHEME = "dask://"
TCP_SCHEME = "tcp://"
TLS_SCHEME = "tls://"


def to_dask_address(address: str) -> str:
    """Convert the address of a scheduler to Dask's form.

    Raises:
        RequestError: `INVALID_REQUEST` if it is not the address of a scheduler.

    >>> to_dask_address("dask://10.0.0.7:8786"), to_dask_address("tls://10.0.0.7:8786")
    ('tcp://10.0.0.7:8786', 'tls://10.0.0.7:8786')
    """
    host = address.removeprefix(DASK_SCHEME).removeprefix(TCP_SCHEME).removeprefix(TLS_SCHEME)
    if not is_scheduler(host):
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"`{address}` is not the address of a Dask scheduler: name its host and port, such as"
            " 10.0.0.7:8786, or tls://10.0.0.7:8786 with encryption.",
        )
    return f"{TLS_SCHEME if address.startswith(TLS_SCHEME) else TCP_SCHEME}{host}"


def make_security(address: str, files: TlsFiles | None) -> dict[str, str]:
    """Check the certificates by which a client and a scheduler know each other.

    Args:
        address: address of the scheduler, as Dask writes it.
        files: paths of the certificates; None for the paths in Dask's own configuration.

    Returns:
        The paths, as arguments of Dask's `Security`.

    Raises:
        RequestError: `INVALID_REQUEST` if there are certificates but the address is unencrypted.
        ServiceError: `UNAVAILABLE` if an encrypted connection has none, or they are unreadable.
    """
    arguments: dict[str, str] = {}
    if files is not None:
        arguments = {
            "tls_ca_file": str(files.ca_file),
            "tls_client_cert": str(files.cert_file),
            "tls_client_key": str(files.key_file or files.cert_file),
        }
    try:
        security = Security(require_encryption=files is not None or None, **arguments)
        context = security.get_connection_args("client").get("ssl_context")
    except OSError as error:  # the base class of the errors of `ssl`, too
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
            "Certificates are configured (`dispatch_tls`, or Dask's `require-encryption`), but"
            f" {address} is not encrypted: write {TLS_SCHEME}{host}, or remove the certificates.",
        )
    if is_encrypted and context is None:
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            f"{address} needs certificates: name their files in `dispatch_tls`, or in Dask's own"
            " configuration (`distributed.comm.tls`).",
        )
    return arguments
