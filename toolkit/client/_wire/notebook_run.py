"""Idempotency keys of a notebook that a batch may run twice, as the worker that ran it was lost.

What its first run asked for and its second one asks for again has the same key, so it is done, and
paid, once. A request that is equal to an earlier one of the same run is another one, as it would be
without a batch.
"""

import hashlib
import json
import os
import threading
from collections import Counter
from functools import cache

from toolkit.profiles.resolution import NOTEBOOK_RUN_VARIABLE


class RunKeys:
    """Makes the keys of one run: by what is asked for, and how often it was before."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def make_key(self, path: str, body: object) -> str:
        """Make the key of a request."""
        text = json.dumps([self._run, path, body], sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode()).hexdigest()[:32]
        with self._lock:
            self._counts[digest] += 1
            return f"{digest}-{self._counts[digest]}"


@cache
def _get_run_keys(run: str) -> RunKeys:
    return RunKeys(run)


def find_run_keys() -> RunKeys | None:
    """Find the keys of the run that this process is for; none where it is for none."""
    run = os.environ.get(NOTEBOOK_RUN_VARIABLE)
    return _get_run_keys(run) if run else None
