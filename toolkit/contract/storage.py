"""Storage: network volumes, billed by size until they are deleted."""

from pydantic import Field

from toolkit.contract.base import Request
from toolkit.contract.endpoints import Infrastructure


class StorageCreate(Request):
    """`POST /v1/storage`.

    Attributes:
        size_gb: size in gigabytes.
        data_center: data center of the volume, such as `EU-RO-1`, and of all that uses it; our
            choice by default.
    """

    name: str = Field(min_length=1, max_length=191)
    size_gb: int = Field(ge=10, le=4096)
    data_center: str | None = Field(default=None, min_length=1, max_length=64)


class Storage(Infrastructure):
    """A network volume."""

    size_gb: int
    data_center: str
