"""Operations on the resources of a GPU cloud; `Vendor.infrastructure` has a flow for each kind.

All ids here are the vendor's own. Only the engine knows the ids on our side.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from toolkit.plugins.operations import Operation, Reply

ResourceKind: TypeAlias = Literal["endpoint", "pod", "template", "volume"]
PodStatus: TypeAlias = Literal["creating", "running", "stopped", "failed", "terminated"]
T = TypeVar("T", bound="ResourceState")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceState(Reply):
    """A resource at a GPU cloud as its vendor describes it, such as an endpoint.

    Attributes:
        vendor_id: the vendor's id of the resource.
        name: the resource's name at the vendor; the names that we give contain our own id.
    """

    model: str = "resource"
    vendor_id: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceListing(Reply, Generic[T]):
    """A list of all resources of a kind that an account has at a vendor."""

    model: str = "listing"
    items: tuple[T, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceQuery(Operation[ResourceListing[Any]]):
    """Ask for all of the account's resources of a kind."""

    kind = "resources.list"

    resource: ResourceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceDeletion(Operation[Reply]):
    """Ask for a resource to be destroyed; a missing resource counts as deleted.

    The template of an endpoint stays. A volume is deleted with all data on it.
    """

    kind = "resource.delete"

    resource: ResourceKind
    vendor_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointCreation(Operation[ResourceState]):
    """Ask for a serverless endpoint to be created.

    Attributes:
        gpu_pool: a pool of the vendor's catalogue.
        workers_min, workers_max: minimum and maximum number of workers.
        image: the container image to run if there is no template; without either, the vendor's
            file chooses an image.
        template_id: the vendor's id of a template to run; it outlives the endpoint.
        volume_ids: the vendor's ids of network volumes to attach.
    """

    kind = "endpoint.create"

    name: str
    gpu_pool: str
    workers_min: int = 0
    workers_max: int = 1
    image: str = ""
    template_id: str | None = None
    volume_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GpuOffer:
    """A GPU of a vendor's catalogue.

    Attributes:
        id, pool: the GPU's names in requests for a pod and for an endpoint.
        memory_gb: memory of one GPU in GB; None if the vendor does not say.
        usd_per_hour: list price of one GPU in US dollars per hour, by tier, such as `secure`.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PodState(ResourceState):
    """A GPU machine (pod) at its vendor.

    Attributes:
        status: state of the machine.
        usd_per_hour: price while it runs, in US dollars per hour; None if the vendor does not say.
    """

    model: str = "pod"
    status: PodStatus
    usd_per_hour: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodCreation(Operation[PodState]):
    """Ask for a GPU machine (pod) to be created; it is billed until it is terminated.

    Attributes:
        gpu_id: a GPU of the vendor's catalogue (`GpuOffer.id`).
        image: the container image to run if there is no template; without either, the vendor's
            file chooses an image that serves work for `Access.pod`.
        template_id: the vendor's id of a template to run.
        volume_id: the vendor's id of a network volume to attach.
        data_center: required data center, such as that of the volume; any by default.
    """

    kind = "pod.create"

    name: str
    gpu_id: str
    image: str = ""
    template_id: str | None = None
    volume_id: str | None = None
    data_center: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodReading(Operation[PodState]):
    """Ask for the state of a GPU machine (pod) by the vendor's id."""

    kind = "pod.read"

    vendor_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateCreation(Operation[ResourceState]):
    """Ask for a template to be created: a saved image from which endpoints or pods are started.

    Attributes:
        serverless: True for a template of endpoints, False for a template of pods.
    """

    kind = "template.create"

    name: str
    image: str
    serverless: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeCreation(Operation[ResourceState]):
    """Ask for a network volume to be created; it is billed until it is deleted."""

    kind = "volume.create"

    name: str
    size_gb: int
    data_center: str
