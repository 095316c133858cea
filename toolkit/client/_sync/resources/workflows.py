# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.workflows`: graphs of capabilities."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

from toolkit.client._builder import Workflow
from toolkit.client._sync.annotated import Annotated, AnnotatedResource
from toolkit.client._sync.node import WorkflowNode
from toolkit.client._wire.messages import drop_none
from toolkit.client._work_views import WorkflowRunView
from toolkit.contract import workflows
from toolkit.contract.errors import ErrorCode, RequestError

if TYPE_CHECKING:
    from toolkit.client._sync.resources.artifacts import Artifact
    from toolkit.client._sync.resources.jobs import Job


class WorkflowRun(WorkflowRunView, Annotated[workflows.WorkflowRecord]):
    """A submitted workflow."""

    noun, resource, record_type = "Workflow", "workflows", workflows.WorkflowRecord

    def __getitem__(self, key: str) -> WorkflowNode:
        """Return a node, with what it made: `wf["copy"].text`."""
        return WorkflowNode.of(super().__getitem__(key), self._http)

    def job(self, node_id: str) -> "Job":
        """Read the job of a node.

        Raises:
            KeyError: there is no such node.
            RequestError: `NOT_FOUND` while the node has none.
        """
        from toolkit.client._sync.resources.jobs import Jobs

        job_id = self[node_id].job_id
        if job_id is None:
            raise RequestError(ErrorCode.NOT_FOUND, f"The node `{node_id}` has no job yet.")
        return Jobs(self._http).get(job_id)

    def artifact(self, node_id: str) -> "Artifact":
        """Read the artifact of a node; a small one comes with its bytes.

        Raises:
            KeyError: there is no such node.
            RequestError: `NOT_FOUND` while the node has none.
        """
        from toolkit.client._sync.resources.artifacts import read_artifact

        return read_artifact(self._http, self[node_id].artifact_id)

    def retry(self) -> Self:
        """Run it again from its failed nodes on; its id and its results stay.

        Raises:
            RequestError: `CONFLICT` unless it has failed or was cancelled.
        """
        return self._call("POST", "/retry")

    def fork(
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
        made = self._http.request_record(self.record_type, "POST", f"{self.path}/fork", json=body)
        self._http.note_started(self.resource, made.id)
        return type(self)(self._http, made)


class Workflows(AnnotatedResource[WorkflowRun]):
    """`client.workflows`."""

    handle = WorkflowRun

    def submit(self, workflow: Workflow, *, stream: bool = False) -> WorkflowRun:
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
        return self.create(workflow.to_dict(), stream=stream)

    def create(self, body: Mapping[str, object], *, stream: bool = False) -> WorkflowRun:
        """Submit a workflow given as the contract's JSON.

        Args:
            body: what to run.
            stream: as for `submit`.
        """
        chosen = drop_none(cache=self._http.cache)
        given = body.get("options")
        options = {**chosen, **(given if isinstance(given, Mapping) else {})}
        asked = {**body, **({"options": options} if options else {})}
        made = self._create(asked, watches_text=stream)
        made.is_streamed = stream
        return made

    def retry(self, id: str) -> WorkflowRun:
        """Run one that did not complete again, from its failed nodes on.

        Raises:
            RequestError: `CONFLICT` unless it has failed or was cancelled.
        """
        return self._call("POST", id, "/retry")

    def fork(
        self,
        id: str,
        from_node: str,
        overrides: Mapping[str, Mapping[str, object]] | None = None,
    ) -> WorkflowRun:
        """Make a new one that runs a node again and what depends on it, and keeps the rest.

        Args:
            id: the workflow whose results are kept.
            from_node: the node to run again.
            overrides: input members that differ, by the id of a node that runs again.

        Raises:
            RequestError: `INVALID_REQUEST` for a node that does not run again.
        """
        body = {"from_node": from_node, "overrides": dict(overrides or {})}
        return self._call("POST", id, "/fork", body)
