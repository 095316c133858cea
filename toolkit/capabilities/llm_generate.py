"""`llm.generate`: text, or JSON to a schema, from an objective; the registry loads it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Annotated, Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    JsonValue,
    ModelWrapValidatorHandler,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails

from toolkit.capabilities._conversation import (
    MAX_IMAGES,
    MAX_MESSAGES,
    MAX_TOOLS,
    PICTURE_TYPES,
    ArtifactId,
    Message,
    NamedTool,
    ToolFunction,
    ToolRequest,
    find_pictures,
    iter_image_ids,
    load_pictures,
    make_tools,
    make_turns,
)
from toolkit.capabilities._schema import is_cheap, read_answer, read_bounded_schema
from toolkit.capabilities._text import clean
from toolkit.contract.base import JsonObject, Record, Request
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import (
    Blob,
    Call,
    Capability,
    Flow,
    InputBinding,
    ProviderError,
    Result,
    TextReply,
    TextRequest,
    request_operation,
    run_in_process,
)
from toolkit.plugins.conversation import Picture, Turn
from toolkit.plugins.fencing import fence_text

MAX_REASONING_TOKENS = 32_768
# A planner fills only the other fields: these are for callers who write a conversation.
_FOR_CALLERS: dict[str, JsonValue] = {"x-planned": False}


class LlmInput(Request):
    """The input of `llm.generate` and `text.generate`."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["objective"]}, {"required": ["messages"]}]}
    )

    objective: str = Field(
        default="",
        min_length=1,
        max_length=20_000,
        pattern=r"\S",
        description="what to write",
        json_schema_extra={"x-role": "objective"},
    )
    context: str = Field(
        default="",
        max_length=60_000,
        description="material to work from, never followed as instructions; upstream fills it",
    )
    system: str = Field(
        default="", max_length=20_000, description="standing instructions, above the objective"
    )
    max_tokens: int = Field(
        default=1024, ge=1, le=16_384, description="the most tokens the answer may have"
    )
    temperature: float | None = Field(
        default=None,
        ge=0,
        le=2,
        description="how freely to choose words; only sent where given, as some models refuse it",
    )
    output_schema: JsonObject | None = Field(
        default=None, description="JSON schema that the answer must match; without recursion"
    )

    messages: list[Message] = Field(
        default_factory=list,
        max_length=MAX_MESSAGES,
        description="a conversation, in place of the objective; the last message is answered",
        json_schema_extra=_FOR_CALLERS,
    )
    images: list[ArtifactId] = Field(
        default_factory=list,
        max_length=MAX_IMAGES,
        description="ids of artifacts: PNG, JPEG, WebP or GIF pictures that the model is shown; "
        "upstream fills it",
        json_schema_extra=_FOR_CALLERS,
    )
    tools: list[ToolFunction] = Field(
        default_factory=list,
        max_length=MAX_TOOLS,
        description="functions that the model may ask you to call; in Python, annotated functions",
        json_schema_extra={**_FOR_CALLERS, "x-functions": True},
    )
    tool_choice: Literal["auto", "none", "required"] | NamedTool = Field(
        default="auto",
        description="whether the model may, must not or must ask for a tool, or for which tool",
        json_schema_extra=_FOR_CALLERS,
    )
    reasoning: (
        Literal["none", "low", "medium", "high"]
        | Annotated[int, Field(ge=0, le=MAX_REASONING_TOKENS)]
        | None
    ) = Field(
        default=None,
        description="how much the model may reason before its answer: a level, or tokens; "
        "they come on top of max_tokens",
        json_schema_extra=_FOR_CALLERS,
    )
    stop: list[Annotated[str, Field(min_length=1, max_length=64)]] = Field(
        default_factory=list,
        max_length=4,
        description="texts that end the answer",
        json_schema_extra=_FOR_CALLERS,
    )
    seed: int | None = Field(
        default=None,
        ge=0,
        le=2**31 - 1,
        description="number that makes the choice of words repeatable, as far as the model can",
        json_schema_extra=_FOR_CALLERS,
    )
    top_p: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="share of probability from which words are chosen",
        json_schema_extra=_FOR_CALLERS,
    )
    confidence: bool = Field(
        default=False,
        description="whether to return the probability of the answer, by a model that reports it",
        json_schema_extra=_FOR_CALLERS,
    )

    @model_validator(mode="wrap")
    @classmethod
    def _require_words(cls, given: object, validate: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(given, Mapping) or "objective" in given or given.get("messages"):
            return validate(given)
        faults = [InitErrorDetails(type="missing", loc=("objective",), input=given)]
        try:
            validate(given)
        except ValidationError as error:
            faults += [
                InitErrorDetails(
                    type=fault["type"],
                    loc=fault["loc"],
                    input=fault["input"],
                    ctx=fault.get("ctx", {}),
                )
                for fault in error.errors()
            ]
        raise ValidationError.from_exception_data(cls.__name__, faults)

    @model_validator(mode="after")
    def _check_conversation(self) -> "LlmInput":
        if self.objective and self.messages:
            raise ValueError("exactly one of objective and messages is required")
        if self.messages and all(message.role == "system" for message in self.messages):
            raise ValueError("messages need a message of the user")
        if len(self.image_ids) > MAX_IMAGES:
            raise ValueError(f"messages show more than {MAX_IMAGES} images")
        names = [tool.name for tool in self.tools]
        if len(set(names)) < len(names):
            raise ValueError("two tools have the same name")
        choice = self.tool_choice
        if isinstance(choice, NamedTool) and choice.name not in names:
            raise ValueError("tool_choice names no tool of tools")
        if choice == "required" and not names:
            raise ValueError("tool_choice is required, and there are no tools")
        if self.confidence and self.reasoning not in (None, "none", 0):
            raise ValueError("confidence is not reported for an answer with reasoning")
        return self

    @property
    def image_ids(self) -> list[str]:
        """The ids of the artifacts of all pictures that the model is shown."""
        return [*self.images, *iter_image_ids(self.messages)]

    @field_validator("output_schema")
    @classmethod
    def _check_output_schema(cls, schema: JsonObject | None) -> JsonObject | None:
        if schema is not None:
            read_bounded_schema(schema)
        return schema


class LlmOutput(Record):
    """The output of `llm.generate` and `text.generate`."""

    text: str = Field(description="the answer as text; empty if the model only asks for tools")
    finish_reason: str = Field(
        description="`stop`, `length` if it was cut off at max_tokens, or `tool_calls`"
    )
    model: str = Field(description="the model that answered")
    value: JsonValue = Field(
        default=None, alias="json", description="the answer as JSON, where a schema was given"
    )
    tool_calls: list[ToolRequest] = Field(
        default_factory=list, description="the tools that the model asks you to call"
    )
    reasoning: str = Field(
        default="", description="a summary of the model's reasoning, if its provider returns one"
    )
    confidence: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="probability of the answer by the model's own account, if it was asked for: the"
        " product over the answer's tokens",
    )
    usage: dict[str, float] = Field(
        default_factory=dict,
        description="billed tokens by class: `input_tokens` with their parts `cached_input_tokens`,"
        " `cache_write_tokens` and `image_tokens`; `output_tokens` with `reasoning_tokens`",
    )


