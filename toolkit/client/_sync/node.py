# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""Nodes of a submitted workflow, with what each of them made."""

from typing import TYPE_CHECKING, Any

from pydantic import PrivateAttr

from toolkit.client._sync.http import HttpClient
from toolkit.client._text import GeneratedText
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.workflows import Node

if TYPE_CHECKING:
    from toolkit.client._sync.resources.artifacts import Artifact
    from toolkit.client._sync.resources.jobs import Job


class WorkflowNode(Node):
    """A node of a workflow, as it was when the workflow was last read."""

    _http: Any = PrivateAttr(default=None)

    @classmethod
    def of(cls, node: Node, http: HttpClient) -> "WorkflowNode":
        """Make the node of a record."""
        made = cls.model_construct(node.model_fields_set, **dict(node))
        made._http = http
        return made

    @property
    def job(self) -> "Job":
        """Its job, read now.

        Raises:
            RequestError: `NOT_FOUND` while the node has none.
        """
        from toolkit.client._sync.resources.jobs import Jobs

        if self.job_id is None:
            raise RequestError(ErrorCode.NOT_FOUND, f"The node `{self.id}` has no job yet.")
        return Jobs(self._http).get(self.job_id)

    @property
    def output(self) -> Any:
        """What its capability answered, read now; none until it is completed."""
        return None if self.job_id is None else (self.job).output

    @property
    def text(self) -> GeneratedText | None:
        """The text it made, read now; none where it made none, or is not completed."""
        return None if self.job_id is None else (self.job).text

    @property
    def value(self) -> Any:
        """What a function returned, read now: text, JSON, a table or bytes; of other nodes, what
        their artifact holds.

        Raises:
            RequestError: `NOT_FOUND` while the node has none.
        """
        return (self.artifact).value()

    @property
    def artifact(self) -> "Artifact":
        """Its artifact, read now; a small one comes with its bytes.

        Raises:
            RequestError: `NOT_FOUND` while the node has none.
        """
        from toolkit.client._sync.resources.artifacts import read_artifact

        return read_artifact(self._http, self.artifact_id)
