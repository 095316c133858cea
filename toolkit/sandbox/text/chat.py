"""The chat that the wires of text models share: messages in; text, usage and chunks out."""

import json
import math
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from toolkit.sandbox.text import answers, node_planning, prompts, prose
from toolkit.sandbox.text.schema_filling import SchemaFiller, guess_type

# Pieces as tokenizers split them: runs of letters, digits or white space, and other characters.
_TOKEN_PIECES = re.compile(r"[A-Za-z]+|[0-9]+|\s+|[!-/:-@\[-`{-~]|[^\x00-\x7f]{1,4}|.", re.S)
_LETTERS_PER_TOKEN, _DIGITS_PER_TOKEN, _BYTES_PER_TOKEN = 5, 2, 2.5  # of a token
_SPACES_PER_TOKEN = 8
# The tokens themselves, of a text in ASCII: there no piece needs to be measured.
_ASCII_TOKENS = re.compile(
    rf"[A-Za-z]{{1,{_LETTERS_PER_TOKEN}}}|[0-9]{{1,{_DIGITS_PER_TOKEN}}}"
    rf"|\s{{1,{_SPACES_PER_TOKEN}}}|[\x00-\x7f]"
)
_LONE_SPACE = re.compile(r"(?<!\s) (?!\s)")  # part of the token before it

# Takes the text that is to be said in answer to a prompt, if one was ordered.
take_ordered_text: ContextVar[Callable[[str], str | None]] = ContextVar(
    "take_ordered_text", default=lambda _prompt: None
)


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
    """Count the tokens of a text, as densely as the vendors' tokenizers do, script by script.

    Nothing here knows what an engine expects, so that no estimate is right by agreement.
    """
    if text.isascii():
        return len(_ASCII_TOKENS.findall(text)) - len(_LONE_SPACE.findall(text))
    return sum(map(_count_piece_tokens, _TOKEN_PIECES.findall(text)))


def _count_piece_tokens(piece: str) -> int:
    if not piece.isascii():
        return math.ceil(len(piece.encode("utf-8", "replace")) / _BYTES_PER_TOKEN)
    if piece.isspace():
        return 0 if piece == " " else math.ceil(len(piece) / _SPACES_PER_TOKEN)
    if piece.isdigit():
        return math.ceil(len(piece) / _DIGITS_PER_TOKEN)
    return math.ceil(len(piece) / _LETTERS_PER_TOKEN)


def truncate_to_tokens(text: str, limit: int) -> str:
    """Return the beginning of a text that has at most so many tokens."""
    kept: list[str] = []
    for piece in _TOKEN_PIECES.findall(text):
        took = _count_piece_tokens(piece)
        if took > limit:
            break
        limit -= took
        kept.append(piece)
    return "".join(kept)


def extract_text(content: object) -> str:
    """Extract the text of a message's content, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
        return "\n".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")
    return ""


def parse_turns(messages: Iterable[dict[str, Any]]) -> list[ChatTurn]:
    """Parse the messages of a conversation."""
    return [
        ChatTurn(str(one.get("role", "")), extract_text(one.get("content"))) for one in messages
    ]


def count_prompt_tokens(turns: Iterable[ChatTurn]) -> int:
    """Count the tokens of a conversation, with what each turn is wrapped in."""
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
    found = schema
    if found is None and prompts.wants_json(f"{system}\n{user}"):
        found, user = prompts.find_schema(user)
        if found is None:
            found, system = prompts.find_schema(system)
    ask = prompts.parse_prompt(system, user)
    ordered = take_ordered_text.get()("\n\n".join(turn.text for turn in turns))
    if ordered is not None:
        text = ordered
    elif found is not None and node_planning.asks_for_plan(found):
        text = json.dumps(node_planning.write_plan(user, found), ensure_ascii=False)
    elif found is None and not want_json and answers.wants_json(ask):
        value = SchemaFiller(_make_schema(ask), ask, f"{system}\n{user}").fill_schema()
        text = json.dumps(value, ensure_ascii=False, indent=2)
    elif found is not None or want_json:
        value = SchemaFiller(found or _FREE_JSON, ask, f"{system}\n{user}").fill_schema()
        text = json.dumps(value, ensure_ascii=False)
    else:
        text = answers.answer_instruction(ask) or prose.write_text(ask)
    prompt_tokens = count_prompt_tokens(turns)
    return _limit_reply(text, ask, prompt_tokens, reasoning_tokens, max_tokens)


_FREE_JSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "summary": {"type": "string"},
        "points": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["title", "summary", "points"],
}


def _make_schema(ask: prompts.ParsedPrompt) -> dict[str, Any]:
    """Make the schema of the fields that an instruction names."""
    fields = answers.find_fields(ask.objective)
    if not fields:
        return _FREE_JSON
    kinds = {name: {"type": guess_type(name)} for name in fields}
    return {"type": "object", "properties": kinds, "required": fields}


def _limit_reply(
    text: str, ask: prompts.ParsedPrompt, prompt: int, reasoning: int, limit: int | None
) -> SimulatedReply:
    thought = f"The request is about {ask.topic}; keep to its form and say what matters."
    spent = count_tokens(text) + reasoning
    if limit is None or spent <= limit:
        return SimulatedReply(text, thought, prompt, spent, reasoning, "stop")
    # Hidden reasoning is paid from the same allowance, and may leave nothing for the answer.
    room = max(0, limit - reasoning)
    cut = truncate_to_tokens(text, room)
    return SimulatedReply(cut, thought, prompt, limit, min(reasoning, limit), "length")


def iter_pieces(text: str) -> Iterator[str]:
    """Yield a text in small pieces, as a stream sends it."""
    step = 24
    for start in range(0, len(text), step):
        yield text[start : start + step]


def format_event(data: object) -> str:
    """Format a server-sent event."""
    body = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"data: {body}\n\n"


def format_named_event(name: str, data: dict[str, Any]) -> str:
    """Format a server-sent event with a name, which its data repeats as `type`."""
    return f"event: {name}\n{format_event({'type': name, **data})}"


async def stream_completion(
    head: dict[str, Any], reply: SimulatedReply, usage: dict[str, Any] | None, text: str = ""
) -> AsyncIterator[str]:
    """Stream a chat completion as OpenAI and vLLM do.

    Args:
        head: what every chunk begins with.
        reply: the answer.
        usage: what comes last, if it was asked for.
        text: the content, where it is more than the reply's text.
    """

    def chunk(delta: dict[str, Any], finish: str | None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        more = {} if usage is None else {"usage": None}
        return format_event({**head, "choices": [choice], **more})

    yield chunk({"role": "assistant", "content": "", "refusal": None}, None)
    for piece in iter_pieces(text or reply.text):
        yield chunk({"content": piece}, None)
    yield chunk({}, reply.finish)
    if usage is not None:
        yield format_event({**head, "choices": [], "usage": usage})
    yield format_event("[DONE]")
