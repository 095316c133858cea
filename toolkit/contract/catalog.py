"""The catalogue: the GPUs of the connected GPU cloud, and the models of every vendor."""

from datetime import date

from toolkit.contract.base import Record, Usd


class Gpu(Record):
    """A GPU: `id` is for a compute's `gpu_type`, `pool` for an endpoint's `gpu_ids`.

    Attributes:
        provider: the GPU cloud that offers it.
        memory_gb: memory of one GPU, in gigabytes; null if the vendor does not state it.
        prices_per_hour_usd: list prices of one GPU, in US dollars an hour, by tier such as `secure`
            or `serverless`.
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
        default: whether it is used if the request names no model.
        quality: tier of the model: 1 economy, 2 standard, 3 premium.
        prices_usd: price of one unit in US dollars, by unit. Unknown prices are left out; 0 means
            free.
        price_tiers: prices for longer inputs, which then apply to the whole request.
        price_changes: announced future changes of the prices, the earliest first.
        batch_share: share of the prices that the vendor's batch API charges; null without such an
            API.
        service_tier_shares: share of the prices by service tier: `flex` or `priority`, our names.
        abilities: what a request may ask of it beyond the usual, such as `images`, `tools` or
            `reasoning`.
        bound: basis of its maximum cost; null without a bound, so that no budget can admit it.
        ends: day on which the vendor shuts it down, if announced.
        successor: model that the vendor recommends instead.
        as_of: day of the prices.
        source: page that the prices were read from.
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
    abilities: list[str] = []
    bound: str | None = None
    ends: date | None = None
    successor: str | None = None
    as_of: str = ""
    source: str = ""
