"""The evidence for the review of a task's results: inputs, outputs and providers of its nodes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from toolkit.contract.base import ErrorInfo, JsonObject
from toolkit.contract.jobs import Options
from toolkit.contract.plans import Plan, PlanNode
from toolkit.contract.tasks import RecommendedAction, Review, Task
from toolkit.contract.workflows import Node, WorkflowRecord
from toolkit.engine.context import EngineContext
from toolkit.engine.routing.router import is_servable
from toolkit.engine.services.artifacts import Artifacts
from toolkit.planning.retry import ASKED
from toolkit.planning.review.evidence import Evidence
from toolkit.plugins import Blob, Capability, Upstream
from toolkit.store import AccountScope

# A field with a provider's own name for something, which other providers do not know.
_PROVIDERS_NAME = "voice"


@dataclass(frozen=True)
class NodeHistory:
    """The inputs of a node, from its plan and from every review.

    Attributes:
        planned_input: planned input, with a person's changes.
        instructions: instructions that reviews added.
        remarks: a person's remarks on its results.
        options: present options of the node.
    """

    planned_input: JsonObject
    instructions: tuple[str, ...]
    remarks: tuple[str, ...]
    options: Options | None

    @classmethod
    def trace(cls, node: PlanNode, reviews: Sequence[Review]) -> "NodeHistory":
        """Collect the history of a node from its plan and from the actions of reviews on it."""
        planned_input, options = dict(node.input), node.options
        texts: dict[bool, dict[str, None]] = {True: {}, False: {}}
        for action in _iterate_actions(node.id, reviews):
            is_asked = action.action == ASKED
            texts[is_asked] |= dict.fromkeys(action.instructions)
            if is_asked:
                planned_input |= action.constraints
            if action.provider is not None:
                options = (options or Options()).model_copy(update={"provider": action.provider})
        return cls(planned_input, tuple(texts[False]), tuple(texts[True]), options)


def _iterate_actions(node_id: str, reviews: Sequence[Review]) -> Iterator[RecommendedAction]:
    for review in reviews:
        yield from (action for action in review.recommended_actions if action.node_id == node_id)


class EvidenceReader:
    """Reads the evidence for a review: requests and results of the nodes of a task's workflow."""

    def __init__(self, core: EngineContext, artifacts: Artifacts) -> None:
        self._core = core
        self._artifacts = artifacts

    async def read(
        self, account_id: str, task: Task, workflow: WorkflowRecord, plan: Plan
    ) -> list[Evidence]:
        """Read the input and output of every node, dependencies before dependents."""
        evidence: dict[str, Evidence] = {}
        for item in await self.read_requests(account_id, task, workflow, plan):
            node = next(candidate for candidate in workflow.nodes if candidate.id == item.node.id)
            output, blob = None, None
            if node.job_id is not None and node.artifact_id is not None:
                job = await self._core.records.jobs.find(AccountScope(account_id), node.job_id)
                output = job.output if job else None
                entry = await self._artifacts.find(AccountScope(account_id), node.artifact_id)
                blob = await self._artifacts.load_blob(entry)
            evidence[node.id] = replace(
                item, output=output, blob=blob, artifact_id=node.artifact_id or ""
            )
        for node_id, item in evidence.items():
            upstream = [evidence[up] for up in item.node.depends_on if up in evidence]
            evidence[node_id] = replace(
                item,
                upstream_text=_join_texts(item.capability, upstream),
                pictures=_find_pictures(item, upstream),
            )
        return list(evidence.values())

    async def read_requests(
        self, account_id: str, task: Task, workflow: WorkflowRecord, plan: Plan
    ) -> list[Evidence]:
        """Read the input, status and history of every node, without its output."""
        plan_nodes = {node.id: node for node in plan.nodes}
        before = [
            await self._core.records.workflows.get(AccountScope(account_id), workflow_id)
            for workflow_id in task.workflow_ids
            if workflow_id != workflow.id
        ]
        evidence: list[Evidence] = []
        for node in workflow.nodes:
            plan_node = plan_nodes.get(node.id) or PlanNode(
                id=node.id, capability=node.capability, input=node.input
            )
            history = NodeHistory.trace(plan_node, task.reviews)
            earlier = [run for flow in before for run in flow.nodes if run.id == node.id]
            capability = self._core.registry.require(node.capability)
            item = Evidence(
                node=PlanNode(
                    id=node.id,
                    capability=node.capability,
                    input=node.input,
                    depends_on=node.depends_on,
                    reason=plan_node.reason,
                    optional=node.optional,
                    options=history.options,
                ),
                capability=capability,
                status=node.status,
                output=None,
                blob=None,
                error_code=node.error.code if node.error else None,
                upstream_text=None,
                planned_input=history.planned_input,
                instructions=history.instructions,
                remarks=history.remarks,
                has_failed_before=node.error is not None
                and any(_is_same(run.error, node.error) for run in earlier),
            )
            if not _is_bound(item, plan_node, evidence) and not _runs_at_place(task):
                other_providers = await self._find_others(account_id, item, [node, *earlier])
                item = replace(item, other_providers=other_providers)
            evidence.append(item)
        return evidence

    async def _find_others(
        self, account_id: str, item: Evidence, runs: Sequence[Node]
    ) -> tuple[str, ...]:
        """Find the connected providers that could run a node and were not tried, default first."""
        capability = item.capability
        options = (item.node.options or Options()).model_copy(update={"provider": None})
        pool = await self._core.directory.find_providers(
            AccountScope(account_id), capability, options
        )
        tried_ids = {run.provider for run in runs}
        candidates = [
            vendor.id
            for vendor in pool.vendors
            if vendor.id not in tried_ids
            and pool.is_connected(vendor.id)
            and is_servable(capability, options.model_copy(update={"provider": vendor.id}), pool)
        ]
        return tuple(
            sorted(candidates, key=lambda provider: provider != capability.default_provider)
        )


