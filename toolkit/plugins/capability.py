"""The classes of a capability's file: its declaration, and the call and result of its flow."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel

from toolkit.plugins.flow import Flow
from toolkit.plugins.operations import Operation

I = TypeVar("I", bound=BaseModel)  # noqa: E741 - the input of a capability
ANY_MEDIA = "*"  # `produces` of a capability whose artifact may be of any type


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes with their media type and metadata."""

    data: bytes
    media_type: str
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Upstream:
    """An artifact, with its bytes, of a workflow node that the current node depends on."""

    node_id: str
    artifact_id: str
    blob: Blob

    @property
    def text(self) -> str | None:
        """The text of a text artifact, or the `text` member of a JSON artifact; else None."""
        if self.blob.media_type.startswith("text/"):
            return self.blob.data.decode("utf-8", errors="replace")
        if self.blob.media_type == "application/json":
            value = json.loads(self.blob.data)
            if isinstance(value, dict) and isinstance(value.get("text"), str):
                return str(value["text"])
        return None

    def find_member(self, name: str) -> object:
        """Return a member of a JSON artifact; None without it, or if the artifact is no object."""
        value = json.loads(self.blob.data) if self.blob.media_type == "application/json" else None
        return value.get(name) if isinstance(value, dict) else None


@dataclass(frozen=True, slots=True)
class InputBinding:
    """The way to fill a field of the input from upstream artifacts if the caller left it out.

    Attributes:
        media: patterns of media types, such as `image/*`.
        mode: `text` joins the texts of all matching artifacts, and `artifact` takes the id of the
            last match. `artifacts` lists the ids of all matches, as many as the field takes.
            `member` takes the field's member of the last match that has it.
    """

    media: tuple[str, ...]
    mode: Literal["text", "artifact", "artifacts", "member"]

    def matches(self, media_type: str) -> bool:
        """Check whether an artifact of this media type can fill the field."""
        return any(fnmatchcase(media_type, pattern) for pattern in self.media)


