"""`llm.generate`: text, or JSON to a schema, from an objective; the registry loads it."""

from dataclasses import replace

from pydantic import Field, JsonValue, field_validator

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
from toolkit.plugins.fencing import fence_text


class LlmInput(Request):
    """The input of `llm.generate` and `text.generate`."""

    objective: str = Field(
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
        default=None,
        description="JSON schema that the answer must match; without recursion",
    )

    @field_validator("output_schema")
    @classmethod
    def _check_output_schema(cls, schema: JsonObject | None) -> JsonObject | None:
        if schema is not None:
            read_bounded_schema(schema)
        return schema


class LlmOutput(Record):
    """The output of `llm.generate` and `text.generate`."""

    text: str = Field(min_length=1, description="the answer as text")
    finish_reason: str = Field(description="`stop`, or `length` when it was cut off at max_tokens")
    model: str = Field(description="the model that answered")
    value: JsonValue = Field(
        default=None, alias="json", description="the answer as JSON, where a schema was given"
    )


def build_request(fields: LlmInput) -> TextRequest:
    """Build the only operation of an input."""
    rule, material = fence_text(fields.context) if fields.context.strip() else ("", "")
    return TextRequest(
        prompt="\n\n".join(part for part in (fields.objective, material) if part),
        system="\n\n".join(part for part in (fields.system, rule) if part),
        max_tokens=fields.max_tokens,
        temperature=fields.temperature,
        schema=fields.output_schema,
        stream=True,
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
    if schema is None or plain.artifact is None:
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
    reply = yield from request_operation(build_request(call.input))
    text = read_answer_text(reply, call.input.max_tokens)
    output: dict[str, object] = {
        "text": text,
        "finish_reason": reply.finish,
        "model": reply.model,
    }
    metadata = {"model": reply.model, "finish_reason": reply.finish}
    return Result(output, Blob(text.encode(), "text/plain", metadata))


def read_answer_text(reply: TextReply, max_tokens: int) -> str:
    """Return the text of a reply, unless it is a refusal or empty.

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
    if text:
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
    """Read and validate the JSON of an answer, in this process if that is certainly quick."""
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
    accepts={"context": InputBinding(("text/*", "application/json"), "text")},
    produces="text/plain",
    estimate=build_request,
    keywords=(
        "text", "copy", "teaser", "summary", "summarise", "summarize", "headline", "write",
        "draft", "caption", "tagline", "slogan", "blurb", "paragraph", "article", "post", "email",
        "explain", "rewrite", "answer", "story", "poem",
    ),
)  # fmt: skip
