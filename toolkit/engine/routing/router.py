"""The router: chooses the connection and model that serve a job; a pure function."""

from typing import Any

from toolkit.contract.base import now
from toolkit.contract.errors import Detail, ErrorCode, RequestError, build_not_found
from toolkit.contract.ids import Prefix
from toolkit.contract.jobs import Options
from toolkit.contract.key_shapes import looks_like_key
from toolkit.contract.suggestions import ask_meant
from toolkit.engine.money.affordability import BudgetLeft
from toolkit.engine.ranking import Ranking
from toolkit.engine.routing.provider_pool import MAX_TABLES, ProviderPool, resolve_pin
from toolkit.engine.routing.routing_table import RoutingTable
from toolkit.engine.routing.table_entries import list_entries, serves
from toolkit.plugins import Capability, Model, Operation, Vendor

_CONNECTION_PREFIX = f"{Prefix.CONNECTION}_"


def check_servable(
    capability: Capability,
    options: Options,
    providers: ProviderPool,
    needs: frozenset[str] = frozenset(),
) -> None:
    """Refuse a request that no connection can serve, before anything is stored.

    Args:
        capability: the capability to serve.
        options: the options of the run.
        providers: the vendors, models and connections to choose from.
        needs: the abilities that a model must have.

    Raises:
        RequestError: `PROVIDER_NOT_ALLOWED` or `CREDENTIALS_MISSING`.
    """
    options, providers = resolve_pin(options, providers)
    allowed = [vendor.id for vendor in providers.vendors]
    if options.provider is not None and options.provider.startswith(_CONNECTION_PREFIX):
        raise build_not_found("connection", options.provider)
    if options.provider is not None and options.provider not in allowed:
        offer = f" Allowed: {', '.join(allowed)}." if allowed else ""
        suggestion = f" {ask_meant(options.provider, allowed)}".rstrip()
        raise RequestError(
            ErrorCode.PROVIDER_NOT_ALLOWED,
            f"`{capability.name}` cannot be served by {_name_pin(options.provider)}."
            f"{suggestion}{offer}",
        )
    kind = capability.operation.kind if capability.operation else ""
    usable = [v.id for v in providers.vendors if _is_usable(v, kind, options, providers)]
    if options.provider is not None and options.provider not in usable:
        limit, fault = "runs this only at your own endpoint", "is required with this provider"
        field = "options.endpoint_id"
        if options.compute_id is not None:
            limit, fault = "cannot run this in a pod", "cannot be used for this"
            field = "options.compute_id"
        elif options.endpoint_id is not None:
            limit, fault = "runs this only at its public endpoint", "cannot be used for this"
        raise RequestError(
            ErrorCode.PROVIDER_NOT_ALLOWED,
            f"`{options.provider}` {limit}.",
            details=[Detail(field, fault)],
        )
    provider_ids = [options.provider] if options.provider is not None else usable
    if options.provider is None and not capability.needs_connection:
        return
    if not any(providers.is_connected(vendor) for vendor in provider_ids):
        raise RequestError(
            ErrorCode.CREDENTIALS_MISSING,
            f"`{capability.name}` needs a connection: register one of {', '.join(provider_ids)}.",
        )
    able = [
        vendor.id
        for vendor in providers.vendors
        if any(needs <= model.abilities for model in providers.models.get(vendor.id, ()))
    ]
    if needs and not any(
        providers.is_connected(vendor) for vendor in provider_ids if vendor in able
    ):
        raise RequestError(
            ErrorCode.CREDENTIALS_MISSING,
            f"No connected model offers {' and '.join(sorted(needs))}: connect one of"
            f" {', '.join(able) or 'no provider offers it'}.",
        )


def _name_pin(provider: str) -> str:
    """Name the provider that was pinned, unless the value may be a misplaced key."""
    return "the pinned provider" if looks_like_key(provider) else f"`{provider}`"


def is_servable(capability: Capability, options: Options, providers: ProviderPool) -> bool:
    """Check whether any connection could run an optional operation of the capability."""
    options, providers = resolve_pin(options, providers)
    kind = capability.operation.kind if capability.operation else ""
    return any(
        providers.is_connected(vendor.id) and _is_usable(vendor, kind, options, providers)
        for vendor in providers.vendors
    )


def _is_usable(vendor: Vendor, kind: str, options: Options, providers: ProviderPool) -> bool:
    """Check whether a vendor has a model that can be called at the place the options name."""
    models = providers.models.get(vendor.id) or (Model("", kind),)
    return any(serves(vendor, model, options) for model in models)


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
    scored (`RoutingTable`); ties go to the default provider, then by name. A candidate that is not
    connected, cools down or has failed this job is excluded, with the reason. Under a budget, a
    candidate is also excluded if it has no known bound, or may cost more than is left. Every
    connection is a candidate, in its vendor's order (`ProviderPool.rank_connections`).

    Args:
        capability: the capability to serve.
        options: the options of the run.
        operation: the operation to ask a vendor for; None if no vendor is needed.
        providers: the vendors, models and connections to choose from.
        budget_left: the amounts that budgets leave; by default the whole of the options' own.
    """
    budget_left = BudgetLeft.of(options) if budget_left is None else budget_left
    needs = frozenset[str]() if operation is None else operation.abilities
    return _find_table(capability, options, providers, needs).rank(operation, budget_left)


def _find_table(
    capability: Capability, options: Options, providers: ProviderPool, needs: frozenset[str]
) -> RoutingTable:
    """Find the table of a policy and of needed abilities that the pool has, or compile it."""
    today = now().date()
    places = options.endpoint_id is not None, options.compute_id is not None
    key = capability.name, options.provider, options.optimize_for, places, today, needs
    table = providers.tables.get(key)
    if table is None:
        pinned, pool = resolve_pin(options, providers)
        entries = list(list_entries(capability, pinned, pool, today, needs))
        table = RoutingTable(capability, pinned, entries, providers.rankings, pool.usd_per_s)
        if len(providers.tables) >= MAX_TABLES:
            providers.tables.clear()
        providers.tables[key] = table
    return table


def find_soonest_s(routing: Ranking, providers: ProviderPool) -> float | None:
    """Return the seconds until a candidate that only cools down may be called, or None."""
    waits = [
        providers.find_health(providers.find_connection(c)).wait_s
        for c in routing.candidates
        if c.connected and not c.healthy and c.allowed and c.affordable
    ]
    return min(waits, default=None)
