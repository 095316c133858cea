"""Executors that batches name in tests, as `module:factory`."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.util import Finalize

from toolkit.batch.remote.source_keeper import get_source_keeper


def open_processes() -> ProcessPoolExecutor:
    """Open two processes that share nothing with this process, forked from a preloaded server."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["toolkit.batch.remote.row"])
    return ProcessPoolExecutor(2, mp_context=context, initializer=_end_kernels_at_exit)


def _end_kernels_at_exit() -> None:
    """Close the kernels of a process at its exit, because a fork runs no handlers of `atexit`."""
    Finalize(None, get_source_keeper().close_all, exitpriority=0)
