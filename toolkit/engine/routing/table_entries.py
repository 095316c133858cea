"""The entries of a routing table: candidates before the work is known."""

from collections.abc import Iterator
from datetime import date

from toolkit.contract.connections import Connection
from toolkit.contract.jobs import Options
from toolkit.engine.ranking import RankedCandidate
from toolkit.engine.routing.connection_health import HealthSnapshot
from toolkit.engine.routing.provider_pool import ProviderPool
from toolkit.engine.routing.routing_table import TableEntry
from toolkit.plugins import Capability, Model, Vendor


def serves(vendor: Vendor, model: Model, options: Options) -> bool:
    """Check whether a vendor's model can be called at the place that options name."""
    return vendor.serves(
        model,
        pinned=options.provider == vendor.id,
        endpoint=options.endpoint_id is not None,
        pod=options.compute_id is not None,
    )


def find_default_model(
    vendor: Vendor, options: Options, providers: ProviderPool, needs: frozenset[str] = frozenset()
) -> Model | None:
    """Return the model that a vendor is asked for by default, of those with the needed abilities.

    Returns the vendor's first model if no model can be called.
    """
    models = providers.models.get(vendor.id) or (None,)
    fit = (m for m in models if m is None or (serves(vendor, m, options) and needs <= m.abilities))
    return next(fit, models[0])


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
        default = find_default_model(vendor, options, providers, needs)
        first, *spare = providers.rank_connections(vendor.id) or (None,)
        is_default = vendor.id == capability.default_provider
        led = options.optimize_for is None and is_default
        # Another connection of a vendor that was tried comes before another vendor.
        rank_before = vendor.id not in failed_providers, not led
        spare_models = models if options.optimize_for is not None else (default,)
        pairs = [(first, model) for model in models]
        pairs += [(connection, model) for connection in spare for model in spare_models]
        for connection, model in pairs:
            second = default is None or (model and model.id) != default.id
            rank_after = not is_default, vendor.id, second, model.id if model else ""
            is_asked = options.optimize_for is not None or model is default
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
    its_vendor = options.provider in (None, vendor.id)
    allowed = its_vendor and (connection is None or providers.pinned_id in (None, connection.id))
    failed = connection is not None and connection.id in providers.failed_ids
    usable = model is None or serves(vendor, model, options)
    has_ended = model is not None and model.has_ended(today)
    lacking = sorted(needs - model.abilities) if model is not None else []
    is_barred = True
    if connection is None:
        reason = "not connected"
    elif not allowed:
        reason = f"another {'connection' if its_vendor else 'provider'} is pinned"
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
        reason = "not its default model"
    elif has_ended and model is not None:
        reason = f"shut down by its vendor on {model.ends}"
    else:
        is_barred = False
        reason = _explain_merit(vendor, connection, condition, options, providers)
    latency = None if model is None else condition.latency.get(model.id)
    candidate = RankedCandidate(
        provider=vendor.id,
        model=None if model is None else model.id,
        reason=reason,
        excluded=is_barred,
        allowed=allowed and usable and not (failed or has_ended or lacking) and is_asked,
        connected=connection is not None,
        healthy=condition.wait_s <= 0,
        connection_id=None if connection is None else connection.id,
        latency_p50_ms=None if latency is None else latency.p50,
        latency_p95_ms=None if latency is None else latency.p95,
        error_rate=condition.error_rate,
        breaker=condition.state,
        quality=None if model is None else model.quality,
    )
    return TableEntry(
        vendor=vendor,
        model=model,
        candidate=candidate,
        is_trusted=model is None or model.id not in condition.overbilled,
        is_placed=vendor.runs_at_named_place(model),
        rank_before=rank_before,
        rank_after=rank_after,
    )


def _explain_merit(
    vendor: Vendor,
    connection: Connection,
    condition: HealthSnapshot,
    options: Options,
    providers: ProviderPool,
) -> str:
    """Explain why a candidate that is not excluded may be called."""
    if options.provider is not None:
        return "pinned by the request"
    if condition.unresolved:
        return "connected; its secret_ref led to no secret at the last call"
    if condition.state == "half_open":
        return "connected; the next call tests whether it has recovered"
    if connection is not providers.rank_connections(vendor.id)[0]:
        return providers.explain_order(connection)
    return "connected"
