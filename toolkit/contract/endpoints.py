"""Serverless GPU endpoints (specification, "Serverless endpoint")."""

from typing import Annotated, Literal

from pydantic import Field

from toolkit.contract.base import ErrorInfo, Record, Request, Timestamp, Usd

InfrastructureStatus = Literal["creating", "ready", "failed", "deleting", "deleted"]
DEFAULT_ENDPOINT_NAME = "toolkit-endpoint"


class EndpointCreate(Request):
    """`POST /v1/endpoints`; every field has the default of the specification's table.

    Attributes:
        gpu_ids: pool from the catalogue's list of GPUs.
        workers_min, workers_max: minimum and maximum number of workers.
        storage_id: volume to attach.
        template_id: shared template for endpoints.
        image: container to run if there is no template; empty means an image worker of the vendor.
    """

    name: str = Field(default=DEFAULT_ENDPOINT_NAME, min_length=1, max_length=191)
    gpu_ids: str | None = Field(default=None, min_length=1, max_length=64)
    workers_min: Annotated[int, Field(ge=0, le=100)] = 0
    workers_max: Annotated[int, Field(ge=1, le=100)] = 1
    storage_id: str | None = Field(default=None, max_length=64)
    template_id: str | None = Field(default=None, max_length=64)
    image: str = Field(default="", max_length=512)


class Infrastructure(Record):
    """The common fields of records of GPU cloud resources."""

    id: str
    name: str
    status: InfrastructureStatus = "creating"
    status_detail: str | None = None
    error: ErrorInfo | None = None
    created_at: Timestamp
    deleted: bool = False
    deleted_at: Timestamp | None = None


class Endpoint(Infrastructure):
    """A serverless endpoint.

    Attributes:
        template_id: our id of the shared template it was made from, never the vendor's.
        price_per_hour_usd: list price of one worker at creation, in US dollars an hour. Null if it
            is unknown, so that no budget can be enforced on it.
    """

    gpu_ids: str
    price_per_hour_usd: Usd | None = None
    workers_min: int
    workers_max: int
    storage_id: str | None = None
    template_id: str | None = None
    image: str = ""
