"""The declarations of a capability's file: its schemas, its input and artifact, and its flow."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel

from toolkit.plugins.flow import Flow
from toolkit.plugins.operations import Operation

I = TypeVar("I", bound=BaseModel)  # noqa: E741 - the input of a capability
ANY_MEDIA = "*"  # what a capability produces whose artifact may be of any type


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes with their media type."""

    data: bytes
    media_type: str
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Upstream:
    """An artifact that an upstream node yielded."""

    node_id: str
    artifact_id: str
    blob: Blob

    @property
    def text(self) -> str | None:
        """The text of it: a text artifact's text, the `text` member of a JSON one."""
        if self.blob.media_type.startswith("text/"):
            return self.blob.data.decode("utf-8", errors="replace")
        if self.blob.media_type == "application/json":
            value = json.loads(self.blob.data)
            if isinstance(value, dict) and isinstance(value.get("text"), str):
                return str(value["text"])
        return None

    def find_member(self, name: str) -> object:
        """Return a member of a JSON artifact; none if it has none of that name."""
        value = json.loads(self.blob.data) if self.blob.media_type == "application/json" else None
        return value.get(name) if isinstance(value, dict) else None


@dataclass(frozen=True, slots=True)
class InputBinding:
    """The way to fill a field of the input from upstream artifacts when the caller left it out.

    Attributes:
        media: a pattern of media types, such as `image/*`.
        mode: `text` joins the texts of all that match, `artifact` puts the id of the last one,
            and `member` the member of the field's name that the last one with it has.
    """

    media: tuple[str, ...]
    mode: Literal["text", "artifact", "member"]

    def matches(self, media_type: str) -> bool:
        """Tell whether an artifact of that type can fill the field."""
        return any(fnmatchcase(media_type, pattern) for pattern in self.media)


@dataclass(frozen=True, slots=True)
class Call(Generic[I]):
    """One execution of a capability: its validated input and the artifacts that it names.

    Attributes:
        input: the input, after fields were filled from upstream.
        blobs: the bytes of every artifact field, by field name.
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
        output: matches the output schema; `artifact_id` is put in by the engine.
        artifact: the bytes the job yields; none means the output itself, as JSON.
    """

    output: dict[str, object]
    artifact: Blob | None = None


@dataclass(frozen=True, slots=True)
class Capability:
    """A capability: everything that the rest of the toolkit knows about it.

    Attributes:
        id: such as `image.generate`; `version` is a string such as `1`.
        input_model, output_model: pydantic models; their JSON schemas are served.
        flow: the generator that performs it.
        operation: the kind of vendor work it needs; vendors that offer it can serve it.
        operation_required: whether it fails without a connection, or only does less.
        default_provider: the connection id that is used when the caller has no preference.
        accepts: the fields that upstream artifacts can fill.
        produces: the media type of its artifact; `ANY_MEDIA` where nobody can say beforehand.
        reads_upstream: whether its flow reads the upstream artifacts that fill no field, too.
        calls_back: whether it calls the caller's own code, which may wait for other jobs, and so is
            not counted among them.
        state: a function that returns the digests of everything beside the input that the result
            depends on. It is called in a thread, before and after each cached call. The first
            digest is part of the cached result's key. The result is stored only if the second
            digest is the same before and after, and never if the function returns None.
        cpu_steps: functions that its flow runs in a worker process. The process is started, and
            imports their modules, while a vendor is asked, when a workflow with such a node is
            accepted, or, for capabilities without a vendor, soon after an engine has been opened.
        resources: what a machine of a cluster must have to spare for each step that its flow runs
            in a worker process, such as `{"GPU": 1}`, by the names that its workers declare;
            `memory` is in bytes, and lets the process have as many. Without a cluster it is not
            asked.
        estimate: the operation an input leads to, for the price before the call.
        keywords: words in an objective that ask for this capability (for the planner).
        alias_of: the capability this is another name of.
        job_type: its `type` in `POST /v1/jobs`.
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
        """`id@version`."""
        return f"{self.id}@{self.version}"

    @property
    def type_of_job(self) -> str:
        """Its `type` in `POST /v1/jobs`: the first word of its id, unless it says otherwise."""
        return self.job_type or self.id.partition(".")[0]

    def can_fill(self, consumer: "Capability", field: str) -> bool:
        """Tell whether its artifact can fill a field of another capability."""
        binding = consumer.accepts[field]
        if self.produces == ANY_MEDIA:
            return True
        has_member = binding.mode != "member" or field in self.output_model.model_fields
        return has_member and binding.matches(self.produces)

    @property
    def needs_connection(self) -> bool:
        """True if a run without a matching connection is refused."""
        return self.operation is not None and self.operation_required
