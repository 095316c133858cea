"""Compute: GPU pods that the caller rents by the hour (specification, "Other records")."""

from pydantic import Field

from toolkit.contract.base import Request, Usd
from toolkit.contract.endpoints import Infrastructure


class ComputeCreate(Request):
    """`POST /v1/compute`.

    Attributes:
        gpu_type: id from the catalogue's list of GPUs.
        image: container to run if there is no template; empty means an image worker of the vendor.
        storage_id: volume to mount; the pod then runs in the volume's data center.
        template_id: shared template for pods.
    """

    name: str = Field(min_length=1, max_length=191)
    gpu_type: str = Field(min_length=1, max_length=128)
    image: str = Field(default="", max_length=512)
    storage_id: str | None = Field(default=None, max_length=64)
    template_id: str | None = Field(default=None, max_length=64)


class Compute(Infrastructure):
    """A GPU pod; it is billed by the hour from its creation until it is deleted."""

    gpu_type: str
    image: str = ""
    storage_id: str | None = None
    template_id: str | None = None
    cost_per_hour_usd: Usd | None = None
