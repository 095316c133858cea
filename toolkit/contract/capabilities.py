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
    """A provider of a capability.

    Attributes:
        requires_connection: provider that must be connected; null for work on this machine's CPU.
    """

    requires_connection: str | None
    status: Literal["available", "planned"] = "available"


class SourceRouting(Record):
    """The providers that may serve a capability.

    Attributes:
        model_kind: kind of its models in the catalogue; null if it needs none.
    """

    allowed_connections: list[str]
    policy: str
    default_provider: str | None
    model_kind: str | None = None


class Source(Record):
    """The providers of a capability, and how the router chooses one of them."""

    providers: list[SourceProvider]
    routing: SourceRouting


class JobForm(Record):
    """The other request that runs a capability: a job of this type."""

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


class TimedText(Record):
    """A part of a transcript: its words, and the times of their start and end."""

    start_s: float = Field(description="its start, in seconds from the start of the audio")
    end_s: float = Field(description="its end, in seconds from the start of the audio")
    text: str = Field(description="its words")
