"""A routing table: the order of candidates before anything is known of the work itself.

It is compiled once for a capability, a policy and a pool of providers, and serves until the pool
changes. Only the costs depend on the operation: they, and the order that follows from them, are
computed for each call.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, TypeAlias

from toolkit.contract.choices import OfferedTier
from toolkit.contract.jobs import Options
from toolkit.contract.money import ZERO_USD, to_wire_usd
from toolkit.engine.money.affordability import (
    BudgetLeft,
    CostBound,
    explain_refusal,
    find_bound,
)
from toolkit.engine.ranking import RankedCandidate, Ranking, RankingCache
from toolkit.plugins import Capability, Model, Operation, Vendor
from toolkit.plugins.bounds import PictureRule
from toolkit.plugins.pricing import calculate_cost, calculate_dearest_cost


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each property of a candidate."""

    cost: float = 0.0
    latency: float = 0.0
    quality: float = 0.0
    reliability: float = 0.0


WEIGHTS: Mapping[str, Weights] = {
    "cost": Weights(cost=1.0),
    "latency": Weights(latency=1.0),
    "quality": Weights(quality=1.0),
    "balanced": Weights(cost=0.4, latency=0.2, quality=0.25, reliability=0.15),
}
# Without `optimize_for`, each vendor is asked for its default model; this orders the vendors after
# the default vendor.
DEFAULT_WEIGHTS = Weights(cost=0.6, latency=0.2, reliability=0.2)
# The vendor, the longest answer of a model, whether it reasons, and its tokens of pictures.
BoundLimits: TypeAlias = tuple[str, int | None, bool, PictureRule | None]


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A candidate before the work is known.

    Attributes:
        candidate: its properties that do not depend on the work; it is excluded if it may not be
            called at any cost. Its reason says why it may or may not be called.
        is_trusted: whether it has billed no more than its bound so far.
        is_placed: whether it runs at the endpoint or pod that the request names.
        bound_tier: service tier whose prices bound its cost.
        rank_before: sort key that precedes the score, except for its own exclusion.
        rank_after: sort key among candidates with an equal score.
    """

    vendor: Vendor
    model: Model | None
    candidate: RankedCandidate
    is_trusted: bool
    is_placed: bool
    bound_tier: OfferedTier
    rank_before: tuple[bool, bool]
    rank_after: tuple[bool, str, bool, str]

    @property
    def limits(self) -> BoundLimits:
        """The vendor and the model limits that bound the cost of its calls."""
        if self.model is None:
            return self.vendor.id, None, False, None
        model = self.model
        return self.vendor.id, model.output_limit, model.reasons, model.pictures


@dataclass(frozen=True, slots=True)
class MeasuredOperation:
    """The properties of an operation that determine its costs.

    Attributes:
        key: key that is equal for operations that cost the same.
        expected: the units that it is expected to be billed in.
        maximum: the maximum units that it can be billed in, by the limits of the bound.
    """

    key: tuple[object, ...]
    expected: Mapping[str, float]
    maximum: Mapping[BoundLimits, Mapping[str, float] | None]


class RoutingTable:
    """The candidates of a capability under a policy, with all properties that no call changes.

    Operations that measure the same (units expected, and units at most) are ranked the same, and
    share a ranking if no budget limits them.

    Args:
        capability: the capability to serve.
        options: the options with the policy, and the pinned provider and endpoint or pod, if any.
        entries: the candidates.
        rankings: the cache of recent rankings.
        usd_per_s: US dollars a second of a worker at the endpoint that the options name, if known.
    """

    def __init__(
        self,
        capability: Capability,
        options: Options,
        entries: Sequence[TableEntry],
        rankings: RankingCache,
        usd_per_s: Decimal | None = None,
    ) -> None:
        self._capability = capability
        self._options = options
        self._rate = usd_per_s
        self._weights = WEIGHTS.get(options.optimize_for or "", DEFAULT_WEIGHTS)
        self._entries = entries
        # One for each way in which the vendors bound an operation.
        self._bounded = {entry.limits: entry for entry in entries}
        self._rankings = rankings

    def rank(self, operation: Operation[Any] | None, budget_left: BudgetLeft) -> Ranking:
        """Rank the candidates for an operation; the first that is not excluded is called first.

        Operations that measure the same share a ranking, so callers must not change it.
        """
        measurement = None if operation is None else self._measure_operation(operation)
        if budget_left.is_limited or measurement is None:
            return self._rank_anew(operation, measurement, budget_left)
        make = partial(self._rank_anew, operation, measurement, budget_left)
        return self._rankings.find((self, measurement.key), make)

    def _measure_operation(self, operation: Operation[Any]) -> MeasuredOperation:
        """Measure the properties of an operation that determine its costs."""
        kind, expected = type(operation), operation.units()
        maximum: dict[BoundLimits, Mapping[str, float] | None] = {}
        for limits, entry in self._bounded.items():
            bound = entry.vendor.bounds.get(kind)
            if bound is None or entry.model is None:
                maximum[limits] = None
            else:
                maximum[limits] = bound.units(operation, entry.model)
        sizes = (None if units is None else tuple(units.items()) for units in maximum.values())
        return MeasuredOperation((kind, *expected.items(), *sizes), expected, maximum)

    def _rank_anew(
        self,
        operation: Operation[Any] | None,
        measurement: MeasuredOperation | None,
        budget_left: BudgetLeft,
    ) -> Ranking:
        options, entries = self._options, self._entries
        estimates = self._estimate_costs(measurement)
        bounds = self._bound_costs(operation, measurement, budget_left)
        affordable = [
            budget_left.covers(bound.usd) and (entry.is_trusted or not budget_left.is_limited)
            for entry, bound in zip(entries, bounds, strict=True)
        ]
        excluded = [
            entry.candidate.excluded or not covered
            for entry, covered in zip(entries, affordable, strict=True)
        ]
        scores = self._score_entries(estimates, excluded)
        candidates = []
        for n, entry in enumerate(entries):
            reason = entry.candidate.reason
            if not (entry.candidate.excluded or affordable[n]):
                reason = explain_refusal(
                    bounds[n],
                    estimates[n],
                    budget_left,
                    operation,
                    trusted=entry.is_trusted,
                    placed=entry.is_placed and options.endpoint_id is not None,
                )
            candidates.append(
                entry.candidate._replace(
                    reason=reason,
                    score=round(scores[n], 6),  # rounded for display; the ranking uses all digits
                    excluded=excluded[n],
                    affordable=affordable[n],
                    estimated_cost_usd=estimates[n],
                    reservation_usd=bounds[n].usd,
                    max_tokens=bounds[n].max_tokens,
                )
            )
        ranks = self._find_group_scores(scores, excluded)
        order = sorted(
            range(len(entries)),
            key=lambda n: (excluded[n], *entries[n].rank_before, -ranks[n], *entries[n].rank_after),
        )
        policy = "pinned" if options.pin else options.optimize_for or "default"
        if order and not excluded[order[0]] and options.pin is None:
            first = candidates[order[0]]
            has_best_score = scores[order[0]] >= max(scores[n] for n in order if not excluded[n])
            reason = _explain_first(first, self._capability, options, has_best_score=has_best_score)
            candidates[order[0]] = first._replace(reason=reason)
        return Ranking(policy, [candidates[n] for n in order])

    def _bound_costs(
        self,
        operation: Operation[Any] | None,
        measurement: MeasuredOperation | None,
        budget_left: BudgetLeft,
    ) -> list[CostBound]:
        """Calculate the maximum cost of one call of each candidate."""
        bounds = []
        for entry in self._entries:
            max_cost = None
            if measurement is not None and entry.model is not None:
                maximum = measurement.maximum[entry.limits]
                max_cost = calculate_dearest_cost(entry.model, maximum, entry.bound_tier)
            arguments = entry.vendor, entry.model, self._options, operation
            bounds.append(
                find_bound(*arguments, budget_left, self._rate, max_cost, entry.bound_tier)
            )
        return bounds

    def _estimate_costs(self, measurement: MeasuredOperation | None) -> list[Decimal | None]:
        """Estimate the cost of each candidate at the place where it is to run; None if unknown."""
        units = None if measurement is None else measurement.expected
        estimates: list[Decimal | None] = []
        for entry in self._entries:
            if entry.is_placed and self._options.compute_id is not None:
                estimates.append(ZERO_USD)  # a pod is billed by the hour, used or not
            elif entry.is_placed and self._options.endpoint_id is not None:
                # Billed by the GPU second; the number of seconds is unknown before.
                estimates.append(None)
            elif units is None:
                estimates.append(ZERO_USD)
            else:
                tier = entry.candidate.tier
                estimates.append(
                    None if entry.model is None else calculate_cost(entry.model, units, tier)
                )
        return estimates

    def _score_entries(
        self, estimates: Sequence[Decimal | None], excluded: Sequence[bool]
    ) -> list[float]:
        """Score each candidate, from 0 to 1, by a weighted sum of four shares of the best.

        The best is taken among the candidates that can be chosen, or among all if none can.

        - cost: the lowest expected dollars for this very input over its own; 0 if its price is
          unknown, which is never cheap; 1 if it is free.
        - latency: the lowest median over its own; if never called, the slowest known counts.
        - quality: its tier over the best tier.
        - reliability: the share of its last calls that worked; 1 before the first.

        Every share falls as its property gets worse, so a candidate that is worse in one and better
        in none never comes first.
        """
        costs = [to_wire_usd(estimate) for estimate in estimates]
        indices = [n for n, out in enumerate(excluded) if not out] or range(len(costs))
        candidates = [self._entries[n].candidate for n in indices]
        lowest = min((cost for n in indices if (cost := costs[n]) is not None), default=0.0)
        latencies = [
            candidate.latency_p50_ms
            for candidate in candidates
            if candidate.latency_p50_ms is not None
        ]
        fastest, slowest = min(latencies, default=0.0), max(latencies, default=0.0)
        finest = max(
            (candidate.quality for candidate in candidates if candidate.quality is not None),
            default=0,
        )
        weights, scores = self._weights, []
        for entry, cost in zip(self._entries, costs, strict=True):
            candidate = entry.candidate
            took_ms = slowest if candidate.latency_p50_ms is None else candidate.latency_p50_ms
            quality = (candidate.quality or 0) / finest if finest else 1.0
            scores.append(
                weights.cost * (0.0 if cost is None else _compare_to_best(lowest, cost))
                + weights.latency * _compare_to_best(fastest, took_ms)
                + weights.quality * min(1.0, quality)
                + weights.reliability * (1.0 - (candidate.error_rate or 0.0))
            )
        return scores

    def _find_group_scores(
        self, scores: Sequence[float], excluded: Sequence[bool]
    ) -> Sequence[float]:
        """Find the score for the rank of each candidate.

        A vendor's model ranks by the first connection that it may be called by.
        """
        groups = [(entry.candidate.provider, entry.candidate.model) for entry in self._entries]
        group_scores: dict[tuple[str, str | None], float] = {}
        for n in sorted(range(len(scores)), key=lambda n: excluded[n]):
            group_scores.setdefault(groups[n], scores[n])
        return [group_scores[group] for group in groups]


RoutingTables: TypeAlias = dict[tuple[object, ...], RoutingTable]


def _compare_to_best(best: float, amount: float) -> float:
    """Return the best cost or time over a candidate's own, at most 1; 1 if it costs nothing."""
    if amount <= 0:
        return 1.0
    # A free candidate would make every other share 0, and hide how they differ.
    return min(1.0, best / amount) if best > 0 else 0.5 / (1.0 + amount)


def _explain_first(
    first: RankedCandidate, capability: Capability, options: Options, *, has_best_score: bool
) -> str:
    is_default = first.provider == capability.default_provider
    if options.optimize_for is None:
        if not is_default:
            return f"{first.reason}; next in line"
        reason = "connected; the default provider"
        return reason if has_best_score else f"{reason}; scores count only with optimize_for"
    best = {
        "cost": "the lowest expected cost",
        "latency": "the lowest latency observed",
        "quality": "the highest quality tier",
        "balanced": "the best balance",
    }[options.optimize_for]
    return f"{first.reason}; {best}"
