"""What a GPU cloud can be asked for beside work; `Vendor.infrastructure` has a flow for each kind.

All ids here are the vendor's own: what they are called on our side is the engine's to know.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from toolkit.plugins.operations import Operation, Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointState(Reply):
    """A serverless endpoint as its vendor describes it.

    Attributes:
        vendor_id: the vendor's id of the endpoint.
        template_id: the vendor's id of the template it runs.
        hidden_template: whether that template was made for it alone, and goes with it.
        gpu_pools: the pools its workers come from; empty where the vendor does not say.
        workers_min, workers_max: how many workers it keeps, and may have.
    """

    model: str = "serverless"
    vendor_id: str
    name: str = ""
    template_id: str | None = None
    hidden_template: bool = False
    gpu_pools: tuple[str, ...] = ()
    workers_min: int | None = None
    workers_max: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointCreation(Operation[EndpointState]):
    """Ask for a serverless endpoint.

    Attributes:
        gpu_pool: a pool of the vendor's catalogue.
        workers_min, workers_max: how many workers it keeps, and may have.
        image: the container to run when there is no template; a hidden template is made for it.
            Without either, the vendor's file chooses one.
        template_id: the vendor's id of a template to run.
        volume_ids: the vendor's ids of network volumes to attach.
        reference: our own id of the endpoint: makes the hidden template's name unique.
    """

    kind = "endpoint.create"

    name: str
    gpu_pool: str
    workers_min: int = 0
    workers_max: int = 1
    image: str = ""
    template_id: str | None = None
    volume_ids: tuple[str, ...] = ()
    reference: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointReading(Operation[EndpointState]):
    """Ask how an endpoint stands."""

    kind = "endpoint.read"

    vendor_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointDeletion(Operation[Reply]):
    """Ask for an endpoint to be destroyed; one that is gone already counts as destroyed.

    Attributes:
        template_id: the vendor's id of its hidden template; looked up where it is not given.
    """

    kind = "endpoint.delete"

    vendor_id: str
    template_id: str | None = None


@dataclass(frozen=True, slots=True)
class GpuOffer:
    """A GPU of a vendor's catalogue.

    Attributes:
        id: names it when a pod is asked for; `pool` when an endpoint is.
        memory_gb: of one GPU; none where the vendor does not say.
        usd_per_hour: list prices of one GPU, by tier, such as `secure` or `serverless`.
    """

    id: str
    name: str
    pool: str
    memory_gb: int | None = None
    usd_per_hour: Mapping[str, Decimal] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuCatalog(Reply):
    """The GPUs that a vendor offers."""

    model: str = "catalog"
    gpus: tuple[GpuOffer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuListing(Operation[GpuCatalog]):
    """Ask for the vendor's catalogue of GPUs."""

    kind = "gpus.list"
