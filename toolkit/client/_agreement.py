"""The statistics of a cascade: sample size, threshold on confidence, and agreement with its limits.

The sample is drawn without replacement from the rows of one table, so the number of disagreements
in it is hypergeometric. Rows are ranked by confidence before a label of the dear model is known.
Down the ranking, the number of unsampled disagreements only grows, so that one exact test for each
rank, in this order, is enough (fixed-sequence testing: Angelopoulos, Bates, Candès, Jordan and Lei,
"Learn then Test", 2021). The test is the limit of Clopper and Pearson (1934) in its exact form for
finite populations (Wright, "Exact Confidence Bounds when Sampling from Small Finite Universes",
1991). It assumes nothing about the confidence: a bad one costs money, and not the guarantee.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ERROR_RATE: Final = 0.05  # of each limit, and of the guarantee
_Z: Final = 1.645  # quantile of the normal distribution at that rate
# Share of disagreements among rows near the threshold, on which only the sample's size depends.
_USUAL_MARGIN: Final = 0.1


def compute_tail(rows: int, marked: int, sample: int, most: int) -> float:
    """Return the probability that a random sample has at most so many of the marked rows.

    Args:
        rows: number of rows, of which `sample` are drawn without replacement.
        marked: number of marked rows.
        most: maximum number of marked rows in the sample.

    >>> round(compute_tail(20, 3, 5, 0), 4)  # 15·14·13 / (20·19·18)
    0.3991
    """
    unmarked_left = rows - marked - sample  # without those of the sample
    least = max(0, -unmarked_left)
    if most >= min(marked, sample):
        return 1.0
    if most < least:
        return 0.0
    # The sum begins at its largest term, because the first terms of a large table are all 0.0.
    peak = max(least, min(most, (sample + 1) * (marked + 1) // (rows + 2)))
    log_peak = (
        _log_choose(marked, peak)
        + _log_choose(rows - marked, sample - peak)
        - _log_choose(rows, sample)
    )
    total = term = math.exp(log_peak)
    for count in range(peak, least, -1):
        term *= count * (unmarked_left + count) / ((marked - count + 1) * (sample - count + 1))
        total += term
    term = math.exp(log_peak)
    for count in range(peak + 1, most + 1):
        term *= (marked - count + 1) * (sample - count + 1) / (count * (unmarked_left + count))
        total += term
    return min(1.0, total)


def _log_choose(size: int, count: int) -> float:
    return math.lgamma(size + 1) - math.lgamma(count + 1) - math.lgamma(size - count + 1)


def _rules_out(rows: int, sample: int, count: int, allowed: int) -> bool:
    """Check whether `count` sampled disagreements rule out more than `allowed` unsampled ones."""
    excess = count + allowed + 1
    return excess > rows or compute_tail(rows, excess, sample, count) <= ERROR_RATE


def count_allowed(rows: int, target: float) -> int:
    """Return the number of rows that may disagree at a target.

    >>> count_allowed(300, 0.95)
    15
    """
    return math.floor(rows * (1.0 - target) + 1e-9)


def count_permitted(rows: int, sample: int, target: float) -> int:
    """Return how many disagreements the sample may have above the threshold; -1 if not even 0."""
    allowed = count_allowed(rows, target)
    counts = range(sample + 1)
    return bisect_left(counts, True, key=lambda n: not _rules_out(rows, sample, n, allowed)) - 1


def choose_sample_size(rows: int, target: float) -> int:
    """Choose how many rows both models answer: a number that keeps the expected cost low.

    A larger sample costs more, and escalates fewer rows for safety. By a normal approximation the
    sum is lowest near `rows ** (1/3) * (z * sqrt(allowed) / (2 * margin)) ** (2/3)`. The result is
    the smallest sample that permits as many disagreements as that one.

    >>> choose_sample_size(300, 0.95), choose_sample_size(10_000, 0.95)
    (50, 694)
    """
    allowed = count_allowed(rows, target)
    ratio = _Z * math.sqrt(allowed) / (2 * _USUAL_MARGIN)
    # A sample of all but the allowed rows needs no threshold.
    first = min(rows - allowed, math.ceil(rows ** (1 / 3) * ratio ** (2 / 3)))
    count = max(0, count_permitted(rows, first, target))
    sizes = range(count, rows + 1)
    return count + bisect_left(sizes, True, key=lambda n: _rules_out(rows, n, count, allowed))


def draw_sample(rows: int, size: int, seed: int) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
    """Draw the positions of the sample, and a random rank of each row for ties of confidence."""
    import numpy as np

    random = np.random.default_rng(seed)
    return random.permutation(rows)[:size], random.permutation(rows)


@dataclass(frozen=True, slots=True)
class Decision:
    """The rows that the cheap model may answer, if all others get the dear model's label.

    Attributes:
        is_kept: for each row, whether its confidence is above the threshold.
        threshold: lowest confidence of a row that is kept; None if no row is kept.
        agreement: expected share of rows with the dear model's label.
        low, high: lower and upper limit of that share; each holds with a confidence of 95 %.
    """

    is_kept: "NDArray[np.bool_]"
    threshold: float | None
    agreement: float
    low: float
    high: float


def choose_threshold(
    confidences: "Sequence[float] | NDArray[np.float64]",
    sample: "Sequence[int] | NDArray[np.int64]",
    has_same_label: "Sequence[bool] | NDArray[np.bool_]",
    tie_ranks: "Sequence[int] | NDArray[np.int64]",
    target: float,
) -> Decision:
    """Choose the rows to keep, so that the table agrees to the target with a confidence of 95 %.

    Args:
        confidences: confidence of each row's cheap label; minus infinity if it has no label.
        sample: positions of the rows that both models have labelled, a random sample.
        has_same_label: for each row of the sample, whether both labels are the same.
        tie_ranks: rank of each row among those of equal confidence, drawn without the labels.
        target: least share of rows that agree.

    >>> labels = [False, True, True, True]
    >>> choose_threshold([0.9, 0.2, 0.8, 0.7], [1, 3, 0, 2], labels, range(4), 0.7).is_kept.tolist()
    [True, True, True, True]
    """
    import numpy as np

    scores, positions = np.asarray(confidences, dtype=float), np.asarray(sample, dtype=np.int64)
    rows, size = len(scores), len(positions)
    ranks = np.empty(rows, dtype=np.int64)
    ranks[np.lexsort((np.asarray(tie_ranks), -scores))] = np.arange(rows)
    disagreeing = np.sort(ranks[positions[~np.asarray(has_same_label, dtype=bool)]])
    permitted = count_permitted(rows, size, target)
    # All rows before the first disagreement too many are kept.
    cut = 0 if permitted < 0 else rows
    if 0 <= permitted < len(disagreeing):
        cut = int(disagreeing[permitted])
    is_kept = (ranks < cut) & np.isfinite(scores)
    count = int((disagreeing < cut).sum())
    unsampled = int(is_kept.sum() - is_kept[positions].sum())
    most, least = _limit_unsampled(rows, size, count, unsampled)
    # Laplace's rule of succession.
    expected = min(most, max(least, (count + 1) / (size + 2) * (rows - size)))
    return Decision(
        is_kept,
        float(scores[is_kept].min()) if is_kept.any() else None,
        1 - expected / rows,
        1 - most / rows,
        1 - least / rows,
    )


def _limit_unsampled(rows: int, sample: int, count: int, unsampled: int) -> tuple[int, int]:
    """Find the most and the fewest disagreements among the unsampled rows above the threshold.

    The limits also hold at a threshold that was found by the same sample, because it is where the
    ranking reaches `count` sampled disagreements.
    """
    numbers = range(unsampled)
    most = bisect_left(numbers, True, key=lambda n: _rules_out(rows, sample, count, n))
    if count == 0:
        return most, 0

    def is_probable(number: int) -> bool:
        return 1.0 - compute_tail(rows, count + number, sample, count - 1) > ERROR_RATE

    return most, bisect_left(range(most), True, key=is_probable)
