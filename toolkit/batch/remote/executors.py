"""The executors that carry a batch's notebooks to workers: Dask's, or a factory's."""

import os
import sys
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from toolkit.batch.remote.dask_rows import DaskRowExecutor
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.profiles.resolution import names_server
from toolkit.workers.serialization import find_function

ExecutorFactory = Callable[[], Executor]
DEFAULT_MAX_COST_USD = 5.0


def load_factory(name: str) -> ExecutorFactory:
    """Load the function, or class, of a `module:factory` that makes an executor.

    Raises:
        RequestError: `INVALID_REQUEST` if there is none of that name.
    """
    module, _, path = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # as `python -m` has it
    try:
        member: Any = find_function(module, path)  # the starter of the batch names it
    except (ImportError, AttributeError, ValueError) as error:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"The executor `{name}` (module:factory) cannot be loaded: {error}.",
        ) from None
    factory: ExecutorFactory = member
    return factory


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The server or the embedded engine that the notebooks of a batch send their calls to.

    Attributes:
        base_url: address of a server that workers reach. None selects the server that the
            environment or a profile names, or else an engine of this process.
        data_dir: folder of that engine. Default: `./.toolkit`.
        host: address of this machine by which workers reach it. Default: loopback.
        scheduler: address of the Dask scheduler of the workers, if they are Dask workers.
        max_cost_usd: maximum total cost of the notebooks' work, in US dollars.
    """

    base_url: str | None = None
    data_dir: Path | None = None
    sandbox: bool = False
    host: str | None = None
    scheduler: str | None = None
    max_cost_usd: float = DEFAULT_MAX_COST_USD

    @property
    def is_own(self) -> bool:
        """Return True if notebooks use an engine of this process, not a server."""
        local = self.data_dir is not None or self.sandbox
        return local or not names_server(self.base_url, None)


@dataclass(frozen=True, slots=True)
class RemoteWorkers:
    """The remote workers of a batch, and the engine that their notebooks use."""

    factory: ExecutorFactory
    engine: EngineChoice


def choose_workers(
    dask: str | None, executor: str | ExecutorFactory | None, engine: EngineChoice
) -> RemoteWorkers | None:
    """Return the workers that a batch names. Returns None if its notebooks run on this machine.

    Raises:
        RequestError: `INVALID_REQUEST` if both are named, or the executor does not exist.
    """
    if dask is not None and executor is not None:
        raise RequestError(
            ErrorCode.INVALID_REQUEST, "Both Dask and an executor are given: give only one."
        )
    if dask is not None:
        return RemoteWorkers(partial(DaskRowExecutor, dask), replace(engine, scheduler=dask))
    if executor is None:
        return None
    factory = load_factory(executor) if isinstance(executor, str) else executor
    return RemoteWorkers(factory, engine)


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """The options of a batch; `run` documents them."""

    notebook: Path
    out: Path
    workers: int | None = None
    timeout: float | None = None
    resume: bool = True
    preload: tuple[str, ...] | None = None
    fork: bool = True
    remote: RemoteWorkers | None = None

    @property
    def worker_count(self) -> int:
        """The number of notebooks that run at once."""
        return self.workers or os.cpu_count() or 1
