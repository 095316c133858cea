"""`client.workflows`: graphs of capabilities."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Self

from toolkit.client._async.annotated import AsyncAnnotated, AsyncAnnotatedResource
from toolkit.client._async.node import AsyncWorkflowNode
from toolkit.client._builder import Workflow
from toolkit.client._graph_view import GraphView, TimelineView
from toolkit.client._members import Member
from toolkit.client._record_list import RecordList
from toolkit.client._wire.messages import drop_none
from toolkit.contract import workflows
from toolkit.contract.base import ErrorInfo
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.jobs import Options
from toolkit.display.workflow.boxes import format_workflow_cost

if TYPE_CHECKING:
    from toolkit.client._async.resources.artifacts import AsyncArtifact
    from toolkit.client._async.resources.jobs import AsyncJob


class AsyncWorkflowRun(GraphView, AsyncAnnotated[workflows.WorkflowRecord]):
    """A submitted workflow."""

    noun, resource, record_type = "Workflow", "workflows", workflows.WorkflowRecord

    @property
    def nodes(self) -> list[workflows.Node]:
        """Its nodes, in the order given."""
        return RecordList(self.record.nodes, "nodes")

    def __getitem__(self, key: str) -> AsyncWorkflowNode:
        """Return a node, with what it made: `wf["copy"].text`."""
        return AsyncWorkflowNode.of(super().__getitem__(key), self._http)

    cost_usd = Member[float | None](
        "US dollars that its completed jobs cost together; none where a price is unknown."
    )
    estimated_cost_usd = Member[float | None](
        "US dollars that it was expected to cost; none where a price is unknown."
    )
    cost_incurred_usd = Member[float](
        "US dollars that were paid in all, for failed attempts and retries too."
    )
    name = Member[str]("The name that it was given.")
    options = Member[Options]("The options that all of its nodes share.")
    endpoint_id = Member[str | None]("The endpoint that its GPU work runs at, if one was named.")
    compute_id = Member[str | None]("The compute that its GPU work runs on, if one was named.")
    max_retries = Member[int]("The most retries of each node.")
    forked_from = Member[str | None]("The workflow whose results it starts from.")
    started_at = Member[datetime | None]("The time at which it began to run; none until then.")
    error = Member[ErrorInfo | None]("The first error, if there was any.")

    @property
    def task_id(self) -> str:
        """The task that it was made for; empty for one of its own."""
        return self.record.task_id or ""

    sink_artifact_ids = Member[dict[str, str]](
        "The artifact of every node that nothing depends on, by node id."
    )
    status_detail = Member[str | None]("A word on what it waits for, where there is one.")
    created_at = Member[datetime]("The time at which it was asked for.")
    completed_at = Member[datetime | None]("The time at which it was over; none until then.")

    @property
    def latency_ms(self) -> int:
        """Wall time from submit to completion, in milliseconds; 0 until then."""
        return self.record.latency_ms or 0

    retries = Member[int]("Node retries across the workflow.")
    warnings = Member[list[str]]("What went wrong and did not stop it: optional nodes that failed.")

    @property
    def final_artifact_id(self) -> str:
        """The artifact of the last node that nothing depends on; empty until completion."""
        return self.record.final_artifact_id or ""

    async def job(self, node_id: str) -> "AsyncJob":
        """Read the job of a node.

        Raises:
            KeyError: there is no such node.
            RequestError: `NOT_FOUND` while the node has none.
        """
        from toolkit.client._async.resources.jobs import AsyncJobs

        job_id = self[node_id].job_id
        if job_id is None:
            raise RequestError(ErrorCode.NOT_FOUND, f"The node `{node_id}` has no job yet.")
        return await AsyncJobs(self._http).get(job_id)

    async def artifact(self, node_id: str) -> "AsyncArtifact":
        """Read the artifact of a node; a small one comes with its bytes.

        Raises:
            KeyError: there is no such node.
            RequestError: `NOT_FOUND` while the node has none.
        """
        from toolkit.client._async.resources.artifacts import read_artifact

        return await read_artifact(self._http, self[node_id].artifact_id)

    def _format_next_call(self) -> str:
        return f'client.workflows.retry("{self.id}").wait()'

    async def retry(self) -> Self:
        """Run it again from its failed nodes on; its id and its results stay.

        Raises:
            RequestError: `CONFLICT` unless it has failed or was cancelled.
        """
        return await self._call("POST", "/retry")

    async def fork(
        self, from_node: str, overrides: Mapping[str, Mapping[str, object]] | None = None
    ) -> Self:
        """Make a new one that runs a node again and what depends on it, and keeps the rest.

        Args:
            from_node: the node to run again.
            overrides: input members that differ, by the id of a node that runs again.

        Raises:
            RequestError: `INVALID_REQUEST` for a node that does not run again.
        """
        body = {"from_node": from_node, "overrides": dict(overrides or {})}
        made = await self._http.request_record(
            self.record_type, "POST", f"{self.path}/fork", json=body
        )
        self._http.note_started(self.resource, made.id)
        return type(self)(self._http, made)

    def _list_rows(self) -> list[workflows.Node]:
        return self.record.nodes

    def timeline(self) -> TimelineView:
        """Return a Gantt chart of when each node ran, which shows itself."""
        return TimelineView(self.record)

    def _make_title(self) -> str:
        return self.record.name

    def _describe_cost(self) -> str:
        return format_workflow_cost(self.record)

    def _list_nodes(self) -> list[workflows.Node]:
        return self.record.nodes


class AsyncWorkflows(AsyncAnnotatedResource[AsyncWorkflowRun]):
    """`client.workflows`."""

    handle = AsyncWorkflowRun

    async def submit(self, workflow: Workflow, *, stream: bool = False) -> AsyncWorkflowRun:
        """Submit a workflow; it is under way when this returns.

        Args:
            workflow: what to run.
            stream: have the texts of its nodes come as they are written, from the first on, for
                whoever follows it.

        Raises:
            RequestError: `INVALID_WORKFLOW`, `CREDENTIALS_MISSING`, `INVALID_REQUEST`, `NOT_FOUND`;
                `FUNCTION_UNAVAILABLE` for a function, by a client of a server.
        """
        if workflow.functions:
            from toolkit.client._functions import Functions

            functions = Functions(self._http.functions, self._http.url)
            functions._add_submitted(workflow.functions)
        return await self.create(workflow.to_dict(), stream=stream)

    async def create(self, body: Mapping[str, object], *, stream: bool = False) -> AsyncWorkflowRun:
        """Submit a workflow given as the contract's JSON.

        Args:
            body: what to run.
            stream: as for `submit`.
        """
        chosen = drop_none(cache=self._http.cache)
        given = body.get("options")
        options = {**chosen, **(given if isinstance(given, Mapping) else {})}
        asked = {**body, **({"options": options} if options else {})}
        made = await self._create(asked, watches_text=stream)
        made.is_streamed = stream
        return made

    async def retry(self, id: str) -> AsyncWorkflowRun:
        """Run one that did not complete again, from its failed nodes on.

        Raises:
            RequestError: `CONFLICT` unless it has failed or was cancelled.
        """
        return await self._call("POST", id, "/retry")

    async def fork(
        self,
        id: str,
        from_node: str,
        overrides: Mapping[str, Mapping[str, object]] | None = None,
    ) -> AsyncWorkflowRun:
        """Make a new one that runs a node again and what depends on it, and keeps the rest.

        Args:
            id: the workflow whose results are kept.
            from_node: the node to run again.
            overrides: input members that differ, by the id of a node that runs again.

        Raises:
            RequestError: `INVALID_REQUEST` for a node that does not run again.
        """
        body = {"from_node": from_node, "overrides": dict(overrides or {})}
        return await self._call("POST", id, "/fork", body)
