"""The executor that has a batch's notebooks run by the workers of a Dask cluster."""

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from typing import Any, ParamSpec, TypeVar

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.contract.version import read_installed_version
from toolkit.settings import Settings

CONNECT_TIMEOUT_S = 5.0
LEAVE_TIMEOUT_S = 2.0
LOOK_INTERVAL_S = 5.0  # between two looks at the workers of the cluster
P = ParamSpec("P")
T = TypeVar("T")


class DaskRowExecutor(Executor):
    """An executor that has calls made by the workers of a Dask cluster.

    Dask itself makes a call again whose worker was lost.

    Args:
        address: of the scheduler: `host:port`, `tcp://…`, `dask://…` or `tls://…`.

    Raises:
        RequestError: `INVALID_REQUEST` where it is no address, or does not go with certificates.
        ServiceError: `UNAVAILABLE` without the extra, without certificates, and when the scheduler
            does not answer for `scheduler_wait_s`.
    """

    def __init__(self, address: str) -> None:
        if find_spec("distributed") is None:
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                "--dask needs an extra: pip install 'capability-toolkit[dask]'.",
            )
        from toolkit.engine.transport.dask_client import quiet_losses, to_dask_address

        self._address = to_dask_address(address)
        self._settings = Settings()
        self._preload_name: str | None = None
        self._looked_at = 0.0
        self._workerless_since: float | None = None
        self._quiet = ExitStack()
        self._quiet.enter_context(quiet_losses(everywhere=True))
        try:
            self._client: Any = self._connect()
        except BaseException:
            self._quiet.close()
            raise
        self._executor: Any = self._client.get_executor(pure=False)

    def _connect(self) -> Any:
        """Connect to the scheduler; one that is away is waited for, which is told once."""
        from distributed import Client
        from distributed.comm.core import FatalCommClosedError

        from toolkit.engine.transport.dask_client import make_security
        from toolkit.workers.dask_plugin import StepCancelPlugin

        wait_s = self._settings.scheduler_wait_s
        give_up, told = time.monotonic() + wait_s, False
        security = make_security(self._address, self._settings.dispatch_tls)
        while True:
            left_s = max(give_up - time.monotonic(), 0.2)
            try:
                client: Any = Client(
                    self._address,
                    set_as_default=False,
                    timeout=min(CONNECT_TIMEOUT_S, left_s),
                    security=security,
                )
            except FatalCommClosedError:
                raise ServiceError(
                    ErrorCode.UNAVAILABLE,
                    f"The Dask scheduler at {self._address} has no certificate that `dispatch_tls`"
                    " vouches for: correct it, or the scheduler's.",
                ) from None
            except OSError:
                if time.monotonic() >= give_up:
                    raise ServiceError(
                        ErrorCode.UNAVAILABLE,
                        f"The Dask scheduler at {self._address} does not answer: start it.",
                    ) from None
                if not told:
                    told = True
                    _tell(
                        f"The Dask scheduler at {self._address} does not answer: it is waited for,"
                        f" up to {wait_s:g} s."
                    )
                continue
            try:
                client.register_plugin(StepCancelPlugin())
            except OSError:
                client.close(timeout=LEAVE_TIMEOUT_S)
            except Exception as error:  # Dask's own: its processes cannot load the plugin
                client.close(timeout=LEAVE_TIMEOUT_S)
                raise ServiceError(
                    ErrorCode.UNAVAILABLE,
                    f"The Dask cluster at {self._address} cannot run notebooks"
                    f" ({type(error).__name__}): install capability-toolkit[dask]"
                    f" {read_installed_version()} on its scheduler and workers.",
                ) from None
            else:
                return client

    def prepare(
        self, batch_id: str, preload: tuple[str, ...] | None, *, fork: bool, renew_after: int
    ) -> None:
        """Have all workers get ready for the notebooks of a batch, also those that come later.

        Arguments are those of `RowPreloadPlugin`.
        """
        from toolkit.batch.remote.preload_plugin import RowPreloadPlugin

        plugin = RowPreloadPlugin(batch_id, preload, fork=fork, renew_after=renew_after)
        with suppress(Exception):  # what is wrong with the cluster, its first notebook says
            self._client.register_plugin(plugin)
            self._preload_name = plugin.name

    def check_workers(self) -> None:
        """Tell once that the cluster has no worker, as notebooks wait for one.

        Raises:
            ServiceError: `UNAVAILABLE` if it has had none for `worker_wait_s`.
        """
        now = time.monotonic()
        if now - self._looked_at < LOOK_INTERVAL_S:
            return
        self._looked_at = now
        try:
            has_workers = bool(self._client.nthreads())
        except Exception:  # the scheduler is lost, as the notebooks under way will say
            return
        if has_workers:
            self._workerless_since = None
            return
        missing, wait_s = (
            f"No worker of the Dask cluster at {self._address} is there",
            self._settings.worker_wait_s,
        )
        if self._workerless_since is None:
            self._workerless_since = now
            _tell(f"{missing}: notebooks wait for one, up to {wait_s:g} s.")
        if now - self._workerless_since >= wait_s:
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                f"{missing}, and was not for {wait_s:g} s of worker_wait_s: start one.",
            )

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
        self._quiet.close()

    def _forget_preload(self) -> None:
        with suppress(Exception):
            self._client.unregister_worker_plugin(self._preload_name)


def _tell(line: str) -> None:
    print(line, file=sys.stderr)
