"""Ids: unique, in order of time, and a forked process has its own."""

import os

import pytest

from toolkit.contract.ids import Prefix, is_id, new_id

pytestmark = pytest.mark.sqlite("other tests have its statements")


def test_ids_are_unique_and_in_order() -> None:
    """Given many ids made at once, then none is there twice, and each is above the one before."""
    made = [new_id(Prefix.JOB) for _ in range(20_000)]
    assert len(set(made)) == len(made)
    assert made == sorted(made)
    assert all(is_id(each, Prefix.JOB) for each in made)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_has_ids_of_its_own() -> None:
    """Given a fork, then parent and child draw different ids, though they know the same."""
    new_id(Prefix.JOB)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, ",".join(new_id(Prefix.JOB) for _ in range(20)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(reading, 65536).decode().split(",")
    os.close(reading)
    os.close(writing)
    ours = [new_id(Prefix.JOB) for _ in range(20)]
    tails = {each[-12:] for each in theirs} & {each[-12:] for each in ours}
    assert tails == set()
