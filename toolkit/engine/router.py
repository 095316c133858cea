"""The router: which connection serves a job. Pure: it is told all it weighs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from toolkit.contract.connections import Connection
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.jobs import Candidate, Options, Routing
from toolkit.plugins import Capability, Model, Operation, Vendor
from toolkit.plugins.pricing import price


@dataclass(frozen=True, slots=True)
class Backends:
    """What the router weighs.

    Attributes:
        vendors: those that can serve the capability, in catalogue order.
        connections: the account's connection at each vendor it has one at.
        models: the model to ask each vendor for.
        latency_ms: what calls to each vendor have taken lately, where any were made.
    """

    vendors: Sequence[Vendor]
    connections: Mapping[str, Connection]
    models: Mapping[str, Model | None]
    latency_ms: Mapping[str, float]


def check(capability: Capability, options: Options, backends: Backends) -> None:
    """Refuse a request that no connection can serve, before anything is stored.

    Raises:
        RequestError: `PROVIDER_NOT_ALLOWED` or `CREDENTIALS_MISSING`.
    """
    allowed = [vendor.id for vendor in backends.vendors]
    if options.provider is not None and options.provider not in allowed:
        offer = f" Allowed: {', '.join(allowed)}." if allowed else ""
        raise RequestError(
            ErrorCode.PROVIDER_NOT_ALLOWED,
            f"`{capability.name}` cannot be served by the provider that was pinned.{offer}",
        )
    wanted = [options.provider] if options.provider is not None else allowed
    if options.provider is None and not capability.needs_connection:
        return
    if not any(vendor in backends.connections for vendor in wanted):
        raise RequestError(
            ErrorCode.CREDENTIALS_MISSING,
            f"`{capability.name}` needs a connection: register one of {', '.join(wanted)}.",
        )


def route(
    capability: Capability,
    options: Options,
    operation: Operation[Any] | None,
    backends: Backends,
) -> Routing:
    """Rank the backends; the first candidate that is not excluded is called first.

    A pin wins over everything. `cost` ranks by the expected dollars of this input, unknown prices
    last; `latency` by what calls have taken lately, vendors never called last. Ties, and every
    other policy, go to the capability's default provider, then by name.
    """
    candidates = [_candidate(vendor, options, operation, backends) for vendor in backends.vendors]

    def rank(candidate: Candidate) -> tuple[object, ...]:
        default_first = candidate.provider != capability.default_provider
        key: float | None = None
        if options.optimize_for == "cost":
            key = candidate.estimated_cost_usd
        elif options.optimize_for == "latency":
            key = backends.latency_ms.get(candidate.provider)
        unknown = key is None
        return candidate.excluded, unknown, key or 0.0, default_first, candidate.provider

    ranked = sorted(candidates, key=rank)
    for place, candidate in enumerate(c for c in ranked if not c.excluded):
        candidate.score = 1.0 / (1 + place)
        if candidate.provider == capability.default_provider and options.provider is None:
            candidate.reason = "connected; the default provider"
    policy = "pinned" if options.provider else options.optimize_for or "default"
    return Routing(policy=policy, candidates=ranked)


def _candidate(
    vendor: Vendor, options: Options, operation: Operation[Any] | None, backends: Backends
) -> Candidate:
    connection = backends.connections.get(vendor.id)
    model = backends.models.get(vendor.id)
    # What an endpoint of one's own costs depends on how long its GPU takes: nobody knows before.
    own_gpu = options.endpoint_id is not None and bool(vendor.infrastructure)
    estimate = None if own_gpu else estimate_usd(operation, model)
    reason, excluded = "connected", False
    if connection is None:
        reason, excluded = "not connected", True
    elif options.provider is not None:
        excluded = vendor.id != options.provider
        reason = "another provider is pinned" if excluded else "pinned by the request"
    return Candidate(
        provider=vendor.id,
        model=model.id if model else None,
        reason=reason,
        excluded=excluded,
        connection_id=connection.id if connection else None,
        estimated_cost_usd=None if estimate is None else float(estimate),
    )


def estimate_usd(operation: Operation[Any] | None, model: Model | None) -> Decimal | None:
    """The most an operation is expected to cost; none where the price is unknown."""
    if operation is None:
        return Decimal(0)
    return price(model, operation.units()) if model is not None else None
