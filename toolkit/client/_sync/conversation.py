# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""A conversation with a model, of which each turn is a run."""

from collections.abc import Mapping, Sequence
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Unpack

from toolkit.client._conversation_view import ConversationView, make_answer
from toolkit.client._sync.resources.runs import Run, Runs
from toolkit.client._tools import RequestedCall, ToolArgument
from toolkit.contract.run_options import RunOptions

if TYPE_CHECKING:
    from toolkit.client._sync.http import HttpClient

CAPABILITY = "llm.generate"


class Conversation(ConversationView[Run]):
    """A conversation, whose history is in its runs; `client.conversation` begins or continues it.

    Attributes:
        name: the name by which another kernel continues it.
        messages: the history: each message as `llm.generate` takes it.
        runs: the runs of this object's turns.
    """

    def __init__(
        self,
        http: "HttpClient",
        name: str,
        *,
        system: str = "",
        tools: Sequence[ToolArgument] = (),
        max_turns: int = 1,
        **options: Unpack[RunOptions],
    ) -> None:
        super().__init__(name, tools)
        self._runs = Runs(http)
        self._system = system
        self._max_turns = max_turns
        self._options = options

    def load(self) -> None:
        """Restore the history from the newest run of this name; drop an unanswered message."""
        for newest in self._runs.list(limit=1, tag=self.tag):
            run = self._runs.get(newest.id)
            given = run.record.input
            self._system = self._system or str(given.get("system") or "")
            messages = given.get("messages")
            self.messages = list(messages) if isinstance(messages, list) else []
            if run.status == "completed":
                self.messages.append(make_answer(run.record.output))
            elif self.messages and self.messages[-1]["role"] == "user":
                self.messages.pop()  # its turn has no answer, and is asked again

    def send(self, text: str = "", *, images: Sequence[str] = (), **fields: object) -> Run:
        """Send a message, and wait for the answer.

        If `max_turns` is more than 1, your functions are called when the model asks for them.

        Args:
            text: your message.
            images: ids of artifacts that the message shows.
            **fields: further fields of `llm.generate`, such as `max_tokens` or `reasoning`.

        Returns:
            the run of the last answer. If it asks for tools that are no functions of yours, or
            after `max_turns` runs, `tool_calls` has them: pass their answers to `answer`.

        Raises:
            RequestError: as for `client.runs.create`; nothing is added to the history then.
                `INVALID_REQUEST` if the last answer asks for tools, which `answer` answers.
            WorkError: a run failed; its message stays out of the history.
        """
        return self._continue([self._make_message(text, images)], fields)

    def answer(
        self, results: Mapping[str, object] | Sequence[Mapping[str, object]], **fields: object
    ) -> Run:
        """Answer the tools that the last run asked for, and wait for the model's next answer.

        Args:
            results: results by the ids of the calls, or messages made by `RequestedCall.answer`.
            **fields: further fields of `llm.generate`.

        Raises:
            RequestError: `INVALID_REQUEST` if a call has no result.
        """
        return self._continue(self._make_answers(results), fields)

    def _continue(self, messages: list[dict[str, Any]], fields: Mapping[str, object]) -> Run:
        for turn in range(1, self._max_turns + 1):
            run = self._ask(messages, fields)
            calls = self.tool_calls
            if not calls or turn == self._max_turns or any(c.function is None for c in calls):
                break
            # They stay in the history if the next run fails, because the functions were called.
            self.messages += [_answer_call(call) for call in calls]
            messages = []
        return run

    def _ask(self, messages: list[dict[str, Any]], fields: Mapping[str, object]) -> Run:
        given: dict[str, object] = {"messages": [*self.messages, *messages], **fields}
        if self._system:
            given["system"] = self._system
        if self._tools:
            given["tools"] = self._tools
        run = self._runs.create(CAPABILITY, given, tags=[self.tag], **self._options)
        self.runs.append(run)
        run.wait(progress=False)
        self.messages += [*messages, make_answer(run.record.output)]
        return run


def _answer_call(call: RequestedCall) -> dict[str, object]:
    """Answer a call by its function; an error is an answer that the model can react to."""
    try:
        result = call()
        result = result if isawaitable(result) else result
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
    return call.answer(result)
