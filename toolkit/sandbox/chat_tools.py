"""Tools on the chat wire that OpenAI and compatible servers share."""

import json
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from toolkit.sandbox.json_http import JsonObject, RequestBody
from toolkit.sandbox.text.chat import SimulatedReply
from toolkit.sandbox.text.tool_use import OfferedTool, ToolOffer


class ChatFunction(RequestBody, extra="ignore"):
    """A function that the model may ask for."""

    name: str = Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")
    description: str | None = None
    parameters: JsonObject | None = None
    strict: bool | None = None


class ChatTool(RequestBody, extra="ignore"):
    """A tool of a request."""

    type: Literal["function"]
    function: ChatFunction


class NamedFunction(RequestBody, extra="ignore"):
    """The name of a function."""

    name: str


class NamedChoice(RequestBody, extra="ignore"):
    """The tool that the model must ask for."""

    type: Literal["function"]
    function: NamedFunction


def make_offer(tools: Sequence[ChatTool] | None, choice: str | NamedChoice | None) -> ToolOffer:
    """Make the offer of a request's tools.

    Raises:
        ValueError: the choice names no tool of the request, or there are no tools to choose from.
    """
    offered = [
        OfferedTool(
            function.name,
            function.description or "",
            function.parameters or {"type": "object", "properties": {}},
        )
        for function in (tool.function for tool in tools or ())
    ]
    if isinstance(choice, NamedChoice):
        if choice.function.name not in [tool.name for tool in offered]:
            raise ValueError(f"Tool choice '{choice.function.name}' not found in 'tools'.")
        return ToolOffer(offered, is_required=True, named=choice.function.name)
    if choice in ("auto", "required") and not offered:
        raise ValueError("'tool_choice' is only allowed when 'tools' are specified.")
    return ToolOffer(offered if choice != "none" else (), is_required=choice == "required")


def build_calls(reply: SimulatedReply, digest: str) -> list[JsonObject]:
    """Build the calls of a message."""
    return [
        {
            "id": f"call_{digest[:20]}{place}",
            "type": "function",
            "function": {
                "name": call.name,
                "arguments": json.dumps(call.arguments, ensure_ascii=False),
            },
        }
        for place, call in enumerate(reply.calls)
    ]


def split_calls(calls: Sequence[JsonObject]) -> list[dict[str, Any]]:
    """Split calls into the deltas of a stream: the name first, then pieces of the arguments."""
    deltas: list[dict[str, Any]] = []
    for place, call in enumerate(calls):
        spelled = call["function"]["arguments"]
        begun = {**call, "function": {**call["function"], "arguments": ""}, "index": place}
        deltas.append({"tool_calls": [begun]})
        for start in range(0, len(spelled), 12):
            piece = {"index": place, "function": {"arguments": spelled[start : start + 12]}}
            deltas.append({"tool_calls": [piece]})
    return deltas
