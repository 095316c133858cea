"""The executors that carry a batch's notebooks to workers: Dask's, or whatever a factory makes."""

import os
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from toolkit.contract.errors import ErrorCode, RequestError, ServiceError
from toolkit.workers.serialization import find_function

CONNECT_TIMEOUT_S = 60.0  # a scheduler that is restarted is waited for
ExecutorFactory = Callable[[], Executor]
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

        try:
            self._client: Any = Client(address, set_as_default=False, timeout=CONNECT_TIMEOUT_S)
            self._client.register_plugin(StepCancelPlugin())
        except OSError:
            raise ServiceError(
                ErrorCode.UNAVAILABLE, f"The Dask scheduler at {address} does not answer: start it."
            ) from None
        self._executor: Any = self._client.get_executor(pure=False)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have a call made by a worker."""
        submitted: Future[T] = self._executor.submit(fn, *args, **kwargs)
        return submitted

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster; what is still asked for is cancelled there."""
        del wait, cancel_futures
        self._executor.shutdown(wait=False)
        self._client.close(timeout=2)


def make_dask_factory(address: str) -> ExecutorFactory:
    """Return what connects to a Dask cluster, by `host:port`, `tcp://…` or `dask://…`."""
    host = address.partition("://")[2] or address
    scheme = "tls" if address.startswith("tls://") else "tcp"
    return lambda: DaskRowExecutor(f"{scheme}://{host}")


def load_factory(name: str) -> ExecutorFactory:
    """Load the function, or class, of a `module:factory` that makes an executor.

    Raises:
        RequestError: `INVALID_REQUEST` if there is none of that name.
    """
    module, _, path = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # as `python -m` has it
    try:
        found: Any = find_function(module, path)  # whoever starts the batch names it
    except (ImportError, AttributeError, ValueError) as error:
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"There is no executor `{name}` (module:factory): {error}."
        ) from None
    factory: ExecutorFactory = found
    return factory


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The engine that the notebooks of a batch ask.

    Attributes:
        base_url: a server that workers reach; none for the one that the environment or a profile
            names, or else for an engine of this process.
        data_dir: the folder of that engine; `./.toolkit` by default.
        sandbox: whether its vendors are simulated.
        host: the address of this machine that workers reach it by.
    """

    base_url: str | None = None
    data_dir: Path | None = None
    sandbox: bool = False
    host: str = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class RemoteWorkers:
    """The workers of a batch that are elsewhere, and the engine that they ask."""

    factory: ExecutorFactory
    engine: EngineChoice


def choose_workers(
    dask: str | None, executor: str | ExecutorFactory | None, engine: EngineChoice
) -> RemoteWorkers | None:
    """Return the workers that a batch names; none where its notebooks run on this machine.

    Raises:
        RequestError: `INVALID_REQUEST` if both are named, or there is no such executor.
    """
    if dask is not None and executor is not None:
        raise RequestError(
            ErrorCode.INVALID_REQUEST, "Notebooks run on Dask or by an executor: name one of them."
        )
    if dask is not None:
        return RemoteWorkers(make_dask_factory(dask), engine)
    if executor is None:
        return None
    factory = load_factory(executor) if isinstance(executor, str) else executor
    return RemoteWorkers(factory, engine)
