"""The statistics of a cascade: sample size, threshold on confidence, and agreement with its limits.

The sample is drawn without replacement from the rows of one table, so the number of disagreements
in it is hypergeometric. Rows are ranked by confidence before any label of the dear model is known.
Going down the ranking, the number of unsampled disagreements only grows, so one exact test for each
rank, in this order, is enough (fixed-sequence testing: Angelopoulos, Bates, Candès, Jordan and Lei,
"Learn then Test", 2021). The test is the exact hypergeometric form of the limit of Clopper and
Pearson (1934; for finite populations: Wright, "Exact Confidence Bounds when Sampling from Small
Finite Universes", 1991). No assumption on the confidence is made: a bad confidence costs money,
and not the guarantee.
"""

import math
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
    least = max(0, sample - (rows - marked))
    if most >= min(marked, sample):
        return 1.0
    if most < least:
        return 0.0
    # The sum begins at its largest term, because the first terms of a large table are all 0.0.
    mode = (sample + 1) * (marked + 1) // (rows + 2)
    peak = max(least, min(most, mode))
    log_peak = (
        _log_choose(marked, peak)
        + _log_choose(rows - marked, sample - peak)
        - _log_choose(rows, sample)
    )
    unmarked_left = rows - marked - sample  # without those of the sample
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


def count_allowed(rows: int, target: float) -> int:
    """Return the number of rows that may disagree at this target.

    >>> count_allowed(300, 0.95)
    15
    """
    return math.floor(rows * (1.0 - target) + 1e-9)


def choose_sample_size(rows: int, target: float) -> int:
    """Choose how many rows both models answer: a number that keeps the expected cost low.

    A larger sample costs more, and escalates fewer rows for safety. With a normal approximation
    the sum is lowest near `rows ** (1/3) * (z * sqrt(allowed) / (2 * margin)) ** (2/3)`. The result
    is the smallest sample that permits as many disagreements as that one does, at least none.

    >>> choose_sample_size(300, 0.95), choose_sample_size(10_000, 0.95)
    (50, 694)
    """
    allowed = count_allowed(rows, target)
    ratio = _Z * math.sqrt(allowed) / (2 * _USUAL_MARGIN)
    # A sample of all but the allowed rows needs no threshold.
    first = min(rows - allowed, math.ceil(rows ** (1 / 3) * ratio ** (2 / 3)))
    count = max(0, count_permitted(rows, allowed, first))
    low, high = count, rows  # the permitted number grows with the sample
    while low < high:
        middle = (low + high) // 2
        if _is_within(rows, allowed, middle, count):
            high = middle
        else:
            low = middle + 1
    return low


def count_permitted(rows: int, allowed: int, sample: int) -> int:
    """Return how many disagreements the sample may have above the threshold; -1 if not even 0."""
    low, high = -1, sample
    while low < high:
        middle = (low + high + 1) // 2
        if _is_within(rows, allowed, sample, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _is_within(rows: int, allowed: int, sample: int, count: int) -> bool:
    """Check that `count` sampled disagreements rule out more than `allowed` unsampled ones."""
    excess = count + allowed + 1
    return excess > rows or compute_tail(rows, excess, sample, count) <= ERROR_RATE


@dataclass(frozen=True, slots=True)
class Agreement:
    """The share of rows whose label equals that of the dear model; sampled rows always do.

    Attributes:
        estimate: expected share, by Laplace's rule of succession.
        low, high: lower and upper limit; each holds with a confidence of 95 %.
    """

    estimate: float
    low: float
    high: float


def estimate_agreement(rows: int, sample: int, kept: int, disagreements: int) -> Agreement:
    """Estimate the agreement of the final table.

    The limits also hold at the threshold that `choose_threshold` finds from the same sample.

    Args:
        kept: number of rows above the threshold outside of the sample.
        disagreements: number of disagreements in the sample above the threshold.

    >>> estimate_agreement(300, 51, 200, 0).low >= 0.95
    True
    """
    low, high = 0, kept
    while low < high:
        middle = (low + high) // 2
        if _is_within(rows, middle, sample, disagreements):
            high = middle
        else:
            low = middle + 1
    most = low
    low, high = 0, most  # the fewest that do not make the sample's disagreements improbable
    while disagreements and low < high:
        middle = (low + high) // 2
        chance = 1.0 - compute_tail(rows, disagreements + middle, sample, disagreements - 1)
        if chance > ERROR_RATE:
            high = middle
        else:
            low = middle + 1
    expected = min(most, (disagreements + 1) / (sample + 2) * (rows - sample))
    return Agreement(1 - max(low, expected) / rows, 1 - most / rows, 1 - low / rows)


@dataclass(frozen=True, slots=True)
class Decision:
    """The rows that the cheap model may answer.

    Attributes:
        is_kept: for each row, whether its confidence is above the threshold.
        threshold: lowest confidence of a row that is kept; None if no row is kept.
        agreement: agreement of the table if all other rows get the dear model's label.
    """

    is_kept: "NDArray[np.bool_]"
    threshold: float | None
    agreement: Agreement


def draw_sample(rows: int, size: int, seed: int) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
    """Draw the positions of the sample, and a random rank of each row for ties of confidence."""
    import numpy as np

    random = np.random.default_rng(seed)
    return random.permutation(rows)[:size], random.permutation(rows)


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

    >>> kept = choose_threshold([0.9, 0.2, 0.8, 0.7], [1, 3, 0, 2], [False] + [True] * 3,
    ...                         [0, 1, 2, 3], 0.7).is_kept
    >>> kept.tolist()
    [True, True, True, True]
    """
    import numpy as np

    scores = np.asarray(confidences, dtype=float)
    rows, size = len(scores), len(sample)
    order = np.lexsort((np.asarray(tie_ranks), -scores))
    ranks = np.empty(rows, dtype=np.int64)
    ranks[order] = np.arange(rows)
    sampled_ranks = ranks[np.asarray(sample, dtype=np.int64)]
    disagreeing = np.sort(sampled_ranks[~np.asarray(has_same_label, dtype=bool)])
    permitted = count_permitted(rows, count_allowed(rows, target), size)
    # All rows before the first disagreement too many are kept.
    cut = 0 if permitted < 0 else rows
    if 0 <= permitted < len(disagreeing):
        cut = int(disagreeing[permitted])
    is_kept = (ranks < cut) & np.isfinite(scores)
    count = int((disagreeing < cut).sum())
    kept = int(is_kept.sum() - is_kept[np.asarray(sample, dtype=np.int64)].sum())
    threshold = float(scores[is_kept].min()) if is_kept.any() else None
    return Decision(is_kept, threshold, estimate_agreement(rows, size, kept, count))
