"""A routing table: what decides between candidates before anything is known of the work itself.

It is compiled once for a capability, a policy and a pool of providers, and serves until the pool is
another one. What is left for each call is what depends on its operation: costs, and the order that
follows from them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

from toolkit.contract.connections import Connection
from toolkit.contract.jobs import Options
from toolkit.contract.money import ZERO_USD, to_wire_usd
from toolkit.engine.money.affordability import (
    BudgetLeft,
    CostBound,
    explain_refusal,
    find_bound,
)
from toolkit.engine.ranking import RankedCandidate, Ranking, RankingCache
from toolkit.engine.routing.connection_health import HealthSnapshot
from toolkit.plugins import Capability, Model, Operation, Vendor
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
# the default one.
DEFAULT_WEIGHTS = Weights(cost=0.6, latency=0.2, reliability=0.2)
# The shares of the score that do not depend on the work: of latency, quality and reliability.
FixedShares = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A candidate as it stands before the work is known.

    Attributes:
        barrier: why it may not be called, whatever the work costs; none where it may.
        merit: why it may be called, where a budget covers it.
        allowed: whether the request leaves it a choice.
        is_trusted: whether it has billed no more than its bound so far.
        is_placed: whether it runs at the place that the request names.
        rank_before: what orders it before its score does; its own exclusion apart.
        rank_after: what orders it among those with an equal score.
    """

    vendor: Vendor
    connection: Connection | None
    model: Model | None
    condition: HealthSnapshot
    barrier: str | None
    merit: str
    allowed: bool
    is_trusted: bool
    is_placed: bool
    rank_before: tuple[bool, bool]
    rank_after: tuple[bool, str, bool, str]

    @property
    def model_id(self) -> str | None:
        """The id of its model."""
        return None if self.model is None else self.model.id

    @property
    def latency_p50(self) -> float | None:
        """The median latency of its model by its connection; none before the first call."""
        found = self.condition.latency.get(self.model_id or "")
        return None if found is None else found.p50


@dataclass(frozen=True, slots=True)
class MeasuredOperation:
    """All of an operation that its costs depend on.

    Attributes:
        key: the same for operations that cost the same.
        expected: the units that it is expected to be billed in.
        most: the most units that it can be billed in, by each way of bounding it.
    """

    key: tuple[object, ...]
    expected: Mapping[str, float]
    most: Sequence[Mapping[str, float] | None]


