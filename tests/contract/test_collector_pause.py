"""The pause of the garbage collector."""

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from toolkit.contract.collector_pause import pause_collector

PROGRAM = """
import gc
from toolkit.contract.collector_pause import pause_collector
with pause_collector(objects_stay=True):
    lists = [[] for _ in range(1000)]
oldest = {id(item) for item in gc.get_objects(generation=2)}
assert {id(item) for item in lists} <= oldest
assert gc.isenabled() and gc.get_freeze_count() == 0
"""


@pytest.fixture(autouse=True)
def _collector_is_enabled() -> Iterator[None]:
    """Enable the collector, whatever the test runner chose, and restore it."""
    was_enabled = gc.isenabled()
    gc.enable()
    yield
    if not was_enabled:
        gc.disable()


def test_collector_runs_again_after_an_error() -> None:
    """Given an error during the pause, then the collector is enabled again."""
    with pytest.raises(ValueError, match="False"), pause_collector(objects_stay=True):
        raise ValueError(gc.isenabled())
    assert gc.isenabled()


def test_disabled_collector_stays_disabled() -> None:
    """Given a caller that disabled the collector, then the pause does not enable it."""
    gc.disable()
    with pause_collector():
        pass
    assert not gc.isenabled()


def test_objects_that_stay_join_the_oldest_generation() -> None:
    """Given objects that stay, then only a full collection visits them, and none is frozen."""
    # In a process of its own, because frozen objects stay frozen, and these tests have some.
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
