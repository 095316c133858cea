"""The statistics of cascades: exact tails, and the guarantee on enumerated and simulated tables."""

from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest

from benchmarks.cascade import run_cascade, simulate_table
from toolkit.client._agreement import (
    choose_sample_size,
    choose_threshold,
    compute_tail,
    draw_sample,
)


def test_tail_equals_the_exact_fraction() -> None:
    """Given every small table, then the tail is that of counted subsets."""
    for rows, marked, sample in ((12, 5, 7), (30, 3, 11), (30, 29, 4), (9, 0, 3), (9, 9, 9)):
        for most in range(sample + 1):
            ways = sum(
                comb(marked, k) * comb(rows - marked, sample - k)
                for k in range(most + 1)
                if sample - k >= 0
            )
            exact = Fraction(ways, comb(rows, sample))
            assert compute_tail(rows, marked, sample, most) == pytest.approx(float(exact))


def test_tail_of_a_large_table_does_not_underflow() -> None:
    """Given a million rows, then tails far from the mean are 0 and 1, and the median is a half."""
    assert compute_tail(1_000_000, 60_000, 100_000, 5_000) == pytest.approx(0.0, abs=1e-9)
    assert compute_tail(1_000_000, 60_000, 100_000, 7_000) == pytest.approx(1.0)
    assert compute_tail(1_000_000, 60_000, 100_000, 6_000) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(("size", "target"), [(7, 0.75), (6, 0.7), (9, 0.9)])
def test_no_pattern_of_labels_misses_the_target_too_often(size: int, target: float) -> None:
    """Given all samples of 12 rows, then at most 5 % of them miss the target, or either limit.

    The most confident labels are wrong, which is the worst order.
    """
    rows = 12
    scores, ties = np.linspace(1, 0, rows), np.arange(rows)
    for wrong in range(rows + 1):
        same = np.arange(rows) >= wrong
        misses = np.zeros(3)
        for sample in combinations(range(rows), size):
            decision = choose_threshold(scores, sample, same[list(sample)], ties, target)
            kept = decision.is_kept.copy()
            kept[list(sample)] = False
            agreement = 1 - (kept & ~same).sum() / rows + 1e-9
            misses += [
                agreement < target,
                agreement < decision.low,
                agreement > decision.high + 1e-6,
            ]
        assert misses.max() <= 0.05 * comb(rows, size)


@pytest.mark.parametrize("target", [0.5, 0.8, 0.95, 0.99])
def test_sample_is_a_part_of_the_table(target: float) -> None:
    """Given tables of all sizes, then the sample permits a threshold, and large tables save."""
    for rows in (1, 2, 9, 40, 300, 5_000, 200_000):
        size = choose_sample_size(rows, target)
        assert 0 < size <= rows
        sample, ties = draw_sample(rows, size, 1)
        kept = choose_threshold(np.ones(rows), sample, np.ones(size), ties, target).is_kept
        assert kept.all()
    assert size < 0.1 * rows


def test_meets_the_target_on_simulated_tables() -> None:
    """Given 300 tables of good and bad confidences, then at least 93 % meet the target."""
    outcomes = [run_cascade(simulate_table(seed), seed) for seed in range(300)]

    assert np.mean([outcome.agreement >= 0.95 for outcome in outcomes]) >= 0.93
    assert np.mean([outcome.is_covered for outcome in outcomes]) >= 0.9
    easy = [outcome.cost for outcome in outcomes if outcome.least_cost <= 0.3]
    assert np.mean(easy) <= 0.5


def test_the_same_seed_draws_the_same_sample() -> None:
    """Given a seed, then the sample is the same again, and another seed draws another."""
    first, again, other = (draw_sample(1_000, 80, seed)[0].tolist() for seed in (1, 1, 2))

    assert first == again
    assert len(set(first)) == 80
    assert first != other


def test_keeps_no_row_without_a_label() -> None:
    """Given rows without a label, then they are escalated even if everything else agrees."""
    scores = [0.9] * 98 + [float("-inf")] * 2
    sample, ties = draw_sample(100, choose_sample_size(100, 0.9), 3)
    decision = choose_threshold(scores, sample, sample < 98, ties, 0.9)

    assert not decision.is_kept[98:].any()


def test_limits_hold_the_estimate() -> None:
    """Given more disagreements in the sample, then all three figures fall, and stay in order."""
    sample, ties = draw_sample(1_000, 100, 1)
    rows = [
        choose_threshold(np.ones(1_000), sample, np.arange(100) >= found, ties, 0.5)
        for found in (0, 2, 5, 20)
    ]

    assert all(row.low <= row.agreement <= row.high for row in rows)
    assert [row.low for row in rows] == sorted((row.low for row in rows), reverse=True)
    assert rows[0].high == 1.0
    assert rows[-1].high < 1.0
