"""`client.jobs`: single executions for a run, for a node, or on the caller's own compute."""

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from toolkit.client._async.handle import AsyncWaitable
from toolkit.client._async.resource import AsyncWorkResource
from toolkit.client._replies import AsyncReply
from toolkit.client._work_calls import JobCalls
from toolkit.client._work_views import ExecutionView, JobView
from toolkit.contract import jobs
from toolkit.contract.events import PieceKind, TextDelta, TextPiece

if TYPE_CHECKING:
    from toolkit.client._async.resources.artifacts import AsyncArtifact
    from toolkit.client._vectors import Vectors

J = TypeVar("J", bound=jobs.Job)


class AsyncExecution(ExecutionView[J], AsyncWaitable[J]):
    """The base of runs and jobs: one execution of a capability."""

    async def stream(
        self, *, kinds: Sequence[PieceKind] = ("text",), check: bool = True
    ) -> AsyncIterator[TextPiece]:
        """Yield the output's text while it is written.

        The pieces from the last `restarts` piece on are the text of the output. Without
        `stream=True` at creation, the text comes in fewer pieces, or in one.

        Args:
            kinds: kinds of pieces, of `text`, `reasoning` and `tool_call`; a piece has its `kind`.
            check: raise an error if the run failed or was cancelled.

        Raises:
            WorkError: the run failed or was cancelled, unless `check=False`.
            ServiceError: `UNAVAILABLE` if the service cannot be reached for too long.
        """
        from toolkit.client._following import TextAssembler

        texts = TextAssembler()
        while not self.done:
            async for item in self._http.stream_events(
                self.path, self._last_event, begin=texts.begin
            ):
                if isinstance(item, TextDelta):
                    piece = texts.add(item)
                    if piece is not None and piece.kind in kinds:
                        yield piece
                else:
                    self._last_event = item.n
            await self.refresh()
        for piece in texts.complete(self.output, kinds):
            yield piece
        if check:
            self._raise_if_failed()

    async def artifact(self) -> "AsyncArtifact":
        """Read the artifact of the output. A small artifact comes with its bytes.

        Raises:
            RequestError: `NOT_FOUND` while there is none.
        """
        from toolkit.client._async.resources.artifacts import read_artifact

        return await read_artifact(self._http, self.artifact_id)

    @property
    async def vectors(self) -> "Vectors":
        """The vectors of `embed.generate`: an array of n × d 32-bit floats.

        Raises:
            RequestError: `NOT_FOUND` before the end, `INVALID_REQUEST` for another capability.
        """
        from toolkit.client._vectors import read_vectors

        artifact = await self.artifact()
        return read_vectors(await artifact.content())


class AsyncJob(JobView, AsyncExecution[jobs.Job]):
    """A job of a run, of a workflow node, or on a compute."""

    noun, resource, record_type = "Job", "jobs", jobs.Job


class AsyncJobs(JobCalls[AsyncReply[AsyncJob]], AsyncWorkResource[AsyncJob]):
    """`client.jobs`: list and read all jobs, or start one on your own compute."""

    handle = AsyncJob
