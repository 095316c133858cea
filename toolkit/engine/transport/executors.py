"""The choice of who does the CPU work: worker processes of this machine, or a Dask cluster."""

from importlib.util import find_spec

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.engine.transport.cpu_executor import CpuExecutor
from toolkit.engine.transport.worker_pool import WorkerPool
from toolkit.settings import Settings

DASK_SCHEME = "dask://"


def make_executor(settings: Settings) -> CpuExecutor:
    """Make the executor that the setting `dispatch` names; it starts nothing yet.

    Raises:
        ServiceError: `UNAVAILABLE` without the extra that it needs.
    """
    local = WorkerPool.of(settings)
    if settings.dispatch is None:
        return local
    if find_spec("distributed") is None:
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            "dispatch needs an extra: pip install 'capability-toolkit[dask]'.",
        )
    from toolkit.engine.transport.dask_executor import DaskExecutor  # heavy, and rarely wanted

    address = f"tcp://{settings.dispatch.removeprefix(DASK_SCHEME)}"
    return DaskExecutor(address, local, settings.cpu_timeout_s, settings.cpu_memory_bytes)
