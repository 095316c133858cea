"""The catalogue: what the connected GPU cloud rents out, and every vendor's models."""

from datetime import date

from toolkit.contract.base import Record, Usd


class Gpu(Record):
    """A GPU: `id` is what a compute's `gpu_type` takes, `pool` what an endpoint's `gpu_ids` does.

    Attributes:
        provider: the GPU cloud that offers it.
        memory_gb: of one GPU; none where the vendor does not say.
        prices_per_hour_usd: list prices of one GPU by tier, such as `secure` or `serverless`.
    """

    id: str
    provider: str
    name: str
    pool: str
    memory_gb: int | None = None
    prices_per_hour_usd: dict[str, Usd] = {}


class CatalogPriceTier(Record):
    """The prices of a request whose input has more than `above_input_tokens` tokens."""

    above_input_tokens: int
    prices_usd: dict[str, Usd]


class CatalogPriceChange(Record):
    """The prices of a model from the day `since` on, as its vendor announced them."""

    since: date
    prices_usd: dict[str, Usd]
    price_tiers: list[CatalogPriceTier] = []


class CatalogModel(Record):
    """A vendor's model with its list prices.

    Attributes:
        id: provider and model.
        kind: the kind of operation, such as `text` or `image`.
        default: whether it is asked for when nobody named one.
        quality: its tier: 1 economy, 2 standard, 3 premium.
        prices_usd: of one unit, by unit; what is not known is left out, and 0 is really 0.
        price_tiers: the prices of longer inputs, which then hold for all of a request.
        price_changes: announced changes of the prices that are still to come, the earliest first.
        batch_share: the share of the prices that the vendor's batch API takes; none without one.
        service_tier_shares: the share of the prices that each other service tier takes, by our
            name of the tier: `flex` or `priority`.
        bound: what the most that a call may come to rests on; none where it has no bound, so that
            it cannot be used under a budget.
        ends: the day on which the vendor shuts it down, where that is announced.
        successor: the model that the vendor names instead.
        as_of: the day of the prices.
        source: where they were read.
    """

    id: str
    provider: str
    model: str
    kind: str
    default: bool = False
    quality: int = 1
    prices_usd: dict[str, Usd] = {}
    price_tiers: list[CatalogPriceTier] = []
    price_changes: list[CatalogPriceChange] = []
    batch_share: float | None = None
    service_tier_shares: dict[str, float] = {}
    bound: str | None = None
    ends: date | None = None
    successor: str | None = None
    as_of: str = ""
    source: str = ""
