"""The catalogue: what the connected GPU cloud rents out, and every vendor's models."""

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


class CatalogModel(Record):
    """A vendor's model with its list prices.

    Attributes:
        id: provider and model.
        kind: the kind of operation, such as `text` or `image`.
        default: whether it is asked for when nobody named one.
        quality: its tier: 1 economy, 2 standard, 3 premium.
        prices_usd: of one unit, by unit; what is not known is left out, and 0 is really 0.
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
    as_of: str = ""
    source: str = ""