class RoutingTable:
    """The candidates of a capability under a policy, with all that no call changes.

    Work that measures the same (units expected, and units at most) is ranked the same, and shares a
    ranking where no budget limits it.

    Args:
        capability: the capability to serve.
        options: name the policy, the pin and the place, where there is one.
        entries: the candidates.
        rankings: keeps those that were made lately.
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
        self._groups = [(one.vendor.id, one.model_id) for one in self._entries]
        self._has_spares = len(set(self._groups)) < len(self._groups)
        self._shares_by: tuple[Sequence[int], list[FixedShares]] = ((), [])
        # One model for each way in which the vendors bound an operation, and which is whose.
        bounded = {_find_limits(one): one for one in entries}
        self._bounded = list(bounded.values())
        ways = {limits: n for n, limits in enumerate(bounded)}
        self._bound_of = [ways[_find_limits(one)] for one in entries]
        self._rankings = rankings

    def rank(self, operation: Operation[Any] | None, budget_left: BudgetLeft) -> Ranking:
        """Rank the candidates for an operation; the first that is not excluded is called first.

        A ranking is shared by all work that measures the same: nobody changes it.
        """
        measured = None if operation is None else self._measure_operation(operation)
        if budget_left.is_limited or measured is None:
            return self._rank_anew(operation, measured, budget_left)
        make = partial(self._rank_anew, operation, measured, budget_left)
        return self._rankings.find((self, measured.key), make)

    def _measure_operation(self, operation: Operation[Any]) -> MeasuredOperation:
        """Measure all of an operation that its costs depend on."""
        kind, expected = type(operation), operation.units()
        most: list[Mapping[str, float] | None] = []
        key: list[object] = [kind, *expected.items()]
        for one in self._bounded:
            bound = one.vendor.bounds.get(kind)
            units = (
                None if bound is None or one.model is None else bound.units(operation, one.model)
            )
            most.append(units)
            key.append(None if units is None else tuple(units.items()))
        return MeasuredOperation(tuple(key), expected, most)

    def _rank_anew(
        self,
        operation: Operation[Any] | None,
        measured: MeasuredOperation | None,
        budget_left: BudgetLeft,
    ) -> Ranking:
        options, entries = self._options, self._entries
        estimates = self._estimate_costs(measured)
        bounds = self._bound_costs(operation, measured, budget_left)
        affordable = [
            budget_left.covers(bound.usd) and (one.is_trusted or not budget_left.is_limited)
            for one, bound in zip(entries, bounds, strict=True)
        ]
        excluded = [
            one.barrier is not None or not covered
            for one, covered in zip(entries, affordable, strict=True)
        ]
        scores = self._score_entries(estimates, excluded)
        candidates = []
        for n, one in enumerate(entries):
            reason = one.barrier
            if reason is None and not affordable[n]:
                reason = explain_refusal(
                    bounds[n],
                    estimates[n],
                    budget_left,
                    operation,
                    trusted=one.is_trusted,
                    placed=one.is_placed and options.endpoint_id is not None,
                )
            candidates.append(
                _make_candidate(
                    one,
                    one.merit if reason is None else reason,
                    excluded[n],
                    affordable[n],
                    estimates[n],
                    bounds[n],
                    scores[n],
                )
            )
        ranks = self._find_group_scores(scores, excluded)
        order = sorted(
            range(len(entries)),
            key=lambda n: (excluded[n], *entries[n].rank_before, -ranks[n], *entries[n].rank_after),
        )
        policy = "pinned" if options.provider else options.optimize_for or "default"
        if order and not excluded[order[0]] and options.provider is None:
            first = candidates[order[0]]
            has_best_score = scores[order[0]] >= max(scores[n] for n in order if not excluded[n])
            reason = _explain_first(first, self._capability, options, has_best_score=has_best_score)
            candidates[order[0]] = first._replace(reason=reason)
        return Ranking(policy, [candidates[n] for n in order])

    def _bound_costs(
        self,
        operation: Operation[Any] | None,
        measured: MeasuredOperation | None,
        budget_left: BudgetLeft,
    ) -> list[CostBound]:
        """Find the most that one call of each candidate may cost."""
        bounds = []
        for n, one in enumerate(self._entries):
            if measured is not None and one.model is not None and not one.is_placed:
                most = calculate_dearest_cost(one.model, measured.most[self._bound_of[n]])
                if budget_left.covers(most):
                    bounds.append(CostBound(most))
                    continue
            # At a place of the caller's, or with a cap that may have to be lowered.
            bounds.append(
                find_bound(one.vendor, one.model, self._options, operation, budget_left, self._rate)
            )
        return bounds

    def _estimate_costs(self, measured: MeasuredOperation | None) -> list[Decimal | None]:
        """Estimate what each candidate costs at the place where it is to run."""
        units = None if measured is None else measured.expected
        estimates: list[Decimal | None] = []
        for one in self._entries:
            if one.is_placed and self._options.compute_id is not None:
                estimates.append(ZERO_USD)  # a pod is billed by the hour, whatever it does
            elif one.is_placed and self._options.endpoint_id is not None:
                # Billed by the GPU second, of which the number is unknown before.
                estimates.append(None)
            elif units is None:
                estimates.append(ZERO_USD)
            else:
                estimates.append(None if one.model is None else calculate_cost(one.model, units))
        return estimates

    def _score_entries(
        self, estimates: Sequence[Decimal | None], excluded: Sequence[bool]
    ) -> list[float]:
        """Score each candidate, from 0 to 1, by a weighted sum of four shares of the best.

        The best is of those that can be chosen, or of all where none can.

        - cost: the lowest expected dollars for this very input over its own; 0 if its price is
          unknown, which is never cheap; 1 if it is free.
        - latency: the lowest median over its own; one never called counts as the slowest known.
        - quality: its tier over the best tier.
        - reliability: the share of its last calls that worked; 1 before the first.

        Every share falls as its property gets worse, so a candidate that is worse in one and better
        in none never comes first.
        """
        costs = [to_wire_usd(estimate) for estimate in estimates]
        chosen = [n for n, out in enumerate(excluded) if not out] or range(len(costs))
        lowest = min((cost for n in chosen if (cost := costs[n]) is not None), default=0.0)
        weight = self._weights.cost
        scores = []
        for cost, (latency, quality, reliability) in zip(
            costs, self._find_fixed_shares(chosen), strict=True
        ):
            share = 0.0 if cost is None else min(1.0, _compare_to_best(lowest, cost))
            scores.append(weight * share + latency + quality + reliability)
        return scores

    def _find_fixed_shares(self, chosen: Sequence[int]) -> list[FixedShares]:
        """Find what latency, quality and reliability add to each score; the last is kept."""
        known, shares = self._shares_by
        if list(known) != list(chosen) or not shares:
            shares = _weigh_fixed_shares(self._entries, chosen, self._weights)
            self._shares_by = chosen, shares
        return shares

    def _find_group_scores(
        self, scores: Sequence[float], excluded: Sequence[bool]
    ) -> Sequence[float]:
        """Find the score that each candidate ranks by.

        A vendor's model ranks by the first connection that it may be called by.
        """
        if not self._has_spares:
            return scores
        found: dict[tuple[str, str | None], float] = {}
        for n in sorted(range(len(scores)), key=lambda n: excluded[n]):
            found.setdefault(self._groups[n], scores[n])
        return [found[group] for group in self._groups]


def _find_limits(entry: TableEntry) -> tuple[str, int | None, bool]:
    """Find what a bound on a candidate's calls goes by: its vendor's, and its model's limits."""
    model = entry.model
    if model is None:
        return entry.vendor.id, None, False
    return entry.vendor.id, model.output_limit, model.reasons


