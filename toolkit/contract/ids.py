"""Resource ids: a prefix and a time-ordered ULID in lower case (decisions, "Envelope")."""

import os
import re
import threading
import time
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
# Ten bits at a time: an id is made for every job, artifact and request.
_CHARACTER_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_RANDOM_BITS = 80
_RANDOM_BUFFER_BYTES = 4096
_LOWER_BITS = 40
_LOWER_MASK = (1 << _LOWER_BITS) - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ID_PATTERN = re.compile(r"^([a-z]{2,3})_[0-7][0-9a-hjkmnp-tv-z]{25}$")


class Prefix(StrEnum):
    """The prefix of an id, by resource."""

    CONNECTION = "prv"
    RUN = "run"
    ENDPOINT = "ep"
    TEMPLATE = "tpl"
    STORAGE = "sto"
    TASK = "tsk"
    WORKFLOW = "wfl"
    MAP = "map"
    BATCH = "bat"
    ACCOUNT = "acc"
    KEY = "key"
    JOB = "job"
    COMPUTE = "cmp"
    ARTIFACT = "art"
    PLAN = "pln"
    AGENT = "agt"
    REQUEST = "req"


class _UlidGenerator:
    """A generator of 128-bit ULID values that strictly increase within this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0
        self.discard_random_bytes()

    def discard_random_bytes(self) -> None:
        """Draw new random bytes next: a forked process must not share its parent's."""
        self._random, self._used = b"", 0

    def _draw_random(self, size: int) -> int:
        """Draw random bytes as a number, many at once, because each system call is expensive."""
        if self._used + size > len(self._random):
            self._random, self._used = os.urandom(_RANDOM_BUFFER_BYTES), 0
        self._used += size
        return int.from_bytes(self._random[self._used - size : self._used])

    def next_value(self) -> int:
        milliseconds = time.time_ns() // 1_000_000
        with self._lock:
            if milliseconds > self._last >> _RANDOM_BITS:
                value = milliseconds << _RANDOM_BITS | self._draw_random(10)
            else:
                # Within one millisecond, or after the wall clock stepped back, order still holds.
                value = self._last + 1 + self._draw_random(4)
            self._last = value
        return value


_ulid_generator = _UlidGenerator()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ulid_generator.discard_random_bytes)


def new_id(prefix: Prefix) -> str:
    """Make a new id, greater than every earlier one of this process.

    >>> new_id(Prefix.RUN).startswith("run_")
    True
    """
    value = _ulid_generator.next_value()
    p, low = _CHARACTER_PAIRS, value & _LOWER_MASK
    return (
        f"{prefix}_{_encode_upper(value >> _LOWER_BITS)}"
        f"{p[low >> 30]}{p[low >> 20 & 1023]}{p[low >> 10 & 1023]}{p[low & 1023]}"
    )


def make_earliest_id(prefix: Prefix, moment: datetime, margin_ms: int = 0) -> str:
    """Make an id that is less than those of all records since a time, or a margin before it.

    >>> make_earliest_id(Prefix.RUN, datetime(2026, 11, 20, tzinfo=UTC)) < new_id(Prefix.RUN)
    True
    """
    milliseconds = max(0, int((moment - _EPOCH) / timedelta(milliseconds=1)) - margin_ms)
    return f"{prefix}_{_encode_upper(milliseconds << _LOWER_BITS)}{'0' * 8}"


@lru_cache(maxsize=16)  # nearly all ids of one millisecond share the same upper bits
def _encode_upper(value: int) -> str:
    """Encode the upper bits of an id: the time, and the first half of the random bits."""
    return "".join(_CHARACTER_PAIRS[(value >> shift) & 1023] for shift in range(80, -10, -10))


def build_id_pattern(prefix: Prefix) -> str:
    """Build the pattern of a resource's ids, for schemas.

    >>> build_id_pattern(Prefix.RUN)
    '^run_[0-7][0-9a-hjkmnp-tv-z]{25}$'
    """
    return f"^{prefix}_[0-7][0-9a-hjkmnp-tv-z]{{25}}$"


def is_id(text: str, prefix: Prefix | None = None) -> bool:
    """Check whether `text` has the form of an id (of that prefix, if a prefix is given).

    >>> is_id("run_nonsense")
    False
    """
    match = _ID_PATTERN.match(text)
    return match is not None and (prefix is None or match.group(1) == prefix)
