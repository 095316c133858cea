"""The execution of one capability: the part that runs and jobs share."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from toolkit.client._async.handle import AsyncWaitable
from toolkit.client._members import Member
from toolkit.client._record_list import RecordList
from toolkit.client._text import GeneratedText, find_text
from toolkit.contract.base import ErrorInfo, JsonObject
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.jobs import Attempt, CostSource, Job, Options, Routing

if TYPE_CHECKING:
    from pydantic import BaseModel

    from toolkit.client._async.resources.artifacts import AsyncArtifact
    from toolkit.client._text_pieces import TextPiece

J = TypeVar("J", bound=Job)
M = TypeVar("M", bound="BaseModel")


class AsyncExecution(AsyncWaitable[J]):
    """A capability being executed."""

    facts: tuple[str, ...] = (
        "capability", "status", "status_detail", "provider", "model", "output", "artifact_id",
        "error", "cost_usd", "latency_ms", "retry_count", "cached_from", "workflow_id", "node_id",
    )  # fmt: skip

    @property
    def output(self) -> Any:
        """The output of the capability; none if it failed or was cancelled.

        Raises:
            RequestError: `CONFLICT` until it is over.
        """
        self._check_done()
        return self.record.output

    def _check_done(self) -> None:
        if not self.done:
            message = f"{self.id} is {self.status}: call `.wait()` first."
            raise RequestError(ErrorCode.CONFLICT, message)

    def parse(self, model: "type[M]") -> M:
        """Make an instance of a pydantic model of its answer, once it is completed.

        Args:
            model: such as the `output_model` that it was asked for with.

        Raises:
            WorkError: it failed, or its answer does not fit the model.
            RequestError: `CONFLICT` until it is over.
        """
        from toolkit.client._output_model import parse_output

        self._raise_if_failed()
        return parse_output(model, self.output, self.id)

    @property
    def text(self) -> GeneratedText | None:
        """The text it made, which a notebook shows as Markdown; none where it made none."""
        return find_text(self.record.output)

    @property
    def artifact_id(self) -> str:
        """The artifact it yielded; empty until it is completed."""
        return self.record.artifact_id or ""

    capability = Member[str]("The capability, as `name@version`.")
    options = Member[Options]("The options that it was given.")
    connection_id = Member[str | None]("The connection that was called last.")
    cost_source = Member[CostSource](
        "The source of `cost_usd`: `reported` by the vendor, `metered`, `estimated` or `unknown`."
    )
    queue_ms = Member[int | None](
        "The milliseconds that it waited for a job slot and for CPU slots."
    )
    cached_from = Member[str | None]("The job whose result was used again, at no cost.")
    started_at = Member[datetime | None]("The time at which it began to run; none until then.")
    input = Member[JsonObject]("The input, as it was given.")
    provider = Member[str | None]("The provider that served it, or was asked last.")
    model = Member[str | None]("The model that answered, as the provider names it.")

    @property
    def cost_usd(self) -> float | None:
        """US dollars that its result cost, 0 where nothing was called; none while that is unknown.

        Of one that failed, all that was paid.
        """
        return self.record.cost_usd

    estimated_cost_usd = Member[float | None](
        "US dollars that it was expected to cost; none where the price is unknown."
    )
    reservation_usd = Member[float | None](
        "US dollars that its last call could come to at most; none where nobody can say."
    )
    cost_incurred_usd = Member[float](
        "US dollars that were paid in all, for failed attempts and retries too."
    )
    usage = Member[JsonObject]("The units that the provider billed, such as tokens.")
    latency_ms = Member[int | None]("The milliseconds that it took; none until it is over.")
    retry_count = Member[int]("The number of times that it was started again.")
    cached = Member[bool]("True if the result of an equal job was used again.")
    status_detail = Member[str | None]("A word on what it waits for, where there is one.")
    created_at = Member[datetime]("The time at which it was asked for.")
    completed_at = Member[datetime | None]("The time at which it was over; none until then.")

    @property
    def workflow_id(self) -> str:
        """The workflow that it is a node of; empty for one asked for alone."""
        return self.record.workflow_id or ""

    @property
    def node_id(self) -> str:
        """The node that it is; empty for one asked for alone."""
        return self.record.node_id or ""

    @property
    def attempts(self) -> list[Attempt]:
        """Each try at a provider, in order."""
        return RecordList(self.record.attempts, "attempts")

    error = Member[ErrorInfo | None]("The error, if there was any.")

    async def stream(self, *, check: bool = True) -> "AsyncIterator[TextPiece]":
        """Yield the output's text as it is written, until it is over.

        Joined, the pieces since the last one that `restarts` are the text of the output. What was
        written before is there only of a run that was created with `stream=True`; the text of any
        other comes in fewer pieces, or in one.

        Args:
            check: raise if it failed.

        Raises:
            WorkError: it failed or was cancelled; `check=False` only ends.
            ServiceError: `UNAVAILABLE` for a server that is away for longer than is waited for.
        """
        from toolkit.client._text_pieces import TextAssembler
        from toolkit.contract.events import TextDelta

        texts = TextAssembler()
        while not self.done:
            async for item in self._http.stream_events(
                self.path, self._last_event, begin=texts.begin
            ):
                if isinstance(item, TextDelta):
                    piece = texts.add(item)
                    if piece:
                        yield piece
                else:
                    self._last_event = item.n
            await self.refresh()
        text = self.output.get("text") if isinstance(self.output, dict) else None
        rest = texts.complete(text) if isinstance(text, str) else None
        if rest is not None:
            yield rest
        if check:
            self._raise_if_failed()

    async def artifact(self) -> "AsyncArtifact":
        """Read the artifact it yielded; a small one comes with its bytes.

        Raises:
            RequestError: `NOT_FOUND` while there is none.
        """
        from toolkit.client._async.resources.artifacts import read_artifact

        return await read_artifact(self._http, self.artifact_id)

    routing = Member[Routing | None](
        "The router's decision, with every candidate and why it was kept or dropped."
    )
