"""The capability object, as in the specification's table."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import ConfigDict, Field

from toolkit.contract.base import JsonObject, Record


def list_required_fields(schema: Mapping[str, Any]) -> list[str]:
    """List the fields that an input needs; of alternatives, the first.

    >>> list_required_fields({"oneOf": [{"required": ["objective"]}, {"required": ["messages"]}]})
    ['objective']
    """
    ways: Sequence[Mapping[str, Any]] = schema.get("oneOf", ())
    return [*schema.get("required", ()), *(ways[0].get("required", ()) if ways else ())]


class SourceProvider(Record):
    """A provider of a capability; `requires_connection` is null for this machine's CPU."""

    requires_connection: str | None
    status: Literal["available", "planned"] = "available"


class SourceRouting(Record):
    """The providers that may serve a capability."""

    allowed_connections: list[str]
    policy: str
    default_provider: str | None


class Source(Record):
    """The origin of a capability."""

    providers: list[SourceProvider]
    routing: SourceRouting


class JobForm(Record):
    """The alternative way to invoke a capability."""

    invoke: str = "POST /v1/jobs"
    type: str


class CapabilityRecord(Record):
    """One registered capability."""

    id: str
    name: str
    title: str
    version: str
    description: str
    status: Literal["available", "planned"] = "available"
    async_: bool = Field(default=True, alias="async")
    estimated_cost: bool
    input_schema: JsonObject
    output_schema: JsonObject
    invoke: str = "POST /v1/runs"
    job: JobForm
    source: Source
    input: JsonObject = Field(description="legacy description of the fields")
    output: JsonObject = Field(description="legacy description of the fields")
    targets: list[str] = Field(description="legacy description of the fields")
    accepts: list[str] = Field(default=[], description="media types taken from upstream artifacts")
    yields: str = Field(default="application/json", description="media type of the artifact")

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)
