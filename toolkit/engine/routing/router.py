"""The router: chooses the connection and model that serve a job; a pure function."""

from collections.abc import Sequence
from typing import Any

from toolkit.contract.base import now
from toolkit.contract.errors import Detail, ErrorCode, RequestError, build_not_found
from toolkit.contract.ids import Prefix
from toolkit.contract.jobs import Options
from toolkit.contract.key_shapes import looks_like_key
from toolkit.contract.suggestions import ask_meant
from toolkit.engine.money.affordability import BudgetLeft
from toolkit.engine.ranking import NOT_CONNECTED, OTHER_MODEL, Ranking
from toolkit.engine.routing.provider_pool import MAX_TABLES, ProviderPool
from toolkit.engine.routing.provider_selection import ProviderSelection
from toolkit.engine.routing.routing_table import RoutingTable
from toolkit.engine.routing.table_entries import list_entries, name_abilities, serves
from toolkit.plugins import Capability, Model, Operation, Vendor
from toolkit.plugins.vendor import BATCHES

_CONNECTION_PREFIX = f"{Prefix.CONNECTION}_"


def check_servable(
    capability: Capability,
    options: Options,
    providers: ProviderPool,
    needs: frozenset[str] = frozenset(),
) -> None:
    """Refuse a request that no connection can serve, before anything is stored.

    A request that passed is not checked again in the same pool.

    Args:
        capability: the capability to serve.
        options: the options of the run.
        providers: the vendors, models and connections to choose from.
        needs: the abilities that a model must have.

    Raises:
        RequestError: `PROVIDER_NOT_ALLOWED` or `CREDENTIALS_MISSING`.
    """
    providers = providers.select(options)
    request = capability.name, options.endpoint_id, options.compute_id, needs
    if request not in providers.served:
        _check_request(capability, options, providers, needs)
        providers.served.add(request)


def _check_request(
    capability: Capability, options: Options, providers: ProviderPool, needs: frozenset[str]
) -> None:
    """Refuse a request that no connection of a pool, which was selected for it, can serve."""
    selection = providers.selection
    if selection.is_pin:
        _check_pin(capability, options, providers)
    else:
        _check_lists(selection, options, providers)
    listed = [
        vendor
        for vendor in providers.vendors
        if any(
            providers.admits(vendor.id, model)
            for model in providers.models.get(vendor.id) or (None,)
        )
    ]
    if not capability.needs_connection and not selection.is_pin:
        return
    if not listed:
        offer = ", ".join(vendor.id for vendor in providers.vendors)
        raise RequestError(
            ErrorCode.PROVIDER_NOT_ALLOWED,
            f"`only` and `ignore` leave no provider for `{capability.name}`. Allowed: {offer}.",
            details=[Detail("options.provider", "leaves no provider")],
        )
    kind = capability.operation.kind if capability.operation else ""
    usable = [v.id for v in listed if _is_usable(v, kind, options, providers)]
    if not usable and (selection.only or selection.ignore):
        limit, fault = "runs this only at your own endpoint", "is required with this provider"
        field = "options.endpoint_id"
        if options.compute_id is not None:
            limit, fault = "cannot run this in a pod", "cannot be used for this"
            field = "options.compute_id"
        elif options.endpoint_id is not None:
            limit, fault = "runs this only at its public endpoint", "cannot be used for this"
        raise RequestError(
            ErrorCode.PROVIDER_NOT_ALLOWED,
            f"`{listed[0].id}` {limit}.",
            details=[Detail(field, fault)],
        )
    if not any(providers.is_connected(vendor) for vendor in usable):
        raise RequestError(
            ErrorCode.CREDENTIALS_MISSING,
            f"`{capability.name}` needs a connection: register one of {', '.join(usable)}.",
        )
    _check_abilities(needs, usable, providers)


def _check_abilities(needs: frozenset[str], usable: Sequence[str], providers: ProviderPool) -> None:
    """Refuse a request that no connected model of the usable vendors can serve."""
    if not needs:
        return
    offering = [
        (vendor.id, model)
        for vendor in providers.vendors
        for model in providers.models.get(vendor.id, ())
        if needs <= model.abilities
    ]
    has_lists = not providers.selection.is_pin
    able = [v for v, model in offering if not has_lists or providers.admits(v, model)]
    if any(providers.is_connected(vendor) for vendor in usable if vendor in able):
        return
    abilities = " and ".join(name_abilities(needs))
    if has_lists and offering and not able:
        offer = ", ".join(dict.fromkeys(vendor for vendor, _ in offering))
        raise RequestError(
            ErrorCode.PROVIDER_NOT_ALLOWED,
            f"`only` and `ignore` leave no model with {abilities}. Allowed: {offer}.",
        )
    offer = ", ".join(dict.fromkeys(able)) or "no provider offers it"
    raise RequestError(
        ErrorCode.CREDENTIALS_MISSING,
        f"No connected model offers {abilities}: connect one of {offer}.",
    )


def _check_pin(capability: Capability, options: Options, providers: ProviderPool) -> None:
    """Refuse the pin of an unknown connection, or of a provider without this capability."""
    pin, allowed = options.pin or "", [vendor.id for vendor in providers.vendors]
    vendor_id = providers.find_provider(pin)
    if vendor_id is None and pin.startswith(_CONNECTION_PREFIX):
        raise build_not_found("connection", pin)
    if vendor_id not in allowed:
        offer = f" Allowed: {', '.join(allowed)}." if allowed else ""
        suggestion = f" {ask_meant(pin, allowed)}".rstrip()
        raise RequestError(
            ErrorCode.PROVIDER_NOT_ALLOWED,
            f"`{capability.name}` cannot be served by {_name_pin(vendor_id or pin)}."
            f"{suggestion}{offer}",
        )