@dataclass(frozen=True, slots=True)
class Call(Generic[I]):
    """One execution of a capability: its validated input and the artifacts that it names.

    Attributes:
        input: the input, after fields were filled from upstream.
        blobs: the bytes of every artifact field by its name, and of `artifact_fields` by the id
            of the artifact.
        upstream: every upstream artifact, in the order of `depends_on`.
        services: base URLs of public services, such as the encyclopedia, by name.
    """

    input: I
    blobs: Mapping[str, Blob] = field(default_factory=dict)
    upstream: tuple[Upstream, ...] = ()
    services: Mapping[str, str] = field(default_factory=dict)
    has_operation: bool = True  # whether a connection is there for an optional operation


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a capability's flow.

    Attributes:
        output: value that matches the output schema; the engine adds `artifact_id`.
        artifact: the bytes of the job's artifact; None means the output itself, as JSON.
    """

    output: dict[str, object]
    artifact: Blob | None = None


@dataclass(frozen=True, slots=True)
class Capability:
    """A capability: everything that the rest of the toolkit knows about it.

    Attributes:
        id: name such as `image.generate`.
        version: version such as `1`, as a string.
        input_model, output_model: pydantic models; their JSON schemas are served.
        flow: the generator that performs the capability.
        operation: kind of vendor work; vendors that offer it can serve the capability.
        operation_required: True if a job fails without a connection, False if it only does less.
        default_provider: the connection id that is used if the caller has no preference.
        accepts: the fields that upstream artifacts can fill.
        artifact_fields: other fields that name artifacts: by an id, a list of ids, or members
            `artifact_id` anywhere in them. Their bytes are `Call.blobs` by the artifact's id.
        produces: media type of the artifact; `ANY_MEDIA` if it is not known beforehand.
        reads_upstream: True if the flow also reads upstream artifacts that fill no field.
        calls_back: True if it calls the caller's own code. Such a job counts towards the limit on
            function calls, not on jobs, because the code may wait for other jobs.
        state: a function that returns two digests of everything except the input that the result
            depends on. It is called in a thread, before and after each cached call. The first
            digest is part of the cached result's key. The result is stored only if the second
            digest is the same before and after, and never if the function returns None.
        cpu_steps: functions that the flow runs in a worker process. The process starts and imports
            their modules while a vendor is asked, or when a workflow with such a node is accepted.
            For capabilities without a vendor it starts soon after an engine has been opened.
        resources: free resources that a cluster's machine needs for each step in a worker process,
            by the names that workers declare, such as `{"GPU": 1}`. `memory` is in bytes, and is
            also the process's limit. Ignored without a cluster.
        estimate: function that returns the operation of an input, to price it before the call.
        keywords: words in an objective that ask for this capability (for the planner).
        alias_of: id of the capability that this is another name of.
        job_type: the `type` of its jobs in `POST /v1/jobs`.
    """

    id: str
    title: str
    description: str
    input_model: type[BaseModel]
    output_model: type[BaseModel]
    flow: Callable[[Call[Any]], Flow[Result]]
    version: str = "1"
    operation: type[Operation[Any]] | None = None
    operation_required: bool = True
    default_provider: str | None = None
    accepts: Mapping[str, InputBinding] = field(default_factory=dict)
    artifact_fields: tuple[str, ...] = ()
    produces: str = "application/json"
    reads_upstream: bool = False
    calls_back: bool = False
    state: Callable[[Any], tuple[str, str] | None] | None = None
    cpu_steps: tuple[Callable[..., object], ...] = ()
    resources: Mapping[str, float] = field(default_factory=dict)
    estimate: Callable[[Any], Operation[Any] | None] = lambda _input: None
    keywords: tuple[str, ...] = ()
    alias_of: str | None = None
    job_type: str = ""
    status: Literal["available", "planned"] = "available"

    @property
    def name(self) -> str:
        """The id with the version, such as `image.generate@1`."""
        return f"{self.id}@{self.version}"

    @property
    def type_of_job(self) -> str:
        """The `type` of its jobs in `POST /v1/jobs`: `job_type`, or else the id up to its dot."""
        return self.job_type or self.id.partition(".")[0]

    def can_fill(self, consumer: "Capability", field: str) -> bool:
        """Check whether the artifact of this capability can fill an input field of another.

        An artifact of unknown type can fill any field that takes upstream artifacts, except a list.
        """
        binding = consumer.accepts[field]
        if self.produces == ANY_MEDIA:
            # A list is never required: an artifact of unknown type must not ask for more abilities.
            return binding.mode != "artifacts"
        has_member = binding.mode != "member" or field in self.output_model.model_fields
        return has_member and binding.matches(self.produces)

    @property
    def needs_connection(self) -> bool:
        """True if a run is refused without a connection to a vendor of its operation."""
        return self.operation is not None and self.operation_required

    def list_artifacts(self, given: Mapping[str, object]) -> dict[str, str]:
        """Return the ids of the artifacts that an input names, by their keys in `Call.blobs`."""
        named = {
            name: value
            for name, binding in self.accepts.items()
            if binding.mode == "artifact" and isinstance(value := given.get(name), str)
        }
        for name in self.artifact_fields:
            named |= {id: id for id in _iter_artifact_ids(given.get(name), is_named=True)}
        return named


def _iter_artifact_ids(value: object, *, is_named: bool = False) -> Iterator[str]:
    """Yield the artifact ids in a value: its members `artifact_id`, at any depth.

    If `is_named`, the value itself is an id, or a list of ids or of objects with such members.
    """
    if isinstance(value, str):
        if is_named:
            yield value
    elif isinstance(value, list):
        for item in value:
            yield from _iter_artifact_ids(item, is_named=is_named)
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from _iter_artifact_ids(member, is_named=key == "artifact_id")
