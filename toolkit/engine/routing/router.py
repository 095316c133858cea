"""The router: chooses the connection and model that serve a job; a pure function."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from toolkit.contract.base import now
from toolkit.contract.connections import Connection
from toolkit.contract.errors import Detail, ErrorCode, RequestError, build_not_found
from toolkit.contract.ids import Prefix
from toolkit.contract.jobs import Options
from toolkit.contract.money import ZERO_USD, to_wire_usd
from toolkit.engine.job_record import RankedCandidate, Ranking
from toolkit.engine.money.affordability import BudgetLeft, explain_refusal, find_bound
from toolkit.engine.routing.provider_pool import ProviderPool, resolve_pin
from toolkit.plugins import Capability, Model, Operation, Vendor
from toolkit.plugins.pricing import calculate_cost


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
_CONNECTION_PREFIX = f"{Prefix.CONNECTION}_"
# Without `optimize_for`, each vendor is asked for its default model; this orders the vendors after
# the default one.
DEFAULT_WEIGHTS = Weights(cost=0.6, latency=0.2, reliability=0.2)


def check_servable(capability: Capability, options: Options, providers: ProviderPool) -> None:
    """Refuse a request that no connection can serve, before anything is stored.

    Raises:
        RequestError: `PROVIDER_NOT_ALLOWED` or `CREDENTIALS_MISSING`.
    """
    options, providers = resolve_pin(options, providers)
    allowed = [vendor.id for vendor in providers.vendors]
    if options.provider is not None and options.provider.startswith(_CONNECTION_PREFIX):
        raise build_not_found("connection", options.provider)
    if options.provider is not None and options.provider not in allowed:
        offer = f" Allowed: {', '.join(allowed)}." if allowed else ""
        raise RequestError(
            ErrorCode.PROVIDER_NOT_ALLOWED,
            f"`{capability.name}` cannot be served by the provider that was pinned.{offer}",
        )
    kind = capability.operation.kind if capability.operation else ""
    usable = [v.id for v in providers.vendors if _is_usable(v, kind, options, providers)]
    if options.provider is not None and options.provider not in usable:
        where, fault = "at an endpoint of yours alone", "is required with this provider"
        named = "options.endpoint_id"
        if options.compute_id is not None:
            where, fault, named = "in no pod", "cannot be used for this", "options.compute_id"
        elif options.endpoint_id is not None:
            where, fault = "at its public endpoint alone", "cannot be used for this"
        raise RequestError(
            ErrorCode.PROVIDER_NOT_ALLOWED,
            f"`{options.provider}` does this {where}.",
            details=[Detail(named, fault)],
        )
    wanted = [options.provider] if options.provider is not None else usable
    if options.provider is None and not capability.needs_connection:
        return
    if not any(providers.is_connected(vendor) for vendor in wanted):
        raise RequestError(
            ErrorCode.CREDENTIALS_MISSING,
            f"`{capability.name}` needs a connection: register one of {', '.join(wanted)}.",
        )


def is_servable(capability: Capability, options: Options, providers: ProviderPool) -> bool:
    """Tell whether any connection could run an operation that the capability can do without."""
    options, providers = resolve_pin(options, providers)
    kind = capability.operation.kind if capability.operation else ""
    return any(
        providers.is_connected(vendor.id) and _is_usable(vendor, kind, options, providers)
        for vendor in providers.vendors
    )


def _is_usable(vendor: Vendor, kind: str, options: Options, providers: ProviderPool) -> bool:
    """Tell whether a vendor has a model that can be called at the place the options name."""
    models = providers.models.get(vendor.id) or (Model("", kind),)
    return any(_serves(vendor, model, options) for model in models)


def _find_default_model(vendor: Vendor, options: Options, providers: ProviderPool) -> Model | None:
    """Return the model that a vendor is asked for by default."""
    models = providers.models.get(vendor.id) or (None,)
    return next((m for m in models if m is None or _serves(vendor, m, options)), models[0])


def _serves(vendor: Vendor, model: Model, options: Options) -> bool:
    return vendor.serves(
        model,
        pinned=options.provider == vendor.id,
        endpoint=options.endpoint_id is not None,
        pod=options.compute_id is not None,
    )


def route(
    capability: Capability,
    options: Options,
    operation: Operation[Any] | None,
    providers: ProviderPool,
    budget_left: BudgetLeft | None = None,
) -> Ranking:
    """Rank the candidates; the first that is not excluded is called first.

    A pin leaves only its provider. Without `optimize_for`, the capability's default provider comes
    first, asked for its default model. With it, every model that a vendor may be asked for is
    scored (see `score`); ties go to the default provider, then by name. What is not connected,
    cools down or has failed this job is excluded, and says so. Under a budget so is what has no
    known bound, and what may come to more than is left. Every connection of a vendor is a
    candidate, in the order in which they are used (`ProviderPool.rank_connections`).

    Args:
        capability: the capability to serve.
        options: the options of the run.
        operation: the operation to ask a vendor for; none where no vendor is needed.
        providers: the vendors, models and connections to choose from.
        budget_left: what budgets leave; by default the whole of the options' own.
    """
    budget_left = BudgetLeft.of(options) if budget_left is None else budget_left
    options, providers = resolve_pin(options, providers)
    tried = {
        p
        for p, pool in providers.connections.items()
        if any(c.id in providers.failed_ids for c in pool)
    }
    candidates = [
        _make_candidate(vendor, connection, model, options, operation, providers, budget_left)
        for vendor, connection, model in _pair_models(options, providers)
    ]
    defaults = {v.id: _find_default_model(v, options, providers) for v in providers.vendors}
    weights = WEIGHTS.get(options.optimize_for or "", DEFAULT_WEIGHTS)
    best = _Best.of([c for c in candidates if not c.excluded] or candidates)
    for candidate in candidates:
        candidate.score = score(candidate, best, weights)
    # A vendor's model ranks by the first connection that it may be called by.
    scores: dict[tuple[str, str | None], float] = {}
    for candidate in sorted(candidates, key=lambda one: one.excluded):
        scores.setdefault((candidate.provider, candidate.model), candidate.score or 0.0)

    def rank(candidate: RankedCandidate) -> tuple[object, ...]:
        is_default = candidate.provider == capability.default_provider
        led = options.optimize_for is None and is_default
        scored = -scores[candidate.provider, candidate.model]
        default = defaults[candidate.provider]
        second = default is None or candidate.model != default.id
        name = (not is_default, candidate.provider, second, candidate.model or "")
        # Another connection of a vendor that was tried comes before another vendor.
        other = candidate.provider not in tried
        return candidate.excluded, other, not led, scored, *name

    ranked = sorted(candidates, key=rank)
    for candidate in candidates:
        candidate.score = round(candidate.score or 0.0, 6)  # for people; ranked by all digits
    ranking = Ranking(_name_policy(options), ranked)
    first = ranking.first_choice
    if first is not None and options.provider is None:
        first.reason = _explain_first(first, capability, options)
    return ranking


def find_soonest_s(routing: Ranking, providers: ProviderPool) -> float | None:
    """Return the seconds until a candidate that only cools down may be called; none if none."""
    waits = [
        providers.find_health(providers.find_connection(c)).wait_s
        for c in routing.candidates
        if c.connected and not c.healthy and c.allowed and c.affordable
    ]
    return min(waits, default=None)


@dataclass(frozen=True, slots=True)
class _Best:
    """The best of each property among those that can be chosen."""

    cost: float
    latency: float
    slowest: float
    quality: float

    @classmethod
    def of(cls, candidates: Sequence[RankedCandidate]) -> "_Best":
        costs = [c.estimated_cost_usd for c in candidates if c.estimated_cost_usd is not None]
        taken = [c.latency_p50_ms for c in candidates if c.latency_p50_ms is not None]
        return cls(
            cost=to_wire_usd(min(costs, default=ZERO_USD)),
            latency=min(taken, default=0.0),
            slowest=max(taken, default=0.0),
            quality=max((float(c.quality or 0) for c in candidates), default=0.0),
        )


def score(candidate: RankedCandidate, best: _Best, weights: Weights) -> float:
    """Score a candidate, from 0 to 1, by a weighted sum of four shares of the best.

    - cost: the lowest expected dollars for this very input over its own; 0 if its price is
      unknown, which is never cheap; 1 if it is free.
    - latency: the lowest median over its own; one never called counts as the slowest known.
    - quality: its tier over the best tier.
    - reliability: the share of its last calls that worked; 1 before the first.

    Every share falls as its property gets worse, so a candidate that is worse in one and better in
    none never comes first.
    """
    cost, taken = to_wire_usd(candidate.estimated_cost_usd), candidate.latency_p50_ms
    taken = best.slowest if taken is None else taken
    shares = (
        (weights.cost, 0.0 if cost is None else _compare_to_best(best.cost, cost)),
        (weights.latency, _compare_to_best(best.latency, taken)),
        (weights.quality, (candidate.quality or 0) / best.quality if best.quality else 1.0),
        (weights.reliability, 1.0 - (candidate.error_rate or 0.0)),
    )
    return sum(weight * min(1.0, share) for weight, share in shares)


def _compare_to_best(best: float, own: float) -> float:
    """Return the best cost or time over a candidate's own; what costs nothing scores 1."""
    if own <= 0:
        return 1.0
    # A free candidate would make every other share 0, and hide how they differ.
    return best / own if best > 0 else 0.5 / (1.0 + own)


