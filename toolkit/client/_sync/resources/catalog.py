# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.catalog`: GPUs that can be rented, and vendors' models, with list prices."""

from datetime import date

from toolkit.client._collections import Collection
from toolkit.client._members import Member
from toolkit.client._record_view import RecordView
from toolkit.client._sync.http import HttpClient
from toolkit.contract.catalog import CatalogModel, CatalogPriceChange, CatalogPriceTier, Gpu


class GpuView(RecordView[Gpu]):
    """A GPU that can be rented."""

    noun = "GPU"

    provider = Member[str]("The GPU cloud that offers it.")
    name = Member[str]("Its name.")
    pool = Member[str]("The pool that an endpoint's `gpu_ids` takes.")
    memory_gb = Member[int | None]("The gigabytes of one GPU; none if the vendor does not say.")
    prices_per_hour_usd = Member[dict[str, float]](
        "The list prices of one GPU by tier, in US dollars an hour."
    )


class ModelView(RecordView[CatalogModel]):
    """A model of a vendor, with its list prices."""

    noun = "Model"

    provider = Member[str]("The provider.")
    kind = Member[str]("The kind of operation, such as `text`.")
    model = Member[str]("The name that the provider knows it by.")
    default = Member[bool]("True if it is asked for when nobody names a model.")
    quality = Member[int]("Its tier: 1 economy, 2 standard, 3 premium.")
    prices_usd = Member[dict[str, float]](
        "The US dollars of one unit, by unit; what is unknown is left out."
    )
    price_tiers = Member[list[CatalogPriceTier]](
        "The prices of longer inputs, which then hold for all of a request."
    )
    price_changes = Member[list[CatalogPriceChange]](
        "The changes of prices that were announced, the earliest first."
    )
    batch_share = Member[float | None](
        "The share of the prices that the vendor's batch API takes; none without one."
    )
    service_tier_shares = Member[dict[str, float]](
        "The share of the prices that other service tiers take."
    )
    bound = Member[str | None](
        "What the most that a call may cost rests on; none if a budget excludes it."
    )
    ends = Member[date | None]("The day on which the vendor shuts it down, if that was announced.")
    successor = Member[str | None]("The model that the vendor names instead.")
    as_of = Member[str]("The day of the prices.")
    source = Member[str]("Where the prices were read.")


class Catalog:
    """`client.catalog`: GPUs that can be rented, and vendors' models, with list prices."""

    def __init__(self, http: HttpClient) -> None:
        self._http = http

    def gpus(self) -> Collection[GpuView]:
        """List the GPUs of the connected cloud, by the id that a compute's `gpu_type` takes.

        Raises:
            RequestError: `CREDENTIALS_MISSING`.
        """
        page = self._http.request_page(Gpu, "/catalog/gpus")
        return Collection([GpuView(gpu) for gpu in page.records], "GPUs")

    def models(self) -> Collection[ModelView]:
        """List every vendor's models with their list prices."""
        page = self._http.request_page(CatalogModel, "/catalog/models")
        return Collection([ModelView(model) for model in page.records], "models")
