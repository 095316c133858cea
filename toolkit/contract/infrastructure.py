"""Storage, templates and the catalogue: records of what runs at the GPU cloud."""

from pydantic import Field

from toolkit.contract.base import Record, Request, Timestamp, Usd
from toolkit.contract.endpoints import InfrastructureStatus


class StorageCreate(Request):
    """`POST /v1/storage`: a network volume of `size_gb` gigabytes."""

    name: str = Field(min_length=1, max_length=191)
    size_gb: int = Field(ge=10, le=4096)


class Storage(Record):
    """A network volume."""

    id: str
    name: str
    size_gb: int
    status: InfrastructureStatus = "creating"
    created_at: Timestamp
    deleted: bool = False


class TemplateCreate(Request):
    """`POST /v1/templates`: a container image to share between endpoints."""

    name: str = Field(min_length=1, max_length=191)
    image: str = Field(min_length=1, max_length=512)


class Template(Record):
    """A template; hidden ones belong to one endpoint and go with it."""

    id: str
    name: str
    image: str
    hidden: bool = False
    created_at: Timestamp
    deleted: bool = False


class Gpu(Record):
    """A GPU of the catalogue; `pool` is what an endpoint's `gpu_ids` takes."""

    id: str
    name: str
    pool: str
    memory_gb: int
    price_per_hour_usd: Usd | None = None


class CatalogModel(Record):
    """A vendor's model with its list prices."""

    provider: str
    model: str
    operation: str
    prices: dict[str, float] = {}
    as_of: str
    source: str