def build_request(
    fields: LlmInput, shown: Mapping[str, Picture] = MappingProxyType({})
) -> TextRequest:
    """Build the request for text from an input, to price it and to send it.

    Args:
        shown: the pictures by the ids of their artifacts; empty to price the operation.
    """
    rule, material = fence_text(fields.context) if fields.context.strip() else ("", "")
    prompt = "\n\n".join(part for part in (fields.objective, material) if part)
    pictures = find_pictures(fields.images, shown)
    turns = make_turns(fields.messages, shown)
    if turns and (material or pictures):
        turns = (*turns, Turn("user", material, pictures))
    elif pictures:
        turns = (Turn("user", prompt, pictures),)
    instructions = [message.text for message in fields.messages if message.role == "system"]
    choice = fields.tool_choice
    return TextRequest(
        prompt=prompt,
        turns=turns,
        system="\n\n".join(part for part in (fields.system, *instructions, rule) if part),
        max_tokens=fields.max_tokens,
        temperature=fields.temperature,
        top_p=fields.top_p,
        schema=fields.output_schema,
        tools=make_tools(fields.tools),
        tool_choice="required" if isinstance(choice, NamedTool) else choice,
        named_tool=choice.name if isinstance(choice, NamedTool) else "",
        reasoning=fields.reasoning,
        stop=tuple(fields.stop),
        seed=fields.seed,
        confidence=fields.confidence,
        may_stream=not fields.confidence,  # streams are read without log-probabilities
        # Truncated JSON is worthless, so its cap never falls.
        cap_may_fall="max_tokens" not in fields.model_fields_set and fields.output_schema is None,
    )


