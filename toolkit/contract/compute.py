"""Compute: GPU pods that the caller rents by the hour (specification, "Other records")."""

from pydantic import Field

from toolkit.contract.base import Request, Usd
from toolkit.contract.endpoints import Infrastructure


class ComputeCreate(Request):
    """`POST /v1/compute`.

    Attributes:
        gpu_type: an id of the catalogue's list of GPUs.
        image: the container that runs in it when there is no template; an image worker of the
            vendor's where it is empty.
        storage_id: a volume to mount; the pod is then where the volume is.
        template_id: a shared template that is for pods.
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
