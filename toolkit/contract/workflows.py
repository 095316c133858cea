"""Workflows: a graph of capability nodes (specification, "Workflow")."""

from typing import Annotated, Literal

from pydantic import Field

from toolkit.contract.annotations import GivenNote, GivenTags
from toolkit.contract.base import ErrorInfo, JsonObject, Record, Request, Timestamp, Usd
from toolkit.contract.jobs import Options

WorkflowStatus = Literal["queued", "running", "completed", "failed", "cancelled"]
# The capability of a node that calls a function of the process which submitted the workflow.
FUNCTION_CAPABILITY = "function.call@1"
NodeStatus = Literal["pending", "queued", "running", "completed", "failed", "cancelled"]
# Any name that real pipelines give their steps, without control characters or line ends.
NodeId = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]


class NodeCreate(Request):
    """One node of a submitted graph; `capability` is a name or `name@version`.

    Attributes:
        optional: whether its dependents run without its artifact if it fails after its retries,
            with a warning on the workflow. It may not be the only source of a field that a
            dependent requires.
    """

    id: NodeId
    capability: str = Field(min_length=1, max_length=128)
    input: JsonObject = {}
    depends_on: list[NodeId] = Field(default=[], max_length=1000)
    options: Options = Options()
    optional: bool = False


class WorkflowCreate(Request):
    """`POST /v1/workflows`.

    Attributes:
        endpoint_id, compute_id: place where GPU work runs, unless its node names another; if both
            are set, the endpoint.
    """

    name: str = Field(min_length=1, max_length=200)
    endpoint_id: str | None = Field(default=None, max_length=64)
    compute_id: str | None = Field(default=None, max_length=64)
    max_retries: int = Field(
        default=0, ge=0, le=3, description="maximum retries of each failed node"
    )
    # Not min_length: a graph without nodes is INVALID_WORKFLOW, as every other fault of a graph.
    nodes: list[NodeCreate] = Field(json_schema_extra={"minItems": 1})
    options: Options = Options()
    tags: GivenTags = []
    note: GivenNote = ""


class WorkflowFork(Request):
    """`POST /v1/workflows/{id}/fork`.

    Attributes:
        from_node: node that runs again, with all its dependents.
        overrides: input members that change, by the id of a node that runs again.
    """

    from_node: NodeId
    overrides: dict[NodeId, JsonObject] = Field(default={}, max_length=1000)


class Node(Record):
    """A node of a workflow in its current state."""

    id: str
    capability: str
    input: JsonObject = {}
    depends_on: list[str] = []
    optional: bool = Field(
        default=False, description="whether the workflow continues without the node if it fails"
    )
    status: NodeStatus = "pending"
    status_detail: str | None = None
    job_id: str | None = None
    artifact_id: str | None = None
    retry_count: int = 0
    provider: str | None = None
    estimated_cost_usd: Usd | None = Field(
        default=None, description="expected cost in US dollars, before the start"
    )
    cost_usd: Usd | None = None
    cost_incurred_usd: Usd = 0.0
    cached_from: str | None = Field(
        default=None, description="job whose result was reused, at no cost"
    )
    error: ErrorInfo | None = None
    started_at: Timestamp | None = None
    completed_at: Timestamp | None = None

    @property
    def label(self) -> str:
        """The node's text on displays: its capability, or the function that it calls.

        >>> Node(id="a", capability=FUNCTION_CAPABILITY, input={"function": "clean"}).label
        'clean()'
        """
        if self.capability != FUNCTION_CAPABILITY:
            return self.capability
        return f"{self.input.get('function', '')}()"


class WorkflowRecord(Record):
    """A workflow and its cost.

    Attributes:
        estimated_cost_usd: cost of all nodes as expected before the start, in US dollars; null if a
            price is unknown.
        cost_usd: sum of its completed jobs' own costs, in US dollars; null if a cost is unknown.
        cost_incurred_usd: total paid in US dollars, which budgets count, with failed attempts and
            retries.
    """

    id: str
    name: str
    status: WorkflowStatus = "queued"
    status_detail: str | None = None
    endpoint_id: str | None = None
    compute_id: str | None = None
    max_retries: int = 0
    options: Options = Options()
    task_id: str | None = None
    forked_from: str | None = Field(default=None, description="workflow whose results it reuses")
    nodes: list[Node] = []
    final_artifact_id: str | None = None
    sink_artifact_ids: dict[str, str] = Field(
        default={}, description="artifacts of the nodes without dependents, by node id"
    )
    estimated_cost_usd: Usd | None = None
    cost_usd: Usd | None = None
    cost_incurred_usd: Usd = 0.0
    latency_ms: int | None = None
    retries: int = 0
    warnings: list[str] = Field(
        default=[],
        description="faults that did not stop the workflow, such as failed optional nodes",
    )
    error: ErrorInfo | None = None
    tags: list[str] = []
    note: str | None = None
    created_at: Timestamp
    started_at: Timestamp | None = None
    completed_at: Timestamp | None = None
