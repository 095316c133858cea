"""Executors that batches name in tests, as `module:factory`."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor


def open_processes() -> ProcessPoolExecutor:
    """Two processes that share nothing with this one."""
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))
