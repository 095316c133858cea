"""What an operator may set: `TOOLKIT_…` variables, read once by whoever opens an engine."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class VendorSettings(BaseModel):
    """How one vendor is reached.

    Attributes:
        base_urls: its hosts by name, over the vendor's own; `api` is the main one.
        models: the model to ask for, by kind of operation.
        timeout_s: the longest one call may take, in seconds.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    base_urls: dict[str, str] = Field(default_factory=dict)
    models: dict[str, str] = Field(default_factory=dict)
    timeout_s: float | None = Field(default=None, gt=0)


class Settings(BaseSettings):
    """Everything an engine can be told when it is opened.

    >>> Settings(data_dir="elsewhere").max_nodes
    1000
    """

    model_config = SettingsConfigDict(
        env_prefix="TOOLKIT_", env_nested_delimiter="__", extra="ignore", frozen=True
    )

    data_dir: Path = Path(".toolkit")
    durability: Literal["normal", "full"] = "normal"
    artifact_url: str | None = None
    sandbox: bool = False
    vendors: dict[str, VendorSettings] = Field(default_factory=dict)
    encyclopedia_url: str = "https://en.wikipedia.org"
    zim_path: Path | None = None
    allow_env: frozenset[str] = frozenset()

    max_nodes: int = Field(default=1_000, ge=1)
    max_edges: int = Field(default=10_000, ge=1)
    body_limit_bytes: int = Field(default=1024 * 1024, ge=1024)
    upload_limit_bytes: int = Field(default=50 * 1024 * 1024, ge=1024)
    reply_limit_bytes: int = Field(default=64 * 1024 * 1024, ge=1024)

    lease_s: float = Field(default=15.0, gt=0)
    max_concurrent_jobs: int = Field(default=256, ge=1)
    timeout_s: float = Field(default=120.0, gt=0, description="of one vendor call")
    connect_timeout_s: float = Field(default=5.0, gt=0)
    retries: int = Field(default=2, ge=0, le=5, description="of one vendor call, inside a job")
    retry_base_s: float = Field(default=0.5, ge=0)
    retry_cap_s: float = Field(default=30.0, ge=0)
