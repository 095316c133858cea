"""The executor that runs a batch's notebooks on the workers of a Dask cluster."""

import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from importlib.util import find_spec
from typing import ParamSpec, TypeVar, cast
from uuid import uuid4

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.contract.version import read_installed_version
from toolkit.settings import Settings
from toolkit.workers.dask_gateway import ClusterFailureError, DaskGateway, UntrustedSchedulerError
from toolkit.workers.serialization import get_function_name

CONNECT_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 30.0  # for the process itself, in addition to the scheduler's time
LEAVE_TIMEOUT_S = 2.0
RETRY_INTERVAL_S = 0.2
LOOK_INTERVAL_S = 5.0  # between two checks of the workers of the cluster
_CANCEL_PLUGIN = ["toolkit.workers.dask_plugin", "StepCancelPlugin", {}]
_PRELOAD_PLUGIN = ("toolkit.batch.remote.preload_plugin", "RowPreloadPlugin")
P = ParamSpec("P")
T = TypeVar("T")


class DaskRowExecutor(Executor):
    """An executor whose calls run on the workers of a Dask cluster.

    A process without keys connects to the cluster. It receives the name of a function and plain
    arguments, and answers with bytes or text. Dask itself repeats a call whose worker was lost.

    Args:
        address: address of the scheduler: `host:port`, `tcp://…`, `dask://…` or `tls://…`.

    Raises:
        RequestError: `INVALID_REQUEST` if the address is malformed or does not fit certificates.
        ServiceError: `UNAVAILABLE` without the extra, without certificates, and when the scheduler
            does not answer for `scheduler_wait_s`.
    """

    def __init__(self, address: str) -> None:
        if find_spec("distributed") is None:
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                "--dask needs an extra: pip install 'capability-toolkit[dask]'.",
            )
        from toolkit.engine.transport.dask_client import make_security, to_dask_address

        self._address = to_dask_address(address)
        self._settings = Settings()
        self._certificates = make_security(self._address, self._settings.dispatch_tls)
        self._preload_name: str | None = None
        self._looked_at = 0.0
        self._workerless_since: float | None = None
        self._gateway = DaskGateway()
        try:
            self._connect()
        except BaseException:
            self._gateway.kill()
            self._gateway.join()
            raise

    def _connect(self) -> None:
        """Connect to the scheduler; while it is away, report this and wait, or raise an error."""
        wait_s = self._settings.scheduler_wait_s
        give_up, is_reported = 0.0, False
        while True:
            try:
                # Not counted: the process imports Dask.
                self._gateway.request("start").result(ANSWER_TIMEOUT_S)
                give_up = give_up or time.monotonic() + wait_s
                self._open(min(CONNECT_TIMEOUT_S, max(give_up - time.monotonic(), 0.2)))
            except UntrustedSchedulerError:
                raise ServiceError(
                    ErrorCode.UNAVAILABLE,
                    f"The certificate of the Dask scheduler at {self._address} does not match"
                    " `dispatch_tls`: correct the setting, or the scheduler's certificate.",
                ) from None
            except ClusterFailureError as error:
                raise ServiceError(
                    ErrorCode.UNAVAILABLE,
                    f"The Dask cluster at {self._address} cannot run notebooks ({error}): install"
                    f" capability-toolkit[dask] {read_installed_version()} on its scheduler and"
                    " workers.",
                ) from None
            except OSError:
                if time.monotonic() >= give_up:
                    raise ServiceError(
                        ErrorCode.UNAVAILABLE,
                        f"The Dask scheduler at {self._address} does not answer: start it.",
                    ) from None
                if not is_reported:
                    is_reported = True
                    _tell(
                        f"The Dask scheduler at {self._address} does not answer; waiting"
                        f" up to {wait_s:g} s."
                    )
                if self._gateway.has_ended:
                    self._gateway.join()
                    self._gateway = DaskGateway()
                time.sleep(RETRY_INTERVAL_S)
            else:
                return

    def _open(self, timeout_s: float) -> None:
        opening = self._gateway.request(
            "open",
            address=self._address,
            certificates=self._certificates,
            connect_s=timeout_s,
            plugins=[_CANCEL_PLUGIN],
        )
        opening.result(timeout_s + ANSWER_TIMEOUT_S)

    def prepare(self, batch_id: str, preload: tuple[str, ...] | None, *, fork: bool) -> None:
        """Prepare all workers for the notebooks of a batch, including workers that join later.

        `RowPreloadPlugin` has the same arguments.
        """
        module, name = _PRELOAD_PLUGIN
        arguments = {"batch_id": batch_id, "preload": preload, "fork": fork}
        with suppress(Exception):  # a fault of the cluster is raised by its first notebook
            registering = self._gateway.request(
                "register_plugin", module=module, name=name, arguments=arguments
            )
            self._preload_name = registering.result(ANSWER_TIMEOUT_S)

    def check_workers(self) -> None:
        """Report once that the cluster has no worker, because notebooks wait for one.

        Raises:
            ServiceError: `UNAVAILABLE` if the cluster has had no worker for `worker_wait_s`.
        """
        now = time.monotonic()
        if now - self._looked_at < LOOK_INTERVAL_S:
            return
        self._looked_at = now
        try:
            has_workers = bool(self._gateway.request("list_workers").result(ANSWER_TIMEOUT_S))
        except Exception:  # the scheduler is lost, which the notebooks under way will report
            return
        if has_workers:
            self._workerless_since = None
            return
        missing, wait_s = (
            f"The Dask cluster at {self._address} has no worker",
            self._settings.worker_wait_s,
        )
        if self._workerless_since is None:
            self._workerless_since = now
            _tell(f"{missing}; notebooks wait up to {wait_s:g} s for a worker.")
        if now - self._workerless_since >= wait_s:
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                f"{missing}, and none joined in {wait_s:g} s (worker_wait_s): start one.",
            )

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Submit a call of a named function, without keywords, to a worker; return its future."""
        if kwargs:
            raise TypeError("a call on a Dask cluster takes no keyword arguments")
        module, name = get_function_name(fn)
        submitted = self._gateway.request(
            "run",
            key=f"toolkit-row-{uuid4().hex}",
            module=module,
            name=name,
            args=list(args),
            resources={},
        )
        return cast("Future[T]", submitted)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster, which cancels the calls that have not ended."""
        del wait, cancel_futures
        if self._preload_name is not None and not self._gateway.has_ended:
            with suppress(Exception):  # a scheduler that is cut off is not waited for
                leaving = self._gateway.request("unregister_plugin", name=self._preload_name)
                leaving.result(LEAVE_TIMEOUT_S)
        self._gateway.close(LEAVE_TIMEOUT_S)


def _tell(line: str) -> None:
    print(line, file=sys.stderr)
