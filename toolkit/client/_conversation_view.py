"""The display of a conversation, in async and sync clients alike."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from toolkit.client._tools import RequestedCall, ToolArgument, map_functions, read_calls
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.money import format_usd, sum_usd
from toolkit.display.records import html
from toolkit.display.text import format_count

if TYPE_CHECKING:
    from toolkit.client._work_views import RunView

R = TypeVar("R", bound="RunView")
TAG = "conversation:"


class ConversationView(Generic[R]):
    """A conversation with a model, shown in a notebook as a table of its messages."""

    def __init__(self, name: str, tools: Sequence[ToolArgument]) -> None:
        self.name = name
        self.messages: list[dict[str, Any]] = []
        self.runs: list[R] = []
        self._tools = list(tools)

    @property
    def tag(self) -> str:
        """The tag by which the runs of this conversation are found again."""
        return f"{TAG}{self.name}"

    @property
    def tool_calls(self) -> list[RequestedCall]:
        """The tools that the last answer asks for, if they have no answers yet."""
        last: Mapping[str, Any] = self.messages[-1] if self.messages else {}
        return read_calls(last.get("tool_calls") or (), map_functions(self._tools))

    def _make_message(self, text: str, images: Sequence[str]) -> dict[str, Any]:
        """Make the caller's next message.

        Raises:
            RequestError: `INVALID_REQUEST` if the last answer asks for tools.
        """
        if calls := self.tool_calls:
            names = ", ".join(f"`{call.name}`" for call in calls)
            message = f"The model asks for {names}: give the results with `answer`."
            raise RequestError(ErrorCode.INVALID_REQUEST, message)
        content: object = text
        if images:
            parts: list[dict[str, object]] = [{"type": "image", "artifact_id": id} for id in images]
            content = [*([{"type": "text", "text": text}] if text else []), *parts]
        return {"role": "user", "content": content}

    def _make_answers(
        self, results: Mapping[str, object] | Sequence[Mapping[str, object]]
    ) -> list[dict[str, Any]]:
        """Make the messages that answer the calls of tools, from results by id or from messages.

        Raises:
            RequestError: `INVALID_REQUEST` if a call has no result.
        """
        if not isinstance(results, Mapping):
            return [dict(message) for message in results]
        calls = {call.id: call for call in self.tool_calls}
        if missing := calls.keys() - results.keys():
            message = f"There is no result of {', '.join(sorted(missing))}."
            raise RequestError(ErrorCode.INVALID_REQUEST, message)
        return [call.answer(results[id]) for id, call in calls.items()]

    def __repr__(self) -> str:
        facts = [format_count(len(self.messages), "message")]
        costs = [run.cost_usd for run in self.runs if run.cost_usd is not None]
        if costs:
            facts.append(format_usd(sum_usd(costs)))
        return f"<Conversation {self.name}: {', '.join(facts)}>"

    def _repr_html_(self) -> str:
        rows = [
            {"role": message["role"], "message": "\n".join(_iter_lines(message))}
            for message in self.messages
        ]
        return html.fit_cell(html.render_table(rows, ("role", "message"), repr(self)[1:-1]))


def make_answer(output: Mapping[str, Any] | None) -> dict[str, Any]:
    """Make the model's message for the history from a run's output: text, and tool calls if any."""
    output = output or {}
    message = {"role": "assistant", "content": output.get("text") or ""}
    calls = output.get("tool_calls")
    return {**message, "tool_calls": calls} if calls else message


def _iter_lines(message: Mapping[str, Any]) -> Iterator[str]:
    content: str | Sequence[Mapping[str, Any]] = message["content"]
    if isinstance(content, str):
        if content:
            yield content
    else:
        for part in content:
            yield part["text"] if part["type"] == "text" else f"image {part['artifact_id']}"
    for call in message.get("tool_calls") or ():
        given = ", ".join(f"{name}={value!r}" for name, value in call["arguments"].items())
        yield f"{call['name']}({given})"
