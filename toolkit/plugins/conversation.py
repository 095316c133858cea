"""The parts of a conversation with a language model, independent of any vendor's terms."""

import json
from dataclasses import dataclass, field
from typing import Literal

# What a request may ask of a model beyond text; `vendors/abilities.toml` explains each.
TEXT_ABILITIES = frozenset(("images", "reasoning", "seed", "stop", "tools", "top_p"))
# Tokens of reasoning that each level allows; a caller may also give a number of tokens.
REASONING_TOKENS = {"none": 0, "low": 1_024, "medium": 4_096, "high": 16_384}


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that a model is shown.

    Attributes:
        media_type: such as `image/png`.
        data: the bytes; empty in an operation that is only priced.
    """

    media_type: str = "image/png"
    data: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Tool:
    """A function of the caller that a model may ask for.

    Attributes:
        name: letters, digits, `_` and `-`.
        description: what it does, for the model.
        parameters: JSON schema of its arguments, an object.
    """

    name: str
    description: str
    parameters: dict[str, object]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's request to call a tool.

    Attributes:
        id: the vendor's id of the request, which the answer of the tool names.
        name: name of the tool.
        arguments: arguments by name.
        signature: opaque text that the vendor wants to read again with the tool's answer.
    """

    id: str
    name: str
    arguments: dict[str, object]
    signature: str = ""

    @property
    def spelled_arguments(self) -> str:
        """The arguments as JSON."""
        return json.dumps(self.arguments, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of a conversation.

    Attributes:
        role: who says it; `tool` is the answer of a tool.
        text: the words.
        pictures: pictures that a user shows.
        tool_calls: tools that a model asked for.
        tool_call_id: the request that a tool answers.
    """

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    pictures: tuple[Picture, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""


def count_reasoning_tokens(reasoning: str | int | None) -> int:
    """Return the most tokens of reasoning that a request allows; 0 if it does not ask for any.

    >>> count_reasoning_tokens("low"), count_reasoning_tokens(2_000), count_reasoning_tokens(None)
    (1024, 2000, 0)
    """
    if isinstance(reasoning, str):
        return REASONING_TOKENS[reasoning]
    return reasoning or 0
