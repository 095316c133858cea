"""`client.workflows`: graphs of capabilities."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from pydantic import PrivateAttr

from toolkit.client._async.handle import AsyncAnnotated
from toolkit.client._async.http import AsyncHttpClient
from toolkit.client._async.resource import AsyncAnnotatedResource
from toolkit.client._replies import AsyncReply
from toolkit.client._work_calls import WorkflowCalls
from toolkit.client._work_views import GeneratedText, WorkflowRunView
from toolkit.contract import workflows
from toolkit.contract.errors import ErrorCode, RequestError

if TYPE_CHECKING:
    from toolkit.client._async.resources.artifacts import AsyncArtifact
    from toolkit.client._async.resources.jobs import AsyncJob


class AsyncWorkflowNode(workflows.Node):
    """A node of a workflow, as it was when the workflow was last read."""

    _http: Any = PrivateAttr(default=None)

    @classmethod
    def of(cls, node: workflows.Node, http: AsyncHttpClient) -> "AsyncWorkflowNode":
        """Copy a node of a record, with a client to read its job and its artifact by."""
        copy = cls.model_construct(node.model_fields_set, **dict(node))
        copy._http = http
        return copy

    @property
    async def job(self) -> "AsyncJob":
        """The node's job, read now.

        Raises:
            RequestError: `NOT_FOUND` while the node has none.
        """
        from toolkit.client._async.resources.jobs import AsyncJobs

        if self.job_id is None:
            raise RequestError(ErrorCode.NOT_FOUND, f"The node `{self.id}` has no job yet.")
        return await AsyncJobs(self._http).get(self.job_id)

    @property
    async def output(self) -> Any:
        """The output of the node's job, read now; None without a job, or if the job failed.

        Raises:
            RequestError: `CONFLICT` while the job is under way.
        """
        return None if self.job_id is None else (await self.job).output

    @property
    async def text(self) -> GeneratedText | None:
        """The text in the node's output, read now; None without a text or before completion."""
        return None if self.job_id is None else (await self.job).text

    @property
    async def value(self) -> Any:
        """The value of the function, or of the artifact, read now: text, JSON, a table or bytes.

        Raises:
            RequestError: `NOT_FOUND` while the node has none.
        """
        return await (await self.artifact).value()

    @property
    async def artifact(self) -> "AsyncArtifact":
        """The node's artifact, read now; a small artifact comes with its bytes.

        Raises:
            RequestError: `NOT_FOUND` while the node has none.
        """
        from toolkit.client._async.resources.artifacts import read_artifact

        return await read_artifact(self._http, self.artifact_id)


class AsyncWorkflowRun(WorkflowRunView, AsyncAnnotated[workflows.WorkflowRecord]):
    """A submitted workflow, with its nodes and their results."""

    noun, resource, record_type = "Workflow", "workflows", workflows.WorkflowRecord

    def __getitem__(self, key: str) -> AsyncWorkflowNode:
        """Return a node, with its results: `wf["copy"].text`."""
        return AsyncWorkflowNode.of(super().__getitem__(key), self._http)

    async def job(self, node_id: str) -> "AsyncJob":
        """Read the job of a node.

        Raises:
            KeyError: there is no such node.
            RequestError: `NOT_FOUND` while the node has none.
        """
        return await self[node_id].job

    async def artifact(self, node_id: str) -> "AsyncArtifact":
        """Read the artifact of a node. A small artifact comes with its bytes.

        Raises:
            KeyError: there is no such node.
            RequestError: `NOT_FOUND` while the node has none.
        """
        return await self[node_id].artifact

    async def retry(self) -> Self:
        """Run the workflow again from its failed nodes on; its id and its results stay.

        Raises:
            RequestError: `CONFLICT` unless it has failed or was cancelled.
        """
        return await self._call("POST", "/retry")

    async def fork(
        self, from_node: str, overrides: Mapping[str, Mapping[str, object]] | None = None
    ) -> Self:
        """Create a workflow that runs a node and its dependents again and keeps all other results.

        Args:
            from_node: id of the node to run again.
            overrides: changed input values, by the id of a node that runs again.

        Raises:
            RequestError: `INVALID_REQUEST` if `overrides` names a node that does not run again.
        """
        body = {"from_node": from_node, "overrides": dict(overrides or {})}
        record = await self._http.request_record(
            self.record_type, "POST", f"{self.path}/fork", json=body
        )
        self._http.note_started(self.resource, record.id)
        return type(self)(self._http, record)


class AsyncWorkflows(
    WorkflowCalls[AsyncReply[AsyncWorkflowRun]], AsyncAnnotatedResource[AsyncWorkflowRun]
):
    """`client.workflows`: submit, retry, fork and list workflows."""

    handle = AsyncWorkflowRun
