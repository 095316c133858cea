"""The chat that the wires of text models share: messages in, text and usage out."""

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from typing import Any

from toolkit.sandbox.json_http import RequestBody
from toolkit.sandbox.pictures.sight import describe_picture, measure_picture
from toolkit.sandbox.text import answers, prompts, prose
from toolkit.sandbox.text.languages import compile_cue
from toolkit.sandbox.text.schema_filling import SchemaFiller, make_schema
from toolkit.sandbox.text.tool_use import NO_TOOLS, SimulatedCall, ToolOffer, choose_call

# Tokens approximate vendors' tokenizers: a space belongs to the word after it.
_TOKEN = re.compile(r"(?: (?=\S))?(?:[A-Za-z]{1,5}|[0-9]{1,2}|\S)|\s{1,8}")
_THOUGHT = "Keep to the form of the request, and say what matters."
_USUAL_FIELDS = ("title", "summary", "points")  # of JSON whose form is left to the model
# Returns the text that a test or a cassette has ordered as the answer to a prompt, or None.
take_ordered_text: ContextVar[Callable[[str], str | None]] = ContextVar(
    "take_ordered_text", default=lambda _prompt: None
)


class ChatMessage(RequestBody, extra="allow"):
    """A message of a request, in the form that most vendors share."""

    role: str
    content: str | list[Any] | None = None


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """A message of a conversation, its parts joined.

    Attributes:
        role: who says it; `tool` is the answer of a tool.
    """

    role: str
    text: str
    pictures: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class SimulatedReply:
    """A reply of the simulated model: a text, or calls to tools."""

    text: str
    reasoning: str
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    finish: str
    calls: tuple[SimulatedCall, ...] = ()
    picture_tokens: int = 0


def count_tokens(text: str) -> int:
    """Count the tokens of a text, about as densely as the vendors' tokenizers do.

    This count is independent of the engine's estimates, so that they cannot agree by construction.
    """
    return len(split_tokens(text))


def split_tokens(text: str) -> list[str]:
    """Split a text into its tokens, about as densely as the vendors' tokenizers do."""
    return _TOKEN.findall(text)