def _is_bound(item: Evidence, plan_node: PlanNode, upstream: Sequence[Evidence]) -> bool:
    """Check whether a node cannot change its provider.

    It has no provider, its plan names the provider, or it uses a voice that only one provider has.
    """
    if item.capability.operation is None or (plan_node.options and plan_node.options.provider):
        return True
    return _PROVIDERS_NAME in item.node.input or any(
        source.capability.can_fill(item.capability, _PROVIDERS_NAME)
        for source in upstream
        if source.node.id in item.node.depends_on and _PROVIDERS_NAME in item.capability.accepts
    )


def _runs_at_place(task: Task) -> bool:
    return bool(task.constraints.endpoint_id or task.constraints.compute_id)


def _is_same(error: ErrorInfo | None, current: ErrorInfo) -> bool:
    return error is not None and (error.code, error.message) == (
        current.code,
        current.message,
    )


def _find_pictures(item: Evidence, upstream: list[Evidence]) -> dict[str, Blob]:
    """Find the pictures from upstream nodes that filled fields of a node, by field.

    A field counts only if a single upstream result fits it.
    """
    pictures: dict[str, Blob] = {}
    for name, binding in item.capability.accepts.items():
        if binding.mode != "artifact" or name in item.node.input:
            continue
        blobs = [source.blob for source in upstream if source.blob is not None]
        fitting = [blob for blob in blobs if binding.matches(blob.media_type)]
        if len(fitting) == 1 and fitting[0].media_type.startswith("image/"):
            pictures[name] = fitting[0]
    return pictures


def _join_texts(capability: Capability, upstream: list[Evidence]) -> str | None:
    """Join the texts of the upstream nodes as the dependent node received them; None if empty."""
    bindings = [binding for binding in capability.accepts.values() if binding.mode == "text"]
    texts = [
        text
        for item in upstream
        if item.blob is not None
        and any(binding.matches(item.blob.media_type) for binding in bindings)
        and (text := Upstream(item.node.id, "", item.blob).text) is not None
    ]
    return "\n\n".join(texts) or None
