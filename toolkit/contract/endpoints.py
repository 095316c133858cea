"""Serverless GPU endpoints (specification, "Serverless endpoint")."""

from typing import Annotated, Literal

from pydantic import Field

from toolkit.contract.base import ErrorInfo, Record, Request, Timestamp

InfrastructureStatus = Literal["creating", "ready", "failed", "deleting", "deleted"]
DEFAULT_ENDPOINT_NAME = "toolkit-endpoint"


class EndpointCreate(Request):
    """`POST /v1/endpoints`; every field has the default of the specification's table."""

    name: str = Field(default=DEFAULT_ENDPOINT_NAME, min_length=1, max_length=191)
    gpu_ids: str | None = Field(default=None, min_length=1, max_length=64)
    workers_min: Annotated[int, Field(ge=0, le=100)] = 0
    workers_max: Annotated[int, Field(ge=1, le=100)] = 1
    storage_id: str | None = Field(default=None, max_length=64)
    template_id: str | None = Field(default=None, max_length=64)
    image: str = Field(default="", max_length=512)


class Infrastructure(Record):
    """What every record of something at a GPU cloud has."""

    id: str
    name: str
    status: InfrastructureStatus = "creating"
    status_detail: str | None = None
    error: ErrorInfo | None = None
    created_at: Timestamp
    deleted: bool = False


class Endpoint(Infrastructure):
    """A serverless endpoint; `template_id` is ours, never the vendor's."""

    gpu_ids: str
    workers_min: int
    workers_max: int
    storage_id: str | None = None
    template_id: str | None = None
    image: str = ""