def extract_text(content: object) -> str:
    """Extract the text of a message's content, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    rows = [part for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    return "\n".join(str(row.get("text", "")) for row in rows)


def parse_turns(messages: Iterable[ChatMessage]) -> list[ChatTurn]:
    """Parse the messages of a conversation on the wire that OpenAI's compatible servers share.

    Raises:
        ValueError: a picture is no data URL of a picture; real servers fetch other URLs, too.
    """
    return [
        ChatTurn(message.role, extract_text(message.content), _extract_pictures(message.content))
        for message in messages
    ]


def _extract_pictures(content: object) -> tuple[bytes, ...]:
    parts = content if isinstance(content, list) else []
    return tuple(
        decode_picture(str(part["image_url"]["url"]).partition(";base64,")[2])
        for part in parts
        if isinstance(part, dict) and part.get("type") == "image_url"
    )


def decode_picture(data: str) -> bytes:
    """Decode a picture in base64.

    Raises:
        ValueError: it is no base64, or no picture.
    """
    picture = base64.b64decode(data, validate=True)
    measure_picture(picture)
    return picture


def count_prompt_tokens(
    turns: Iterable[ChatTurn], offer: ToolOffer = NO_TOOLS, picture_tokens: int = 0
) -> int:
    """Count the tokens of a conversation, with the marks around each turn, pictures and tools."""
    texts = sum(count_tokens(turn.text) + 4 for turn in turns)
    tools = (json.dumps([tool.name, tool.description, tool.parameters]) for tool in offer.tools)
    return texts + picture_tokens + 3 + sum(count_tokens(tool) + 12 for tool in tools)


def generate_reply(
    turns: list[ChatTurn],
    *,
    schema: dict[str, Any] | None = None,
    want_json: bool = False,
    max_tokens: int | None = None,
    reasoning_tokens: int = 0,
    offer: ToolOffer = NO_TOOLS,
    stop: Sequence[str] = (),
    count_picture: Callable[[bytes], int] = len,
) -> SimulatedReply:
    """Generate a reply to a conversation, truncated at the token limit.

    The last message of the user is answered; earlier messages are only counted. An answer to a
    tool's result repeats the result, and an answer to pictures describes them.

    Args:
        schema: JSON schema of the answer; None for free text.
        max_tokens: maximum tokens of the answer, reasoning included.
        stop: texts that end the answer.
        count_picture: function that counts the tokens that a picture is billed.
    """
    system = "\n".join(turn.text for turn in turns if turn.role in ("system", "developer"))
    asked = [turn for turn in turns if turn.role in ("user", "tool")]
    picture_tokens = sum(count_picture(data) for turn in turns for data in turn.pictures)
    prompt_tokens = count_prompt_tokens(turns, offer, picture_tokens)
    results = [turn.text for turn in takewhile(lambda turn: turn.role == "tool", reversed(asked))]
    said = [turn.text for turn in asked if turn.role == "user"] or [system]
    text = take_ordered_text.get()("\n\n".join(turn.text for turn in turns))
    if text is None:
        ask = prompts.parse_prompt(system, said[-1])
        call = choose_call(offer, ask, is_answered=bool(results))
        if call is not None:
            spent = count_tokens(f"{call.name} {json.dumps(call.arguments)}") + reasoning_tokens
            return SimulatedReply(
                text="",
                reasoning=_THOUGHT,
                prompt_tokens=prompt_tokens,
                completion_tokens=spent,
                reasoning_tokens=reasoning_tokens,
                finish="tool_calls",
                calls=(call,),
                picture_tokens=picture_tokens,
            )
        sights = [describe_picture(picture) for picture in asked[-1].pictures] if asked else []
        material = [*reversed(results), *sights]
        user = said[-1] if len(turns) > 2 else "\n\n".join(turn.text for turn in asked) or system
        if material and schema is None and not want_json:
            text = " ".join(material)
        else:
            user = "\n\n".join([user, *material])
            text = _write_answer(system, user, schema, want_json=want_json)
    for ending in stop:
        text = text.partition(ending)[0]
    reply = limit_reply(text, prompt_tokens, reasoning_tokens, max_tokens)
    return replace(reply, picture_tokens=picture_tokens)


def _write_answer(system: str, user: str, schema: dict[str, Any] | None, *, want_json: bool) -> str:
    if system.startswith(answers.PLANNER):
        return json.dumps(answers.write_plan(user), ensure_ascii=False)
    if schema is None and compile_cue("json").search(f"{system}\n{user}"):
        schema, user = prompts.find_schema(user)
        if schema is None:
            schema, system = prompts.find_schema(system)
    ask = prompts.parse_prompt(system, user)
    if schema is not None or want_json or compile_cue("json_answer").search(ask.objective):
        fields = answers.find_fields(ask.objective) or _USUAL_FIELDS
        value = SchemaFiller(schema or make_schema(fields), ask).fill_schema()
        is_read = schema is None and not want_json  # by a person
        return json.dumps(value, ensure_ascii=False, indent=2 if is_read else None)
    return answers.answer_instruction(ask) or prose.write_text(ask)


def limit_reply(text: str, prompt: int, reasoning: int, limit: int | None) -> SimulatedReply:
    """Make a reply of a text; at the limit of tokens it is cut, and its finish is `length`."""
    spent = count_tokens(text) + reasoning
    if limit is None or spent <= limit:
        return SimulatedReply(text, _THOUGHT, prompt, spent, reasoning, "stop")
    # Hidden reasoning counts against the same limit, and may leave nothing for the answer.
    tokens = islice(_TOKEN.finditer(text), max(0, limit - reasoning))
    cut = "".join(token.group() for token in tokens)
    return SimulatedReply(cut, _THOUGHT, prompt, limit, min(reasoning, limit), "length")


def iter_pieces(text: str) -> Iterator[str]:
    """Yield a text in small pieces, as a stream sends it."""
    step = 24
    for start in range(0, len(text), step):
        yield text[start : start + step]
