"""Nodes of a submitted workflow, with what each of them made."""

from typing import TYPE_CHECKING, Any

from pydantic import PrivateAttr

from toolkit.client._async.http import AsyncHttpClient
from toolkit.client._text import GeneratedText
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.workflows import Node

if TYPE_CHECKING:
    from toolkit.client._async.resources.artifacts import AsyncArtifact
    from toolkit.client._async.resources.jobs import AsyncJob


class AsyncWorkflowNode(Node):
    """A node of a workflow, as it was when the workflow was last read."""

    _http: Any = PrivateAttr(default=None)

    @classmethod
    def of(cls, node: Node, http: AsyncHttpClient) -> "AsyncWorkflowNode":
        """Make the node of a record."""
        made = cls.model_construct(node.model_fields_set, **dict(node))
        made._http = http
        return made

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
        """What its capability answered, read now; none until it is completed."""
        return None if self.job_id is None else (await self.job).output

    @property
    async def text(self) -> GeneratedText | None:
        """The text it made, read now; none where it made none, or is not completed."""
        return None if self.job_id is None else (await self.job).text

    @property
    async def value(self) -> Any:
        """What a function returned, read now: text, JSON, a table or bytes; of other nodes, what
        their artifact holds.

        Raises:
            RequestError: `NOT_FOUND` while the node has none.
        """
        return await (await self.artifact).value()

    @property
    async def artifact(self) -> "AsyncArtifact":
        """Its artifact, read now; a small one comes with its bytes.

        Raises:
            RequestError: `NOT_FOUND` while the node has none.
        """
        from toolkit.client._async.resources.artifacts import read_artifact

        return await read_artifact(self._http, self.artifact_id)
