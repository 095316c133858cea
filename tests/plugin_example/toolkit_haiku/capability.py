"""`haiku.write`: three lines on a topic, from the text vendor that the router chooses."""

from pydantic import Field

from toolkit.contract.base import Record, Request
from toolkit.plugins import (
    Blob,
    Call,
    Capability,
    Flow,
    InputBinding,
    Result,
    TextRequest,
    request_operation,
    run_in_process,
)
from toolkit_haiku.lines import first_lines


class HaikuInput(Request):
    """The input of a haiku."""

    topic: str = Field(
        min_length=1,
        max_length=200,
        description="what the haiku is about",
        json_schema_extra={"x-role": "topic"},
    )
    context: str = Field(default="", max_length=20_000, description="material; upstream fills it")


class HaikuOutput(Record):
    """The output of a haiku."""

    lines: list[str]


def make_request(haiku: HaikuInput) -> TextRequest:
    """Build the request to a vendor, for the estimate and for the call."""
    prompt = f"Write a haiku about {haiku.topic}: three lines, nothing else."
    return TextRequest(prompt=f"{prompt}\n\n{haiku.context}".strip(), max_tokens=60)


def write(call: Call[HaikuInput]) -> Flow[Result]:
    """Request a haiku, and return its first three lines."""
    reply = yield from request_operation(make_request(call.input))
    # The text is untrusted and of any length, so a worker process reads it, which can be ended.
    lines = yield from run_in_process(first_lines, reply.text, 3)
    return Result({"lines": lines}, Blob("\n".join(lines).encode(), "text/plain"))


CAPABILITY = Capability(
    id="haiku.write",
    title="Write a haiku",
    description="Three lines on a topic.",
    input_model=HaikuInput,
    output_model=HaikuOutput,
    flow=write,
    operation=TextRequest,
    default_provider="verse_club",
    accepts={"context": InputBinding(("text/*", "application/json"), "text")},
    produces="text/plain",
    estimate=make_request,
    keywords=("haiku",),
)
