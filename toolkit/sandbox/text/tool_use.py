"""The tools of the simulated model: whether it asks for one, and with which arguments."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.sandbox.text.prompts import ParsedPrompt
from toolkit.sandbox.text.schema_filling import SchemaFiller
from toolkit.sandbox.text.sentences import extract_stems

_QUOTED = re.compile(r"[\"“'](.+?)[\"”'](?!\w)")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][\w-]*(?: [A-Z][\w-]*)*")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A function that a request offers."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SimulatedCall:
    """A request of the model to call a tool."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """The tools of a request, and how the model may use them.

    Attributes:
        named: the only tool that it may ask for; "" for any.
    """

    tools: Sequence[OfferedTool] = ()
    is_required: bool = False
    named: str = ""


NO_TOOLS = ToolOffer()


def choose_call(offer: ToolOffer, ask: ParsedPrompt, *, is_answered: bool) -> SimulatedCall | None:
    """Choose the call to a tool that fits the words of a request; None to answer with text.

    Args:
        is_answered: whether a tool has answered it already.
    """
    tools = [tool for tool in offer.tools if offer.named in ("", tool.name)]
    if not tools or (is_answered and not offer.is_required):
        return None
    scores = [_score_tool(tool, ask.objective) for tool in tools]
    best = max(scores)
    if best == 0 and not offer.is_required:
        return None
    tool = tools[scores.index(best)]
    arguments = SchemaFiller(tool.parameters, ask).fill_schema()
    if not isinstance(arguments, dict):
        return SimulatedCall(tool.name, {})
    return SimulatedCall(tool.name, arguments | _read_arguments(tool.parameters, ask.objective))


def _read_arguments(schema: dict[str, Any], objective: str) -> dict[str, Any]:
    """Read arguments off the words of a request: quoted texts and names, and numbers.

    >>> fields = {"city": {"type": "string"}, "days": {"type": "integer"}}
    >>> _read_arguments({"properties": fields}, "What is the weather in Rome for 3 days?")
    {'city': 'Rome', 'days': 3}
    """
    texts = iter([*_QUOTED.findall(objective), *_NAME.findall(objective)])
    numbers = iter(_NUMBER.findall(objective))
    read: dict[str, Any] = {}
    for name, field in schema.get("properties", {}).items():
        kind = field.get("type")
        if "enum" in field or "format" in field:
            continue
        if kind == "string" and (text := next(texts, None)) is not None:
            read[name] = text
        elif kind in ("integer", "number") and (number := next(numbers, None)) is not None:
            read[name] = int(float(number)) if kind == "integer" else float(number)
    return read


def _score_tool(tool: OfferedTool, objective: str) -> int:
    """Count the words that a tool's name and description share with a request."""
    named = extract_stems(tool.name.replace("_", " ").replace("-", " "))
    words = extract_stems(objective)
    return 2 * len(named & words) + len(extract_stems(tool.description) & words)
