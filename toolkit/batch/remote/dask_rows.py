"""The executor that has a batch's notebooks run by the workers of a Dask cluster."""

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, ParamSpec, TypeVar

from toolkit.contract.errors import ErrorCode, ServiceError

CONNECT_TIMEOUT_S = 60.0  # a scheduler that is restarted is waited for
LEAVE_TIMEOUT_S = 2.0
P = ParamSpec("P")
T = TypeVar("T")


class DaskRowExecutor(Executor):
    """An executor that has calls made by the workers of a Dask cluster.

    Dask itself makes a call again whose worker was lost.

    Args:
        address: of the scheduler, as Dask writes it.

    Raises:
        ServiceError: `UNAVAILABLE` without the extra, and when the scheduler does not answer.
    """

    def __init__(self, address: str) -> None:
        if find_spec("distributed") is None:
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                "--dask needs an extra: pip install 'capability-toolkit[dask]'.",
            )
        from distributed import Client

        from toolkit.workers.dask_plugin import StepCancelPlugin

        self._preload_name: str | None = None
        try:
            self._client: Any = Client(address, set_as_default=False, timeout=CONNECT_TIMEOUT_S)
            self._client.register_plugin(StepCancelPlugin())
        except OSError:
            raise ServiceError(
                ErrorCode.UNAVAILABLE, f"The Dask scheduler at {address} does not answer: start it."
            ) from None
        self._executor: Any = self._client.get_executor(pure=False)

    def prepare(
        self, batch_id: str, preload: tuple[str, ...] | None, *, fork: bool, renew_after: int
    ) -> None:
        """Have all workers get ready for the notebooks of a batch, also those that come later.

        Arguments are those of `RowPreloadPlugin`.
        """
        from toolkit.batch.remote.preload_plugin import RowPreloadPlugin

        plugin = RowPreloadPlugin(batch_id, preload, fork=fork, renew_after=renew_after)
        with suppress(OSError):  # a scheduler that is lost by now: the first notebook says so
            self._client.register_plugin(plugin)
            self._preload_name = plugin.name

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have a call made by a worker."""
        submitted: Future[T] = self._executor.submit(fn, *args, **kwargs)
        return submitted

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster; what is still asked for is cancelled there."""
        del wait, cancel_futures
        self._executor.shutdown(wait=False)
        if self._preload_name is not None and self._client.status == "running":
            # In a thread, as a scheduler that is cut off would not be waited for so shortly.
            leaving = threading.Thread(target=self._forget_preload, daemon=True)
            leaving.start()
            leaving.join(LEAVE_TIMEOUT_S)
        self._client.close(timeout=LEAVE_TIMEOUT_S)

    def _forget_preload(self) -> None:
        with suppress(Exception):
            self._client.unregister_worker_plugin(self._preload_name)