def _check_lists(selection: ProviderSelection, options: Options, providers: ProviderPool) -> None:
    """Refuse names of providers and connections that do not exist, and of ignored models.

    A provider may have more models than its list here, so `only` may name any model of it. The pool
    of an endpoint or a pod lacks connections that did not rent it, so `ignore` may name any.
    """
    has_place = options.endpoint_id is not None or options.compute_id is not None
    vendors = {vendor.id: vendor for vendor in providers.vendors}
    for field, names in (("only", selection.only), ("ignore", selection.ignore)):
        for n, name in enumerate(names):
            owner, _, model = name.partition("/")
            provider, known = providers.find_provider(owner), list(providers.models)
            if provider is None and owner.startswith(_CONNECTION_PREFIX):
                if field == "ignore" and has_place:
                    continue
                raise build_not_found("connection", owner)
            if provider in vendors and field == "ignore" and model:
                models = (*vendors[provider].models, *providers.models.get(provider, ()))
                known = [f"{owner}/{each.id}" for each in models]
                provider = provider if name in known or not known else None
            if provider is None:
                suggestion = f" {ask_meant(name, known)}".rstrip()
                raise RequestError(
                    ErrorCode.PROVIDER_NOT_ALLOWED,
                    f"`{field}` names {_name_pin(name)}, which is unknown.{suggestion}",
                    details=[Detail(f"options.provider.{field}.{n}", "is unknown")],
                )


def _name_pin(provider: str) -> str:
    """Name the provider that a request names, unless the value may be a misplaced key."""
    return "the named provider" if looks_like_key(provider) else f"`{provider}`"


def is_servable(
    capability: Capability,
    options: Options,
    providers: ProviderPool,
    needs: frozenset[str] = frozenset(),
) -> bool:
    """Check whether the account has a connection and a model with the needed abilities."""
    providers = providers.select(options)
    kind = capability.operation.kind if capability.operation else ""
    return any(
        providers.is_connected(vendor.id) and _is_usable(vendor, kind, options, providers, needs)
        for vendor in providers.vendors
    )


def _is_usable(
    vendor: Vendor,
    kind: str,
    options: Options,
    providers: ProviderPool,
    needs: frozenset[str] = frozenset(),
) -> bool:
    """Check whether a vendor has a model to call, at the endpoint or pod of the options if any."""
    models = providers.models.get(vendor.id) or (Model("", kind),)
    return any(
        needs <= model.abilities
        and serves(vendor, model, options, providers)
        and providers.admits(vendor.id, model)
        for model in models
    )


def route(
    capability: Capability,
    options: Options,
    operation: Operation[Any] | None,
    providers: ProviderPool,
    budget_left: BudgetLeft | None = None,
    *,
    with_others: bool = False,
) -> Ranking:
    """Rank the candidates; the first that is not excluded is called first.

    A pin or lists leave only the candidates that they admit. Without `optimize_for`, the
    capability's default provider comes first, asked for its default model. With it, every model
    that a vendor may be asked for is scored (`RoutingTable`); ties go to the default provider, then
    by name. A candidate that is not connected, cools down or has failed this job is excluded, with
    the reason. Under a budget, a candidate is also excluded if it has no known bound, or may cost
    more than is left. Every connection is a candidate, in its vendor's order
    (`ProviderPool.rank_connections`).

    Args:
        capability: the capability to serve.
        options: the options of the run.
        operation: the operation to ask a vendor for; None if no vendor is needed.
        providers: the vendors, models and connections to choose from.
        budget_left: the amounts that budgets leave; by default the whole of the options' own.
        with_others: whether to include candidates that are not considered, because they are not
            connected or not their vendor's default model.
    """
    budget_left = BudgetLeft.of(options) if budget_left is None else budget_left
    table = find_table(
        capability, options, providers, find_needs(operation, options), with_others=with_others
    )
    return table.rank(operation, budget_left)


def find_needs(operation: Operation[Any] | None, options: Options) -> frozenset[str]:
    """Find the abilities that a model needs for an operation, which may wait for a batch."""
    needs = frozenset[str]() if operation is None else operation.abilities
    return needs | {BATCHES} if options.when == "batch" else needs


def find_table(
    capability: Capability,
    options: Options,
    providers: ProviderPool,
    needs: frozenset[str],
    *,
    with_others: bool = False,
) -> RoutingTable:
    """Return the compiled candidates for a request's options and needs, from the cache if there.

    `route` explains the arguments; the same arguments lead to the same table.
    """
    today = now().date()
    places = options.endpoint_id is not None, options.compute_id is not None
    policy = options.provider, options.optimize_for, options.asked_tier
    key = capability.name, *policy, places, today, needs, with_others
    table = providers.tables.get(key)
    if table is None:
        pool = providers.select(options)
        entries = [
            entry
            for entry in list_entries(capability, options, pool, today, needs)
            if with_others or entry.candidate.reason not in (NOT_CONNECTED, OTHER_MODEL)
        ]
        table = RoutingTable(capability, options, entries, providers.rankings, pool.usd_per_s)
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
