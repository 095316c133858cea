"""Compute: GPU pods that the caller rents by the hour (specification, "Other records")."""

from pydantic import Field

from toolkit.contract.base import ErrorInfo, Record, Request, Timestamp, Usd
from toolkit.contract.endpoints import InfrastructureStatus


class ComputeCreate(Request):
    """`POST /v1/compute`.

    Attributes:
        gpu_type: an id of the catalogue's list of GPUs.
        image: the container that runs in it; an image worker of the vendor's where it is empty.
    """

    name: str = Field(min_length=1, max_length=191)
    gpu_type: str = Field(min_length=1, max_length=128)
    image: str = Field(default="", max_length=512)


class Compute(Record):
    """A GPU pod; it is billed by the hour from its creation until it is deleted."""

    id: str
    name: str
    gpu_type: str
    image: str = ""
    status: InfrastructureStatus = "creating"
    status_detail: str | None = None
    cost_per_hour_usd: Usd | None = None
    error: ErrorInfo | None = None
    created_at: Timestamp
    deleted: bool = False