def _pair_models(
    options: Options, providers: ProviderPool
) -> Iterator[tuple[Vendor, Connection | None, Model | None]]:
    """Pair each vendor's connections and models; spare connections with eligible models only."""
    for vendor in providers.vendors:
        models = providers.models.get(vendor.id) or (None,)
        default = _find_default_model(vendor, options, providers)
        asked = models if options.optimize_for is not None else (default,)
        first, *spare = providers.rank_connections(vendor.id) or (None,)
        yield from ((vendor, first, model) for model in models)
        yield from ((vendor, one, model) for one in spare for model in asked)


def _make_candidate(
    vendor: Vendor,
    connection: Connection | None,
    model: Model | None,
    options: Options,
    operation: Operation[Any] | None,
    providers: ProviderPool,
    budget_left: BudgetLeft,
) -> RankedCandidate:
    condition = providers.find_health(connection)
    estimate = _estimate(vendor, model, options, operation)
    bounded = find_bound(vendor, model, options, operation, budget_left, providers.usd_per_s)
    latency = condition.latency.get(model.id if model else "")
    its_vendor = options.provider in (None, vendor.id)
    allowed = its_vendor and (connection is None or providers.pinned_id in (None, connection.id))
    asked = options.optimize_for is not None or model is _find_default_model(
        vendor, options, providers
    )
    failed = connection is not None and connection.id in providers.failed_ids
    usable = model is None or _serves(vendor, model, options)
    healthy = condition.wait_s <= 0
    ended = model is not None and model.has_ended(now().date())
    trusted = not budget_left.is_limited or model is None or model.id not in condition.overbilled
    affordable = budget_left.covers(bounded.usd) and trusted
    reason = "connected"
    if connection is None:
        reason = "not connected"
    elif not allowed:
        reason = f"another {'connection' if its_vendor else 'provider'} is pinned"
    elif not usable:
        reason = "needs an endpoint of yours: options.provider with options.endpoint_id"
        if model is not None and model.public:
            reason = "runs at its vendor's public endpoint alone"
        elif options.compute_id is not None:
            reason = "does not do this in a pod"
    elif failed:
        reason = "failed this job before"
    elif not healthy:
        reason = condition.reason
    elif not asked:
        reason = "not its default model"
    elif ended and model is not None:
        reason = f"shut down by its vendor on {model.ends}"
    elif not affordable:
        placed = vendor.runs_at_named_place(model) and options.endpoint_id is not None
        reason = explain_refusal(
            bounded, estimate, budget_left, operation, trusted=trusted, placed=placed
        )
    elif options.provider is not None:
        reason = "pinned by the request"
    elif condition.unresolved:
        reason = "connected; its pointer led to no secret when it was last asked for"
    elif condition.state == "half_open":
        reason = "connected; the next call finds out whether it has recovered"
    elif connection is not providers.rank_connections(vendor.id)[0]:
        reason = providers.explain_order(connection)
    return RankedCandidate(
        provider=vendor.id,
        model=model.id if model else None,
        reason=reason,
        excluded=not all(
            (connection, allowed, usable, not failed, healthy, asked, not ended, affordable)
        ),
        allowed=allowed and usable and not failed and asked and not ended,
        affordable=affordable,
        connected=connection is not None,
        healthy=healthy,
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


def _estimate(
    vendor: Vendor, model: Model | None, options: Options, operation: Operation[Any] | None
) -> Decimal | None:
    """Estimate what a candidate costs at the place where it is to run."""
    placed = vendor.runs_at_named_place(model)
    if placed and options.compute_id is not None:
        return ZERO_USD  # a pod is billed by the hour, whatever it does
    if placed and options.endpoint_id is not None:
        return None  # billed by the GPU second, of which the number is unknown before
    return estimate_usd(operation, model)


def _explain_first(first: RankedCandidate, capability: Capability, options: Options) -> str:
    is_default = first.provider == capability.default_provider
    if options.optimize_for is None:
        return "connected; the default provider" if is_default else f"{first.reason}; next in line"
    best = {
        "cost": "the lowest expected cost",
        "latency": "the lowest latency observed",
        "quality": "the highest quality tier",
        "balanced": "the best balance",
    }[options.optimize_for]
    return f"{first.reason}; {best}"


def _name_policy(options: Options) -> str:
    return "pinned" if options.provider else options.optimize_for or "default"


def estimate_usd(operation: Operation[Any] | None, model: Model | None) -> Decimal | None:
    """Estimate the most that an operation costs; none where the price is unknown."""
    if operation is None:
        return ZERO_USD
    return calculate_cost(model, operation.units()) if model is not None else None
