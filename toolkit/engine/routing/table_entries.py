"""The entries of a routing table: candidates before the work is known."""

from collections.abc import Iterator
from datetime import date

from toolkit.contract.connections import Connection
from toolkit.contract.jobs import Options
from toolkit.engine.ranking import NOT_CONNECTED, OTHER_MODEL, RankedCandidate
from toolkit.engine.routing.connection_health import HealthSnapshot
from toolkit.engine.routing.provider_pool import ProviderPool
from toolkit.engine.routing.routing_table import TableEntry
from toolkit.plugins import Capability, Model, Vendor
from toolkit.plugins.pricing import STANDARD_TIER, choose_tier


def serves(vendor: Vendor, model: Model, options: Options, providers: ProviderPool) -> bool:
    """Check whether a vendor's model can be called, at the options' endpoint or pod if any."""
    connections = providers.connections.get(vendor.id, ())
    return vendor.serves(
        model,
        pinned=providers.selection.names_provider(vendor.id, connections),
        endpoint=options.endpoint_id is not None,
        pod=options.compute_id is not None,
    )


def find_default_model(
    vendor: Vendor,
    connection: Connection | None,
    options: Options,
    providers: ProviderPool,
    needs: frozenset[str] = frozenset(),
) -> Model | None:
    """Return the model that a vendor is asked for by default, of those with the needed abilities.

    A model that the selection admits comes first. Returns the vendor's first model if no model can
    be called, and None if it has no models.
    """
    models = providers.models.get(vendor.id) or (None,)
    fit = [
        model
        for model in models
        if model is None or (serves(vendor, model, options, providers) and needs <= model.abilities)
    ]
    explain = providers.selection.explain_exclusion
    admitted = (m for m in fit if explain(vendor.id, connection, m) is None)
    return next(admitted, fit[0] if fit else models[0])


def list_entries(
    capability: Capability,
    options: Options,
    providers: ProviderPool,
    today: date,
    needs: frozenset[str] = frozenset(),
) -> Iterator[TableEntry]:
    """List the candidates: each vendor's models by its first connection, and spare connections.

    Spare connections come with eligible models only.

    Args:
        capability: the capability to serve.
        options: the options of the run.
        providers: the vendors, models and connections to choose from.
        today: the day, in UTC, for models that a vendor shuts down.
        needs: the abilities that a model must have.
    """
    failed_providers = {
        provider
        for provider, pool in providers.connections.items()
        if any(connection.id in providers.failed_ids for connection in pool)
    }
    for vendor in providers.vendors:
        models = providers.models.get(vendor.id) or (None,)
        connections = providers.rank_connections(vendor.id) or (None,)
        is_default = vendor.id == capability.default_provider
        led = options.optimize_for is None and is_default
        # Another connection of a vendor that was tried comes before another vendor.
        rank_before = vendor.id not in failed_providers, not led
        for n, connection in enumerate(connections):
            default = find_default_model(vendor, connection, options, providers, needs)
            for model in models:
                is_asked = options.optimize_for is not None or model is default
                if n and not is_asked:
                    continue
                second = default is None or (model and model.id) != default.id
                rank_after = not is_default, vendor.id, second, model.id if model else ""
                yield _make_entry(
                    vendor,
                    connection,
                    model,
                    options,
                    providers,
                    today,
                    needs,
                    is_asked,
                    rank_before,
                    rank_after,
                )


def name_abilities(abilities: frozenset[str]) -> list[str]:
    """Name abilities in words; reasoning and tools in one request are an ability of their own.

    >>> name_abilities(frozenset({"reasoning", "reasoning_with_tools", "stop", "tools"}))
    ['reasoning with tools', 'stop']
    """
    names = set(abilities)
    if "reasoning_with_tools" in names:
        names -= {"reasoning", "reasoning_with_tools", "tools"}
        names.add("reasoning with tools")
    return sorted(names)


def _make_entry(
    vendor: Vendor,
    connection: Connection | None,
    model: Model | None,
    options: Options,
    providers: ProviderPool,
    today: date,
    needs: frozenset[str],
    is_asked: bool,
    rank_before: tuple[bool, bool],
    rank_after: tuple[bool, str, bool, str],
) -> TableEntry:
    condition = providers.find_health(connection)
    selection = providers.selection
    unlisted = selection.explain_exclusion(vendor.id, connection, model)
    failed = connection is not None and connection.id in providers.failed_ids
    usable = model is None or serves(vendor, model, options, providers)
    has_ended = model is not None and model.has_ended(today)
    tier = choose_tier(model, options.asked_tier)
    lacking = name_abilities(needs - model.abilities) if model is not None else []
    is_barred = True
    if unlisted is not None and (connection is not None or not selection.is_pin):
        reason = unlisted
        if selection.is_pin:
            pool = providers.connections[vendor.id]
            other = "connection" if selection.names_provider(vendor.id, pool) else "provider"
            reason = f"another {other} is pinned"
    elif connection is None:
        reason = NOT_CONNECTED
    elif not usable:
        reason = "needs your own endpoint: set options.provider and options.endpoint_id"
        if model is not None and model.public:
            reason = "runs only at its vendor's public endpoint"
        elif options.compute_id is not None:
            reason = "cannot run this in a pod"
    elif lacking:
        reason = f"does not offer {', '.join(lacking)}"
    elif failed:
        reason = "failed this job before"
    elif condition.wait_s > 0:
        reason = condition.reason
    elif not is_asked:
        reason = OTHER_MODEL
    elif has_ended and model is not None:
        reason = f"shut down by its vendor on {model.ends}"
    else:
        is_barred = False
        reason = _explain_merit(vendor, connection, condition, providers)
        if options.asked_tier != STANDARD_TIER:
            has_tier = tier == options.asked_tier
            reason += f"; {tier} tier" if has_tier else f"; no {options.tier} tier: standard price"
    latency = None if model is None else condition.latency.get(model.id)
    candidate = RankedCandidate(
        provider=vendor.id,
        model=None if model is None else model.id,
        reason=reason,
        excluded=is_barred,
        allowed=unlisted is None and usable and not (failed or has_ended or lacking) and is_asked,
        connected=connection is not None,
        healthy=condition.wait_s <= 0,
        connection_id=None if connection is None else connection.id,
        latency_p50_ms=None if latency is None else latency.p50,
        latency_p95_ms=None if latency is None else latency.p95,
        error_rate=condition.error_rate,
        breaker=condition.state,
        quality=None if model is None else model.quality,
        tier=tier,
    )
    return TableEntry(
        vendor=vendor,
        model=model,
        candidate=candidate,
        is_trusted=model is None or model.id not in condition.overbilled,
        is_placed=vendor.runs_at_named_place(model),
        # The vendor refuses a tier that it cannot serve; another server may bill any tier.
        bound_tier=STANDARD_TIER if vendor.id in providers.replaced else tier,
        rank_before=rank_before,
        rank_after=rank_after,
    )


def _explain_merit(
    vendor: Vendor,
    connection: Connection,
    condition: HealthSnapshot,
    providers: ProviderPool,
) -> str:
    """Explain why a candidate that is not excluded may be called."""
    if providers.selection.is_pin:
        return "pinned by the request"
    if condition.unresolved:
        return "connected; its secret_ref led to no secret at the last call"
    if condition.state == "half_open":
        return "connected; the next call tests whether it has recovered"
    if connection is not providers.rank_connections(vendor.id)[0]:
        return providers.explain_order(connection)
    return "connected"
