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
        """Make the node of a record."""
        copy = cls.model_construct(node.model_fields_set, **dict(node))
        copy._http = http
        return copy

    @property
    async def job(self) -> "AsyncJob":
        """Its job, read now.

        Raises:
            RequestError: `NOT_FOUND` while the node has none.
        """
        from toolkit.client._async.resources.jobs import AsyncJobs

        if self.job_id is None:
            raise RequestError(ErrorCode.NOT_FOUND, f"The node `{self.id}` has no job yet.")
        return await AsyncJobs(self._http).get(self.job_id)

    @property
    async def output(self) -> Any:
        """The output of its capability, read now, or None until it is completed."""
        return None if self.job_id is None else (await self.job).output

    @property
    async def text(self) -> GeneratedText | None:
        """The text of its output, read now, or None if it has no text or is not completed."""
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
        """Read its artifact now. A small artifact comes with its bytes.

        Raises:
            RequestError: `NOT_FOUND` while the node has none.
        """
        from toolkit.client._async.resources.artifacts import read_artifact

        return await read_artifact(self._http, self.artifact_id)


class AsyncWorkflowRun(WorkflowRunView, AsyncAnnotated[workflows.WorkflowRecord]):
    """A submitted workflow."""

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
        """Run it again from its failed nodes on; its id and its results stay.

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
    """`client.workflows`."""

    handle = AsyncWorkflowRun
