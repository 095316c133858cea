"""The cascade of `client.map` on simulated tables: how often it meets its target, and its cost.

Run `python -m benchmarks.cascade`; `--number 200` is quicker. A table has 300 to 10,000 rows, a
cheap model of random strength, and a confidence of a random kind: calibrated, too sure, noisy, of
three levels, without any information, or reversed. All draws are seeded.

Costs are shares of the cost of the dear model for all rows. An answer of the cheap model costs a
tenth of one of the dear model. A confidence of three levels is the agreement of samples, and needs
three answers. The least cost of a table is that of the best threshold for a person who knows all
labels, without a sample. Half the cost is possible if the least cost is below a half by the room
that the sample and the guarantee need: about a fifth of the rows of a table of 300 rows, and a
twentieth of 10,000. It is impossible for a weak cheap model, and for a confidence that does not
tell right from wrong. The guarantee holds for all of them.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks._report import report, report_share
from toolkit.client._agreement import (
    choose_sample_size,
    choose_threshold,
    count_allowed,
    draw_sample,
)

FIRST_SEED = 20_000
TARGET = 0.95
PRICE_RATIO = 0.1  # of the cheap model's answer to that of the dear model
SAMPLED_ANSWERS = 3  # of the cheap model, if it returns no log-probabilities
CLASSES = 5
KINDS = ("calibrated", "too_sure", "noisy", "levels", "random", "reversed")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SimulatedTable:
    """The labels of both models for each row, and the confidence of the cheap model."""

    kind: str
    confidence: Floats
    cheap: NDArray[np.int64]
    dear: NDArray[np.int64]

    @property
    def cheap_cost(self) -> float:
        """Cost of the cheap model for all rows."""
        return PRICE_RATIO * (SAMPLED_ANSWERS if self.kind == "levels" else 1)


@dataclass(frozen=True)
class Outcome:
    """The result of a cascade on a table.

    Attributes:
        agreement: true share of rows with the dear model's label.
        cost: cost of both models.
        least_cost: cost at the best threshold, for a person who knows all labels.
        is_covered: whether the interval holds the true agreement.
    """

    rows: int
    kind: str
    agreement: float
    cost: float
    least_cost: float
    is_covered: bool


def _shift(chance: Floats, by: Floats) -> Floats:
    logits = np.log(chance) - np.log1p(-chance)
    return np.asarray(1 / (1 + np.exp(-(logits + by))))


def _make_confidence(kind: str, chance: Floats, draw: np.random.Generator) -> Floats:
    """Make the confidence of rows from their chances of the right label."""
    kinds: dict[str, Callable[[], Floats]] = {
        "calibrated": lambda: chance,
        "too_sure": lambda: chance**0.1,
        "noisy": lambda: _shift(chance, draw.normal(0, 2, len(chance))),
        "levels": lambda: draw.binomial(SAMPLED_ANSWERS - 1, chance) / (SAMPLED_ANSWERS - 1),
        "random": lambda: draw.random(len(chance)),
        "reversed": lambda: 1 - chance,
    }
    return kinds[kind]()


def simulate_table(seed: int) -> SimulatedTable:
    """Simulate the labels of a table whose size, difficulty and confidence are drawn."""
    draw = np.random.default_rng(seed)
    rows = round(float(np.exp(draw.uniform(np.log(300), np.log(10_000)))))
    strength, spread = draw.uniform(0.6, 0.99), draw.uniform(0.3, 3)
    chance = draw.beta(strength * spread, (1 - strength) * spread, rows).clip(0.001, 0.999)
    dear = draw.integers(CLASSES, size=rows)
    is_wrong = draw.random(rows) >= chance
    cheap = np.where(is_wrong, (dear + draw.integers(1, CLASSES, size=rows)) % CLASSES, dear)
    kind = KINDS[int(draw.integers(len(KINDS)))]
    return SimulatedTable(kind, _make_confidence(kind, chance, draw), cheap, dear)


def run_cascade(table: SimulatedTable, seed: int, target: float = TARGET) -> Outcome:
    """Decide as `client.map` does, and compare all labels."""
    rows = len(table.cheap)
    same = table.cheap == table.dear
    sample, tie_ranks = draw_sample(rows, choose_sample_size(rows, target), seed)
    decision = choose_threshold(table.confidence, sample, same[sample], tie_ranks, target)
    is_dear = ~decision.is_kept
    is_dear[sample] = True
    agreement = float(np.where(is_dear, True, same).mean())
    return Outcome(
        rows,
        table.kind,
        agreement,
        table.cheap_cost + float(is_dear.mean()),
        table.cheap_cost + _find_least_share(table, target),
        decision.low - 1e-9 <= agreement <= decision.high + 1e-9,
    )


def _find_least_share(table: SimulatedTable, target: float) -> float:
    """Find the least share of rows that the dear model must answer, by someone who knows all."""
    order = np.argsort(-table.confidence, kind="stable")
    disagreements = np.cumsum((table.cheap != table.dear)[order])
    return 1 - float((disagreements <= count_allowed(len(order), target)).mean())


def report_outcomes(outcomes: Sequence[Outcome]) -> bool:
    """Report how often the target is met, and the cost of the tables."""
    met = float(np.mean([outcome.agreement >= TARGET for outcome in outcomes]))
    covered = float(np.mean([outcome.is_covered for outcome in outcomes]))
    results = [
        report_share("cascade.met", met, at_least=0.93, of=len(outcomes)),
        report_share("cascade.covered", covered, at_least=0.9, of=len(outcomes)),
    ]
    for kind in KINDS:
        group = [outcome for outcome in outcomes if outcome.kind == kind]
        share = float(np.mean([outcome.agreement >= TARGET for outcome in group]))
        results.append(report_share(f"cascade.met.{kind}", share, at_least=0.9, of=len(group)))
    possible = [outcome for outcome in outcomes if outcome.least_cost <= 0.5]
    results.append(_report_cost("possible", possible, 0.5))
    for rows, more in ((300, 1_000), (1_000, 3_000), (3_000, 10_001)):
        group = [outcome for outcome in possible if rows <= outcome.rows < more]
        results.append(_report_cost(f"possible.{rows}", group, None))
    for cost in (0.2, 0.3, 0.4):
        group = [outcome for outcome in outcomes if outcome.least_cost <= cost]
        results.append(_report_cost(f"least_{cost}", group, 0.5))
    results.append(_report_cost("all", outcomes, None))
    return all(results)


def _report_cost(name: str, outcomes: Sequence[Outcome], limit: float | None) -> bool:
    """Report the mean cost of tables, its quantiles, and the share of tables at half the cost."""
    costs = np.array([outcome.cost for outcome in outcomes])
    quantiles = {f"p{p}": round(float(np.percentile(costs, p)), 3) for p in (10, 50, 90, 99)}
    half = round(float((costs <= 0.5).mean()), 3)
    floor = float(np.mean([outcome.least_cost for outcome in outcomes]))
    return report(
        f"cascade.cost.{name}", float(costs.mean()), "share", floor=floor, limit=limit,
        **quantiles, half=half, of=len(costs),
    )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Simulate tables; the exit code is 1 if too few keep their target."""
    parser = argparse.ArgumentParser(prog="benchmarks.cascade")
    parser.add_argument("--number", type=int, default=1_000, help="number of tables")
    seeds = range(FIRST_SEED, FIRST_SEED + parser.parse_args(argv).number)
    return 0 if report_outcomes([run_cascade(simulate_table(s), s) for s in seeds]) else 1


if __name__ == "__main__":
    sys.exit(main())
