"""Ids: unique, in order of time, also in a forked process."""

import os

import pytest

from toolkit.contract.ids import Prefix, is_id, new_id

pytestmark = pytest.mark.sqlite("other tests have its statements")


def test_ids_are_unique_and_in_order() -> None:
    """Given many ids, then each is greater than the previous id."""
    ids = [new_id(Prefix.JOB) for _ in range(20_000)]
    assert ids == sorted(set(ids))
    assert all(is_id(job_id, Prefix.JOB) for job_id in ids)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_draws_other_ids() -> None:
    """Given a fork, then parent and child draw different ids."""
    new_id(Prefix.JOB)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, ",".join(new_id(Prefix.JOB) for _ in range(20)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    child_ids = os.read(reading, 65536).decode().split(",")
    os.close(reading)
    os.close(writing)
    parent_ids = [new_id(Prefix.JOB) for _ in range(20)]
    assert {i[-12:] for i in child_ids}.isdisjoint(i[-12:] for i in parent_ids)
