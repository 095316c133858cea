"""`client.workflows`: graphs of capabilities."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

from toolkit.client._async.annotated import AsyncAnnotated, AsyncAnnotatedResource
from toolkit.client._async.node import AsyncWorkflowNode
from toolkit.client._builder import Workflow
from toolkit.client._wire.messages import drop_none
from toolkit.client._work_views import WorkflowRunView
from toolkit.contract import workflows
from toolkit.contract.errors import ErrorCode, RequestError

if TYPE_CHECKING:
    from toolkit.client._async.resources.artifacts import AsyncArtifact
    from toolkit.client._async.resources.jobs import AsyncJob


class AsyncWorkflowRun(WorkflowRunView, AsyncAnnotated[workflows.WorkflowRecord]):
    """A submitted workflow."""

    noun, resource, record_type = "Workflow", "workflows", workflows.WorkflowRecord

    def __getitem__(self, key: str) -> AsyncWorkflowNode:
        """Return a node, with what it made: `wf["copy"].text`."""
        return AsyncWorkflowNode.of(super().__getitem__(key), self._http)

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
