"""The parts of a conversation with a language model, independent of any vendor's terms."""

import json
from dataclasses import dataclass, field, replace
from math import prod
from typing import Literal

USUAL_TOKENS = 1_200, 200  # of a picture of a megapixel or more, and of a small picture
# Abilities of a model that is not in the catalogue; `vendors/abilities.toml` explains each.
# `confidence` is no part of it, because few servers return log-probabilities.
TEXT_ABILITIES = frozenset(
    ("images", "reasoning", "reasoning_with_tools", "seed", "stop", "tools", "top_p")
)
# Tokens of reasoning that each level allows; a caller may also give a number of tokens.
REASONING_TOKENS = {"none": 0, "low": 1_024, "medium": 4_096, "high": 16_384}


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that a model is shown.

    Attributes:
        media_type: such as `image/png`.
        data: the bytes; empty in an operation that is only priced.
        size: width and height in pixels; None if they are not known.
    """

    media_type: str = "image/png"
    data: bytes = field(default=b"", repr=False)
    size: tuple[int, int] | None = None

    @property
    def usual_tokens(self) -> int:
        """An estimate of its tokens by its size, from 200 to 1,200; 1,200 for an unknown size."""
        most, least = USUAL_TOKENS
        return most if self.size is None else max(least, min(most, prod(self.size) // 1_000))


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


# The beginning of a signature that is the reasoning before a call, and not a vendor's own text.
_REASONING_MARK = "reasoning:"


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

    @property
    def reasoning(self) -> str:
        """The reasoning in the signature; "" if the signature is a vendor's own text."""
        is_reasoning = self.signature.startswith(_REASONING_MARK)
        return self.signature.removeprefix(_REASONING_MARK) if is_reasoning else ""

    def sign(self, reasoning: str) -> "ToolCall":
        """Return the call with the reasoning before it as its signature.

        >>> ToolCall("1", "clock", {}).sign("What time is it?").reasoning
        'What time is it?'
        """
        return replace(self, signature=f"{_REASONING_MARK}{reasoning}")


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of a conversation.

    Attributes:
        role: who says it; `tool` is the answer of a tool.
        text: the words.
        pictures: pictures that a user shows.
        tool_calls: tools that a model asked for.
        tool_call_id: id of the call that a tool's message answers; "" in other messages.
    """

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    pictures: tuple[Picture, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
