"""A conversation with a model, of which each turn is a run."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from toolkit.client._async.resources.runs import AsyncRun, AsyncRuns
from toolkit.client._tools import RequestedCall, ToolArgument
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.run_options import RunOptions

if TYPE_CHECKING:
    from toolkit.client._async.http import AsyncHttpClient

TAG = "conversation:"
CAPABILITY = "llm.generate"


class AsyncConversation:
    """A conversation, whose history is in its runs; `client.conversation` begins or continues it.

    Attributes:
        name: the name by which another kernel continues it.
        messages: the history: each message as `llm.generate` takes it.
        runs: the runs of this object's turns.
    """

    def __init__(
        self,
        http: "AsyncHttpClient",
        name: str,
        *,
        system: str = "",
        tools: Sequence[ToolArgument] = (),
        max_turns: int = 1,
        **options: Unpack[RunOptions],
    ) -> None:
        self.name = name
        self.messages: list[dict[str, Any]] = []
        self.runs: list[AsyncRun] = []
        self._runs = AsyncRuns(http)
        self._system = system
        self._tools = list(tools)
        self._max_turns = max_turns
        self._options = options

    @property
    def tag(self) -> str:
        """The tag of the runs."""
        return f"{TAG}{self.name}"

    async def load(self) -> None:
        """Read the history of an earlier kernel, if there is any."""
        async for newest in self._runs.list(limit=1, tag=self.tag):
            run = await self._runs.get(newest.id)
            given = run.record.input
            self._system = self._system or str(given.get("system") or "")
            messages = given.get("messages")
            self.messages = list(messages) if isinstance(messages, list) else []
            if run.status == "completed":
                self.messages.append(_make_answer(run))
            elif self.messages and self.messages[-1]["role"] == "user":
                self.messages.pop()  # its turn has no answer, and is asked again

    async def send(
        self, text: str = "", *, images: Sequence[str] = (), **fields: object
    ) -> AsyncRun:
        """Say something, and wait for the answer; your own functions answer the tools meanwhile.

        Args:
            text: your message.
            images: ids of artifacts that the message shows.
            **fields: further fields of `llm.generate`, such as `max_tokens` or `reasoning`.

        Returns:
            the run of the last answer. If it asks for tools that are no functions of yours, or
            after `max_turns` runs, `tool_calls` has them: pass their answers to `answer`.

        Raises:
            RequestError: as for `client.runs.create`; nothing is added to the history then.
            WorkError: a run failed; its message stays out of the history.
        """
        content: object = text
        if images:
            parts: list[dict[str, object]] = [{"type": "image", "artifact_id": id} for id in images]
            content = [*([{"type": "text", "text": text}] if text else []), *parts]
        return await self._continue([{"role": "user", "content": content}], fields)

    async def answer(
        self, results: Mapping[str, object] | Sequence[Mapping[str, object]], **fields: object
    ) -> AsyncRun:
        """Answer the tools that the last run asked for, and wait for the model's next answer.

        Args:
            results: results by the ids of the calls, or messages made by `RequestedCall.answer`.
            **fields: further fields of `llm.generate`.

        Raises:
            RequestError: `INVALID_REQUEST` if a call has no result.
        """
        if isinstance(results, Mapping):
            calls = {call.id: call for call in self.tool_calls}
            if missing := calls.keys() - results.keys():
                message = f"There is no result of {', '.join(sorted(missing))}."
                raise RequestError(ErrorCode.INVALID_REQUEST, message)
            results = [call.answer(results[id]) for id, call in calls.items()]
        return await self._continue([dict(message) for message in results], fields)

    @property
    def tool_calls(self) -> list[RequestedCall]:
        """The tools that the last answer asks for."""
        return self.runs[-1].tool_calls if self.runs else []

    async def _continue(
        self, messages: list[dict[str, Any]], fields: Mapping[str, object]
    ) -> AsyncRun:
        for turn in range(1, self._max_turns + 1):
            run = await self._ask(messages, fields)
            calls = run.tool_calls
            if not calls or turn == self._max_turns or any(c.function is None for c in calls):
                break
            messages = [call.answer(_call_function(call)) for call in calls]
        return run

    async def _ask(self, messages: list[dict[str, Any]], fields: Mapping[str, object]) -> AsyncRun:
        given: dict[str, object] = {"messages": [*self.messages, *messages], **fields}
        if self._system:
            given["system"] = self._system
        if self._tools:
            given["tools"] = self._tools
        run = await self._runs.create(CAPABILITY, given, tags=[self.tag], **self._options)
        self.runs.append(run)
        await run.wait(progress=False)
        self.messages += [*messages, _make_answer(run)]
        return run


def _make_answer(run: AsyncRun) -> dict[str, Any]:
    """Make the model's message from the output of a run."""
    output = run.record.output or {}
    message = {"role": "assistant", "content": output.get("text") or ""}
    calls = output.get("tool_calls")
    return {**message, "tool_calls": calls} if calls else message


def _call_function(call: RequestedCall) -> object:
    """Call a function; its error is an answer that the model can react to."""
    try:
        return call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
