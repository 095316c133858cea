"""The conversation of a text request as callers write it, and as vendors are asked."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from toolkit.contract.base import JsonObject, Record, Request
from toolkit.contract.errors import ErrorCode
from toolkit.contract.ids import Prefix, build_id_pattern
from toolkit.media.pictures import measure_pictures
from toolkit.plugins import Blob, Flow, ProviderError, run_in_process
from toolkit.plugins.conversation import Picture, Tool, ToolCall, Turn

MAX_MESSAGES, MAX_IMAGES, MAX_TOOLS = 1_000, 20, 128
MAX_CHARACTERS = 200_000
PICTURE_TYPES = ("image/png", "image/jpeg", "image/webp", "image/gif")
MAX_PICTURE_BYTES = 20_000_000
ArtifactId = Annotated[str, Field(pattern=build_id_pattern(Prefix.ARTIFACT))]


TOOL_NAME = r"^[a-zA-Z0-9_-]{1,64}$"


class MessageText(Request):
    """A text in a message."""

    type: Literal["text"] = Field(description="`text`")
    text: str = Field(max_length=MAX_CHARACTERS, description="the words")


class ImagePart(Request):
    """A picture in a message, by the id of an artifact."""

    type: Literal["image"] = Field(description="`image`")
    artifact_id: ArtifactId = Field(description="id of the artifact of the picture")


class CalledTool(Request):
    """A tool that the model asked for, as its output said."""

    id: str = Field(min_length=1, max_length=256, description="id of the request")
    name: str = Field(pattern=TOOL_NAME, description="name of the tool")
    arguments: JsonObject = Field(default_factory=dict, description="arguments by name")
    signature: str = Field(
        default="",
        max_length=MAX_CHARACTERS,
        description="opaque text of the provider, without which some models cannot go on",
    )


class Message(Request):
    """A message of a conversation."""

    role: Literal["system", "user", "assistant", "tool"] = Field(
        description="who says it; `tool` is the answer of a tool"
    )
    content: str | list[Annotated[MessageText | ImagePart, Field(discriminator="type")]] = Field(
        default="", description="a text, or texts and pictures"
    )
    tool_calls: list[CalledTool] = Field(
        default_factory=list,
        max_length=MAX_TOOLS,
        description="the tools that a message of the assistant asked for",
    )
    tool_call_id: str | None = Field(
        default=None, max_length=256, description="the request that a tool answers"
    )

    @model_validator(mode="after")
    def _check_role(self) -> "Message":
        if self.tool_calls and self.role != "assistant":
            raise ValueError("tool_calls belong to a message of the assistant")
        if (self.tool_call_id is not None) != (self.role == "tool"):
            raise ValueError("tool_call_id belongs to a message of a tool, and is required there")
        if self.image_ids and self.role != "user":
            raise ValueError("images belong to a message of the user")
        if not (self.text.strip() or self.image_ids or self.tool_calls or self.role == "tool"):
            raise ValueError("content is empty")
        if len(self.text) > MAX_CHARACTERS:
            raise ValueError(f"content has more than {MAX_CHARACTERS} characters")
        return self

    @property
    def text(self) -> str:
        """The texts of the message, joined by blank lines."""
        if isinstance(self.content, str):
            return self.content
        return "\n\n".join(part.text for part in self.content if isinstance(part, MessageText))

    @property
    def image_ids(self) -> list[str]:
        """The ids of the artifacts of the message's pictures."""
        parts = self.content if isinstance(self.content, list) else []
        return [part.artifact_id for part in parts if isinstance(part, ImagePart)]


def _make_empty_schema() -> JsonObject:
    """Make the schema of a function without arguments."""
    return {"type": "object", "properties": {}}


class ToolFunction(Request):
    """A function of the caller that the model may ask for."""

    name: str = Field(pattern=TOOL_NAME, description="letters, digits, `_` and `-`")
    description: str = Field(
        default="", max_length=10_000, description="what the function does, for the model"
    )
    parameters: JsonObject = Field(
        default_factory=_make_empty_schema, description="JSON schema of its arguments, an object"
    )


class NamedTool(Request):
    """The tool that the model must ask for."""

    name: str = Field(pattern=TOOL_NAME, description="name of the tool")


class ToolRequest(Record):
    """A model's request to call a tool."""

    id: str = Field(description="id of the request, which the answer of the tool names")
    name: str = Field(description="name of the tool")
    arguments: JsonObject = Field(description="arguments by name")
    signature: str = Field(default="", description="opaque text of the provider, to be sent back")


def iter_image_ids(messages: list[Message]) -> Iterator[str]:
    """Yield the ids of the artifacts of all pictures of a conversation."""
    for message in messages:
        yield from message.image_ids


def check_pictures(blobs: Sequence[Blob]) -> None:
    """Check that artifacts are pictures that every vendor reads, and not too large.

    Raises:
        ProviderError: `PROVIDER_REJECTED`; the message says what is wrong.
    """
    for blob in blobs:
        if blob.media_type not in PICTURE_TYPES:
            raise ProviderError(
                ErrorCode.PROVIDER_REJECTED,
                f"An image is {blob.media_type}: models are shown PNG, JPEG, WebP and GIF.",
            )
    size = sum(len(blob.data) for blob in blobs)
    if size > MAX_PICTURE_BYTES:
        raise ProviderError(
            ErrorCode.PROVIDER_REJECTED,
            f"The images have {size} bytes, and at most {MAX_PICTURE_BYTES} are sent.",
        )


def load_pictures(ids: list[str], blobs: Mapping[str, Blob]) -> Flow[dict[str, Picture]]:
    """Check the pictures of artifacts (`check_pictures`); return them by id, with their sizes.

    Raises:
        ProviderError: `PROVIDER_REJECTED`, as for `check_pictures`.
    """
    if not ids:
        return {}
    found = {id: blobs[id] for id in ids}
    check_pictures([*found.values()])
    sizes = yield from run_in_process(measure_pictures, [blob.data for blob in found.values()])
    return {
        id: Picture(blob.media_type, blob.data, size)
        for (id, blob), size in zip(found.items(), sizes, strict=True)
    }


def find_pictures(ids: list[str], pictures: Mapping[str, Picture]) -> tuple[Picture, ...]:
    """Return the picture of each id, or an empty picture if it was not loaded, as for a price."""
    return tuple(pictures.get(id, Picture()) for id in ids)


def make_turns(messages: list[Message], pictures: Mapping[str, Picture]) -> tuple[Turn, ...]:
    """Convert messages to the turns of a vendor's request, without the system messages."""
    return tuple(
        Turn(
            role=message.role,
            text=message.text,
            pictures=find_pictures(message.image_ids, pictures),
            tool_calls=tuple(
                ToolCall(call.id, call.name, call.arguments, call.signature)
                for call in message.tool_calls
            ),
            tool_call_id=message.tool_call_id or "",
        )
        for message in messages
        if message.role != "system"
    )


def make_tools(functions: list[ToolFunction]) -> tuple[Tool, ...]:
    """Convert functions of an input to tools of an operation."""
    return tuple(Tool(tool.name, tool.description, tool.parameters) for tool in functions)
