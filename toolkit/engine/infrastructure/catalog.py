"""The catalogue: the connected cloud's GPUs, cached for a few minutes, and vendors' models."""

import time
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal

from toolkit.contract.base import now
from toolkit.contract.catalog import CatalogModel, CatalogPriceChange, CatalogPriceTier, Gpu
from toolkit.contract.errors import Detail, ErrorCode, RequestError, ServiceError, WorkError
from toolkit.contract.money import to_wire_usd
from toolkit.engine.context import EngineContext
from toolkit.engine.request_context import RequestContext
from toolkit.engine.routing.model_offers import list_known_models
from toolkit.plugins import Model, PriceTier, ProviderError, Vendor
from toolkit.plugins.infrastructure import GpuListing, GpuOffer
from toolkit.store import ReadScope

CACHE_TTL_S = 300.0
KEY_ERRORS = (ErrorCode.PROVIDER_AUTH_FAILED, ErrorCode.SECRET_UNRESOLVED)
MAX_NAMED = 12  # the maximum number of catalogue entries in an error message


class Catalog:
    """The operations of `/v1/catalog`: GPUs of the connected cloud, and models with prices."""

    def __init__(self, core: EngineContext) -> None:
        self._core = core
        self._cached_offers: dict[str, tuple[float, tuple[GpuOffer, ...]]] = {}

    async def list_gpus(self, context: RequestContext) -> list[Gpu]:
        """List the GPUs of the cloud that the account has connected, with list prices.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, also for a key that the cloud rejects.
            ServiceError: `UNAVAILABLE` if the cloud did not answer.
        """
        vendor, _ = await self._core.directory.find_cloud(context.scope, GpuListing.kind)
        try:
            offers = await self._fetch_offers(context.scope)
        except (ProviderError, WorkError) as error:
            if error.code in KEY_ERRORS:
                raise RequestError(ErrorCode.CREDENTIALS_MISSING, error.message) from None
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                f"The catalogue cannot be read now: {error.message}",
                retry_after=error.retry_after,
            ) from None
        return [_to_gpu(vendor.id, offer) for offer in offers]

    def list_models(self) -> list[CatalogModel]:
        """List every vendor's models, and the operator's own models, with their prices."""
        settings, today = self._core.settings.vendors, now().date()
        return [
            _to_catalog_model(vendor, model, today)
            for vendor in self._core.registry.vendors.values()
            for model in list_known_models(vendor, settings.get(vendor.id), today)
        ]

    async def check_gpu(self, scope: ReadScope, gpu_type: str) -> None:
        """Refuse a GPU that is not in the catalogue; pass if the catalogue cannot be read.

        Raises:
            RequestError: `INVALID_REQUEST`, `CREDENTIALS_MISSING`.
        """
        gpu_ids = {offer.id for offer in await self._try_fetch_offers(scope)}
        _check_known("gpu_type", gpu_type, gpu_ids)

    async def check_pool(self, scope: ReadScope, pool: str) -> None:
        """Refuse a pool that is not in the catalogue; pass if the catalogue cannot be read.

        Raises:
            RequestError: `INVALID_REQUEST`, `CREDENTIALS_MISSING`.
        """
        pools = {offer.pool for offer in await self._try_fetch_offers(scope) if offer.pool}
        _check_known("gpu_ids", pool, pools)

    async def find_pool_price(self, scope: ReadScope, pool: str) -> float | None:
        """Find the highest list price of a serverless worker's hour in a pool; None if unknown."""
        offers = await self._try_fetch_offers(scope)
        prices = [offer.usd_per_hour.get("serverless") for offer in offers if offer.pool == pool]
        if not prices or None in prices:
            return None
        return to_wire_usd(max(price for price in prices if price is not None))

    async def _try_fetch_offers(self, scope: ReadScope) -> tuple[GpuOffer, ...]:
        try:
            return await self._fetch_offers(scope)
        except (ProviderError, WorkError):
            return ()  # the cloud itself reports it when a resource is created

    async def _fetch_offers(self, scope: ReadScope) -> tuple[GpuOffer, ...]:
        vendor, connection = await self._core.directory.find_cloud(scope, GpuListing.kind)
        at, offers = self._cached_offers.get(connection.id, (0.0, ()))
        if not offers or time.monotonic() - at > CACHE_TTL_S:
            offers = (await self._core.ask_vendor(vendor, connection, GpuListing())).gpus
            now = time.monotonic()
            recent_offers = {
                key: entry
                for key, entry in self._cached_offers.items()
                if now - entry[0] <= CACHE_TTL_S
            }
            self._cached_offers = {**recent_offers, connection.id: (now, offers)}
        return offers


def _check_known(field: str, value: str, ids: set[str]) -> None:
    if ids and value not in ids:
        names = sorted(ids)
        listing = ", ".join(names[:MAX_NAMED]) + (", …" if len(names) > MAX_NAMED else "")
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "Choose an id from the GPU catalogue (GET /v1/catalog/gpus).",
            details=[Detail(field, f"is not one of {listing}")],
        )


def _to_catalog_model(vendor: Vendor, model: Model, today: date) -> CatalogModel:
    return CatalogModel(
        id=f"{vendor.id}/{model.kind}/{model.id}",
        provider=vendor.id,
        model=model.id,
        kind=model.kind,
        default=model.default,
        quality=model.quality,
        abilities=sorted(model.abilities),
        prices_usd=_to_wire_prices(model.prices),
        price_tiers=_to_wire_tiers(model.tiers),
        price_changes=[
            CatalogPriceChange(
                since=change.since,
                prices_usd=_to_wire_prices(change.prices),
                price_tiers=_to_wire_tiers(change.tiers),
            )
            for change in model.changes
            if change.since > today
        ],
        batch_share=None if model.batch is None else float(model.batch),
        service_tier_shares={name: float(share) for name, share in model.service_tiers.items()},
        bound=vendor.find_bound_source(model),
        ends=model.ends,
        successor=model.successor or None,
        as_of=model.as_of,
        source=model.source,
    )


def _to_wire_tiers(tiers: Sequence[PriceTier]) -> list[CatalogPriceTier]:
    return [
        CatalogPriceTier(above_input_tokens=tier.above, prices_usd=_to_wire_prices(tier.prices))
        for tier in tiers
    ]


def _to_wire_prices(prices: Mapping[str, Decimal]) -> dict[str, float]:
    return {unit: to_wire_usd(usd) for unit, usd in prices.items()}


def _to_gpu(provider: str, offer: GpuOffer) -> Gpu:
    return Gpu(
        id=offer.id,
        provider=provider,
        name=offer.name,
        pool=offer.pool,
        memory_gb=offer.memory_gb,
        prices_per_hour_usd=_to_wire_prices(offer.usd_per_hour),
    )
