"""The choice of the CPU executor: worker processes of this machine, or a Dask cluster."""

from importlib.util import find_spec

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.engine.transport.cpu_executor import CpuExecutor
from toolkit.engine.transport.worker_pool import WorkerPool
from toolkit.settings import Settings


def make_executor(settings: Settings) -> CpuExecutor:
    """Make the executor that the setting `dispatch` names; it starts nothing yet.

    Raises:
        RequestError: `INVALID_REQUEST` with certificates for an unencrypted address.
        ServiceError: `UNAVAILABLE` without the extra that it needs, or without certificates.
    """
    local = WorkerPool.of(settings)
    if settings.dispatch is None:
        return local
    if find_spec("distributed") is None:
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            "dispatch needs an extra: pip install 'capability-toolkit[dask]'.",
        )
    # Heavy, and rarely wanted.
    from toolkit.engine.transport.dask_client import make_security, to_dask_address
    from toolkit.engine.transport.dask_connection import DaskConnection
    from toolkit.engine.transport.dask_executor import DaskExecutor

    address = to_dask_address(settings.dispatch)
    security = make_security(address, settings.dispatch_tls)
    return DaskExecutor(
        DaskConnection(address, security, settings.scheduler_wait_s),
        local,
        settings.cpu_timeout_s,
        settings.cpu_memory_bytes,
        settings.worker_wait_s,
    )