def _make_candidate(
    entry: TableEntry,
    reason: str,
    excluded: bool,
    affordable: bool,
    estimate: Decimal | None,
    bounded: CostBound,
    score: float,
) -> RankedCandidate:
    model, condition, connection = entry.model, entry.condition, entry.connection
    latency = condition.latency.get(model.id) if model and condition.latency else None
    return RankedCandidate(
        provider=entry.vendor.id,
        model=model.id if model else None,
        reason=reason,
        score=round(score, 6),  # for people; ranked by all digits
        excluded=excluded,
        allowed=entry.allowed,
        affordable=affordable,
        connected=connection is not None,
        healthy=condition.wait_s <= 0,
        connection_id=connection.id if connection else None,
        estimated_cost_usd=estimate,
        reservation_usd=bounded.usd,
        max_tokens=bounded.max_tokens,
        latency_p50_ms=latency.p50 if latency else None,
        latency_p95_ms=latency.p95 if latency else None,
        error_rate=condition.error_rate,
        breaker=condition.state,
        quality=model.quality if model else None,
    )


def _weigh_fixed_shares(
    entries: Sequence[TableEntry], chosen: Sequence[int], weights: Weights
) -> list[FixedShares]:
    """Weigh each candidate's latency, quality and reliability against the best of the chosen."""
    taken = [p50 for n in chosen if (p50 := entries[n].latency_p50) is not None]
    fastest, slowest = min(taken, default=0.0), max(taken, default=0.0)
    finest = max((float(m.quality) for n in chosen if (m := entries[n].model)), default=0.0)
    shares = []
    for one in entries:
        own = slowest if one.latency_p50 is None else one.latency_p50
        quality = (one.model.quality if one.model else 0) / finest if finest else 1.0
        shares.append(
            (
                weights.latency * min(1.0, _compare_to_best(fastest, own)),
                weights.quality * min(1.0, quality),
                weights.reliability * min(1.0, 1.0 - (one.condition.error_rate or 0.0)),
            )
        )
    return shares


def _compare_to_best(best: float, own: float) -> float:
    """Return the best cost or time over a candidate's own; what costs nothing scores 1."""
    if own <= 0:
        return 1.0
    # A free candidate would make every other share 0, and hide how they differ.
    return best / own if best > 0 else 0.5 / (1.0 + own)


def _explain_first(
    first: RankedCandidate, capability: Capability, options: Options, *, has_best_score: bool
) -> str:
    is_default = first.provider == capability.default_provider
    if options.optimize_for is None:
        if not is_default:
            return f"{first.reason}; next in line"
        reason = "connected; the default provider"
        return reason if has_best_score else f"{reason}, before higher scores without optimize_for"
    best = {
        "cost": "the lowest expected cost",
        "latency": "the lowest latency observed",
        "quality": "the highest quality tier",
        "balanced": "the best balance",
    }[options.optimize_for]
    return f"{first.reason}; {best}"
