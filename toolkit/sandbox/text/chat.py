"""The chat that the wires of text models share: messages in, text and usage out."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from typing import Any

from toolkit.sandbox.json_http import RequestBody
from toolkit.sandbox.text import answers, node_planning, prompts, prose
from toolkit.sandbox.text.languages import compile_cue
from toolkit.sandbox.text.schema_filling import SchemaFiller, make_schema

# Tokens approximate vendors' tokenizers: a space belongs to the word after it.
_TOKEN = re.compile(r"(?: (?=\S))?(?:[A-Za-z]{1,5}|[0-9]{1,2}|\S)|\s{1,8}")
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
    """A message of a conversation, its parts joined."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class SimulatedReply:
    """A reply of the simulated model."""

    text: str
    reasoning: str
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    finish: str


def count_tokens(text: str) -> int:
    """Count the tokens of a text, about as densely as the vendors' tokenizers do.

    This count is independent of the engine's estimates, so that they cannot agree by construction.
    """
    return len(_TOKEN.findall(text))


def extract_text(content: object) -> str:
    """Extract the text of a message's content, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    rows = [part for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    return "\n".join(str(row.get("text", "")) for row in rows)


def parse_turns(messages: Iterable[ChatMessage]) -> list[ChatTurn]:
    """Parse the messages of a conversation."""
    return [ChatTurn(message.role, extract_text(message.content)) for message in messages]


def count_prompt_tokens(turns: Iterable[ChatTurn]) -> int:
    """Count the tokens of a conversation, with the marks around each turn."""
    return sum(count_tokens(turn.text) + 4 for turn in turns) + 3


def generate_reply(
    turns: list[ChatTurn],
    *,
    schema: dict[str, Any] | None = None,
    want_json: bool = False,
    max_tokens: int | None = None,
    reasoning_tokens: int = 0,
) -> SimulatedReply:
    """Generate a reply to a conversation, truncated at the token limit."""
    system = "\n".join(turn.text for turn in turns if turn.role in ("system", "developer"))
    user = "\n\n".join(turn.text for turn in turns if turn.role in ("user", "tool")) or system
    text = take_ordered_text.get()("\n\n".join(turn.text for turn in turns))
    if text is None:
        text = _write_answer(system, user, schema, want_json=want_json)
    return _limit_reply(text, count_prompt_tokens(turns), reasoning_tokens, max_tokens)


def _write_answer(system: str, user: str, schema: dict[str, Any] | None, *, want_json: bool) -> str:
    if system.startswith(node_planning.PLANNER):
        return json.dumps(node_planning.write_plan(user), ensure_ascii=False)
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


def _limit_reply(text: str, prompt: int, reasoning: int, limit: int | None) -> SimulatedReply:
    thought = "Keep to the form of the request, and say what matters."
    spent = count_tokens(text) + reasoning
    if limit is None or spent <= limit:
        return SimulatedReply(text, thought, prompt, spent, reasoning, "stop")
    # Hidden reasoning counts against the same limit, and may leave nothing for the answer.
    tokens = islice(_TOKEN.finditer(text), max(0, limit - reasoning))
    cut = "".join(token.group() for token in tokens)
    return SimulatedReply(cut, thought, prompt, limit, min(reasoning, limit), "length")


def iter_pieces(text: str) -> Iterator[str]:
    """Yield a text in small pieces, as a stream sends it."""
    step = 24
    for start in range(0, len(text), step):
        yield text[start : start + step]
