"""Health and the vendor catalogue."""

from typing import Literal

from toolkit.contract.base import Record


class Health(Record):
    """`GET /v1/health`, the only read without a key."""

    status: Literal["ok", "draining", "degraded"] = "ok"
    version: str
    sandbox: bool = False
    jobs_running: int = 0


class Provider(Record):
    """A vendor of the catalogue: `GET /v1/providers`."""

    id: str
    label: str | None = None
    title: str
    operations: list[str]
    capabilities: list[str]
    conventional_variable: str
    connected: bool = False
    sandbox: bool = False