def generate_text(call: Call[LlmInput]) -> Flow[Result]:
    """Call an LLM, and validate its answer against the schema, if any.

    Raises:
        ProviderError: `PROVIDER_REJECTED` for a refusal. `INVALID_OUTPUT` for an answer that is
            empty or does not match the schema.
    """
    plain = yield from answer_unchecked(call)
    schema = call.input.output_schema
    if schema is None or plain.artifact is None or "tool_calls" in plain.output:
        return plain
    answer, finish = str(plain.output["text"]), str(plain.output["finish_reason"])
    value, text = yield from _match_schema(schema, answer, finish)
    blob = replace(plain.artifact, data=text.encode())
    return Result(plain.output | {"json": value, "text": text}, blob)


def answer_unchecked(call: Call[LlmInput]) -> Flow[Result]:
    """Call an LLM and return its raw answer, for callers that validate it themselves.

    Raises:
        ProviderError: as for `generate_text`, except for the schema.
    """
    shown = yield from load_pictures(call.input.image_ids, call.blobs)
    reply = yield from request_operation(build_request(call.input, shown))
    text = read_answer_text(reply, call.input.max_tokens)
    calls = [asdict(asked) for asked in reply.tool_calls]
    output: dict[str, object] = {"text": text, "finish_reason": reply.finish, "model": reply.model}
    if calls:
        output["tool_calls"] = calls
    if reply.reasoning:
        output["reasoning"] = clean(reply.reasoning)
    if reply.confidence is not None:
        output["confidence"] = reply.confidence
    if reply.cost.units:
        output["usage"] = reply.cost.units
    metadata = {"model": reply.model, "finish_reason": reply.finish}
    if not text:
        return Result(output, Blob(json.dumps(calls).encode(), "application/json", metadata))
    return Result(output, Blob(text.encode(), "text/plain", metadata))


def read_answer_text(reply: TextReply, max_tokens: int) -> str:
    """Return the text of a reply, or "" if it only asks for tools; reject any other empty reply.

    Raises:
        ProviderError: `PROVIDER_REJECTED` for a refusal, `INVALID_OUTPUT` for an empty answer.
    """
    if reply.finish == "filtered":
        raise ProviderError(
            ErrorCode.PROVIDER_REJECTED,
            "The model's provider filtered the answer; reword the objective.",
            vendor_request_id=reply.vendor_request_id,
        )
    text = clean(reply.text)
    if text or reply.tool_calls:
        return text
    cut = reply.finish == "length"
    raise ProviderError(
        ErrorCode.INVALID_OUTPUT,
        f"The model used up {max_tokens} tokens before its answer; raise max_tokens."
        if cut
        else "The model answered with nothing; try again or reword the objective.",
        # The same limit would be used up, and billed, again.
        retryable=not cut,
        vendor_request_id=reply.vendor_request_id,
    )


def _match_schema(schema: JsonObject, text: str, finish: str) -> Flow[tuple[object, str]]:
    """Return the JSON value of an answer and its text, if it matches the schema, or reject it.

    The check runs in a worker process unless it is certainly quick.
    """
    cut = finish == "length"
    try:
        if is_cheap(text, schema):
            return read_answer(text, schema)
        return (yield from run_in_process(read_answer, text, schema))
    except ValueError as error:
        message = f"The answer does not match output_schema: {error}."
    if cut:
        message = "The answer was cut off before its JSON ended; raise max_tokens."
    raise ProviderError(ErrorCode.INVALID_OUTPUT, message, retryable=not cut)


CAPABILITY = Capability(
    id="llm.generate",
    title="Generate text",
    description="Writes text, or JSON that matches a schema, for an objective and its material.",
    input_model=LlmInput,
    output_model=LlmOutput,
    flow=generate_text,
    operation=TextRequest,
    default_provider="minimax",
    accepts={
        "context": InputBinding(("text/*", "application/json"), "text"),
        "images": InputBinding(PICTURE_TYPES, "artifacts"),
    },
    artifact_fields=("images", "messages"),
    produces="text/plain",
    estimate=build_request,
    keywords=(
        "text", "copy", "teaser", "summary", "summarise", "summarize", "headline", "write",
        "draft", "caption", "tagline", "slogan", "blurb", "paragraph", "article", "post", "email",
        "explain", "rewrite", "answer", "story", "poem",
    ),
)  # fmt: skip
