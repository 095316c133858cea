"""The line of progress of a map: the rate, the expected cost and the time left."""

import re

import pytest

from toolkit.display.progress.row_progress import RowProgress


@pytest.mark.parametrize(("elapsed_s", "pace", "left_s"), [(4.0, "0.5", 36), (0.1, "20", 1)])
def test_line_has_the_rate_and_the_expected_cost(
    monkeypatch: pytest.MonkeyPatch, elapsed_s: float, pace: str, left_s: int
) -> None:
    """Given two rows in a known time, then the line extrapolates their cost and their rate."""
    clock = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    progress = RowProgress(20, 1.0, is_shown=False)
    clock[0] += elapsed_s
    for n in (1, 2):
        progress.add(0.03 * n, is_started=True, is_timed=True, reason=None, error=None)

    assert progress.describe(0.06) == (
        f"2 of 20 rows, $0.06 of $1, about $0.6 for all, about {left_s} s left at {pace} rows/s"
    )


def test_line_without_new_rows_has_no_rate() -> None:
    """Given rows that existed before, then they say nothing about the rate or the time left."""
    progress = RowProgress(3, None, is_shown=False)
    progress.add(0.5, is_started=True, is_timed=False, reason=None, error=None)
    assert not re.search("left|rows/s", progress.describe(0.5))
