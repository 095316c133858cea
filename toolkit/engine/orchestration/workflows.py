"""The service of `/v1/workflows`: accepts and cancels them; the scheduler runs them."""

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from toolkit.contract.base import format_rfc3339, now
from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.jobs import FINAL_STATUSES, Options
from toolkit.contract.money import from_wire_usd, to_wire_usd
from toolkit.contract.workflows import (
    FUNCTION_CAPABILITY,
    Node,
    NodeCreate,
    WorkflowCreate,
    WorkflowRecord,
)
from toolkit.engine.annotations import build_annotation, list_given_tags
from toolkit.engine.concurrency.cancellation import finish_before_cancel
from toolkit.engine.concurrency.pacing import Pacer
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.admission import Admission, check_place
from toolkit.engine.execution.job_executor import JobExecutor
from toolkit.engine.execution.leases import LeaseManager
from toolkit.engine.execution.node_states import (
    JobState,
    find_dependents,
    find_optional,
    find_skipped,
    materialize_nodes,
)
from toolkit.engine.execution.scheduler import Scheduler
from toolkit.engine.execution.workflow_graph import (
    check_graph,
    find_node_capabilities,
    make_spec,
    merge_node_options,
    name_node_faults,
    name_refused_node,
)
from toolkit.engine.job_record import read_job
from toolkit.engine.money.affordability import BudgetLeft
from toolkit.engine.money.budget import Budget
from toolkit.engine.observer import WatchedWorkflow
from toolkit.engine.request_context import RequestContext
from toolkit.engine.routing.estimates import (
    FREE_ESTIMATE,
    UNKNOWN_ESTIMATE,
    Estimate,
    ProviderChoices,
    build_usual_operation,
    estimate_node,
    explain_unaffordable,
    sum_estimates,
)
from toolkit.engine.routing.registry import validate_input
from toolkit.engine.services.artifacts import Artifacts
from toolkit.engine.services.idempotency import commit_accepted
from toolkit.engine.services.record_reader import WorkReader
from toolkit.functions import RegisteredFunction
from toolkit.planning.graph_faults import find_fillable_fields
from toolkit.store import WORKFLOW_LIST, AccountScope, AppendEvent, Change, Lease, Row

NO_FIELDS = frozenset[str]()


class CheckedGraph(NamedTuple):
    """A graph that has passed every check and can be run.

    Attributes:
        options: options of each node, by node id.
        estimates: possible cost of each node, by node id; free for a node that does not run.
        capabilities: full name of each capability with its version, by its name in the graph.
    """

    options: dict[str, Options]
    estimates: dict[str, Estimate]
    capabilities: dict[str, str]


class Workflows(WorkReader[WorkflowRecord]):
    """The operations of `/v1/workflows`, apart from retries and forks."""

    def __init__(
        self, core: EngineContext, leases: LeaseManager, executor: JobExecutor, artifacts: Artifacts
    ) -> None:
        super().__init__(core, core.records.workflows, WORKFLOW_LIST)
        self._leases = leases
        self._executor = executor
        self._artifacts = artifacts
        # Accepted by this process and not started: these need no read from the store.
        self._fresh: dict[str, tuple[WorkflowRecord, Mapping[str, Any]]] = {}
        # Functions of running workflows, because the function table drops unreferenced functions.
        self._functions: dict[str, list[RegisteredFunction]] = {}
        leases.register_handler("workflow", lambda lease: self.run(lease.root_id, lease))

    async def read_current(self, row: Row) -> WorkflowRecord:
        """Read the current workflow; while it runs, its nodes' states come from their jobs."""
        async with Pacer(row["account_id"]) as pacer:
            workflow = await super().read_current(row)
            if workflow.status in FINAL_STATUSES:
                return workflow
            await pacer.pause()
            store, jobs = self._core.store, dict[str, JobState]()
            for job in await store.find_rows("jobs", workflow_id=workflow.id):
                await pacer.pause()
                jobs[str(job["node_id"])] = JobState.of(read_job(job))
            kept_jobs: dict[str, str] = json.loads(str(row["spec"]))["kept"]
            for node_id, job_id in kept_jobs.items():
                await pacer.pause()
                job_row = await store.get_row("jobs", job_id)
                if job_row is not None:
                    jobs[node_id] = JobState.of(read_job(job_row))
            await pacer.pause()
            skipped = find_skipped(
                jobs, find_dependents(workflow.nodes), find_optional(workflow.nodes)
            )
            workflow = await materialize_nodes(workflow, jobs, skipped, pacer)
            await pacer.pause()
        starts = (state.started_at for state in jobs.values() if state.started_at)
        workflow.status, workflow.started_at = row["status"], min(starts, default=None)
        return workflow

    async def create(
        self,
        context: RequestContext,
        request: WorkflowCreate,
        kept_jobs: Mapping[str, str] = {},
        *,
        forked_from: str | None = None,
    ) -> WorkflowRecord:
        """Accept a workflow; it is durable and in progress when this returns.

        Args:
            kept_jobs: ids of the jobs that some nodes already have, by node id.
            forked_from: id of the workflow that those jobs belong to.

        Raises:
            RequestError: `INVALID_WORKFLOW`, `INVALID_REQUEST`, `NOT_FOUND` for an unknown
                capability, `CREDENTIALS_MISSING`, `PROVIDER_NOT_ALLOWED`, `BUDGET_EXCEEDED`.
        """
        graph = await self.check(context.account_id, request, kept_jobs)
        await self.check_allowance(context, request, kept_jobs)
        await self._core.quotas.check_queue(context.account_id)
        workflow = self.draft(request, graph)
        workflow.forked_from = forked_from
        insert, lease = self._core.store.leases.build_root(
            workflow.id, "workflow", context.account_id, context.key_id
        )
        spec = make_spec(graph.options, kept_jobs)
        changes = self.to_changes(workflow, context.account_id, workflow.id, spec)
        annotation = build_annotation(context.account_id, workflow.id, request.tags, request.note)
        await commit_accepted(self._core, context, [insert, *changes, *annotation], workflow)
        if not kept_jobs:
            self._fresh[workflow.id] = workflow, spec
        self._hold_functions(workflow)
        capabilities = map(self._core.require_for_node, set(graph.capabilities.values()))
        self._core.driver.prepare_steps(
            [step for capability in capabilities for step in capability.cpu_steps]
        )
        if context.watches_text:
            self._core.texts.expect(workflow.id)
        self._leases.start(lease)
        return workflow

    async def check(
        self,
        account_id: str,
        request: WorkflowCreate,
        kept_ids: Collection[str] = (),
        *,
        limit: Decimal | None = None,
    ) -> CheckedGraph:
        """Refuse a graph that cannot run, before anything is stored.

        Args:
            kept_ids: ids of nodes that do not run, because their results exist.
            limit: additional limit on the cost, in US dollars.

        Returns:
            the options, the estimated cost and the capability of each node.

        Raises:
            RequestError: see `create`.
        """
        settings = self._core.settings
        async with Pacer(account_id) as pacer:
            check_graph(request.nodes, max_nodes=settings.max_nodes, max_edges=settings.max_edges)
            await pacer.pause()
            by_id = find_node_capabilities(self._core.require_for_node, request.nodes)
            self._refuse_missing_functions(account_id, request.nodes, kept_ids)
            optional = find_optional(request.nodes)
            await check_place(
                self._core, AccountScope(account_id), request.endpoint_id, request.compute_id
            )
            gate = Admission(self._core, self._artifacts, AccountScope(account_id))
            options = merge_node_options(request)
            limits = [limit, from_wire_usd(request.options.max_cost_usd)]
            limit = min((amount for amount in limits if amount is not None), default=None)
            faults: list[Detail] = []
            estimates: dict[str, Estimate] = {}
            choices: ProviderChoices = {}
            for i, node in enumerate(request.nodes):
                await pacer.pause()
                capability = by_id[node.id]
                fillable = certain_fields = NO_FIELDS
                if capability.accepts:
                    upstream = {up: by_id[up] for up in node.depends_on}
                    fillable = find_fillable_fields(capability, upstream.values())
                    always = [by_id[up] for up in upstream if up not in optional]
                    certain_fields = find_fillable_fields(capability, always)
                path, possible_fields = f"nodes.{i}.input", fillable - certain_fields
                try:
                    validate_input(capability, node.input, certain_fields, path, possible_fields)
                except RequestError as error:
                    faults += name_node_faults(node.id, error.details)
                    continue
                node_options = options[node.id]
                try:
                    await gate.admit(capability, node.input, node_options, None)
                except RequestError as error:
                    raise name_refused_node(i, node.id, error) from None
                estimates[node.id] = FREE_ESTIMATE
                if capability.operation is not None and node.id not in kept_ids:
                    await pacer.pause()
                    estimates[node.id] = estimate_node(
                        capability,
                        node.input,
                        fillable,
                        node_options,
                        await gate.find_providers(capability, node_options),
                        BudgetLeft.of(node_options).restrict(limit),
                        choices,
                        with_range=limit is not None,
                    )
                    if estimates[node.id] == UNKNOWN_ESTIMATE:  # maybe no model has the abilities
                        usual = build_usual_operation(capability, node.input, fillable)
                        try:
                            await gate.admit(capability, node.input, node_options, usual)
                        except RequestError as error:
                            raise name_refused_node(i, node.id, error) from None
            await pacer.pause()
        if faults:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "Some nodes have invalid inputs.", details=faults
            )
        refusal = explain_unaffordable(estimates, limit)
        if refusal is not None:
            raise RequestError(ErrorCode.BUDGET_EXCEEDED, refusal)
        names = {node.capability: by_id[node.id] for node in request.nodes}
        return CheckedGraph(
            options, estimates, {name: capability.name for name, capability in names.items()}
        )

    def _refuse_missing_functions(
        self, account_id: str, nodes: Sequence[NodeCreate], kept_ids: Collection[str]
    ) -> None:
        """Refuse nodes whose functions are missing here, or not callable by this account."""
        function_nodes = [node for node in nodes if node.capability == FUNCTION_CAPABILITY]
        if function_nodes:
            from toolkit.functions.node_capability import refuse_missing_functions

            table = self._core.functions
            is_owner = table is not None and table.account_id == account_id
            nodes_to_run = [node for node in function_nodes if node.id not in kept_ids]
            refuse_missing_functions(nodes_to_run, table if is_owner else None)

    def _hold_functions(self, workflow: WorkflowRecord) -> None:
        if self._core.functions is not None and any(
            node.capability == FUNCTION_CAPABILITY for node in workflow.nodes
        ):
            from toolkit.functions.node_capability import find_functions

            self._functions[workflow.id] = find_functions(workflow.nodes, self._core.functions)

    async def check_allowance(
        self,
        context: RequestContext,
        request: WorkflowCreate,
        kept_ids: Collection[str] = (),
    ) -> None:
        """Refuse a graph if the allowances of the key and account cover none of its paid calls.

        Args:
            kept_ids: ids of nodes that do not run, because their results exist.

        Raises:
            RequestError: `BUDGET_EXCEEDED`.
        """
        allowances = self._core.allowances
        allowance = await allowances.find_remaining(context)
        if allowance is None:
            return
        await allowances.check_bound(context, None)
        gate = Admission(self._core, self._artifacts, context.scope)
        options = merge_node_options(request)
        by_id = find_node_capabilities(self._core.require_for_node, request.nodes)
        refusal: Estimate | None = None
        for node in request.nodes:
            if node.id in kept_ids:
                continue
            await asyncio.sleep(0)  # there may be many nodes: let other tasks run
            capability = by_id[node.id]
            estimate = estimate_node(
                capability,
                node.input,
                find_fillable_fields(capability, [by_id[up] for up in node.depends_on]),
                options[node.id],
                await gate.find_providers(capability, options[node.id]),
                BudgetLeft(is_limited=True, available=allowance),
            )
            if estimate.refusal is not None:
                refusal = estimate
            elif estimate != FREE_ESTIMATE:
                return
        if refusal is not None:
            await allowances.raise_exceeded(context)

    def draft(
        self, request: WorkflowCreate, graph: CheckedGraph, *, task_id: str | None = None
    ) -> WorkflowRecord:
        """Make the record of a new workflow."""
        estimates, names = graph.estimates, graph.capabilities
        return WorkflowRecord(
            id=new_id(Prefix.WORKFLOW),
            name=request.name,
            endpoint_id=request.endpoint_id,
            compute_id=request.compute_id,
            max_retries=request.max_retries,
            options=request.options,
            task_id=task_id,
            nodes=[
                Node(
                    id=node.id,
                    capability=names[node.capability],
                    input=node.input,
                    depends_on=node.depends_on,
                    optional=node.optional,
                    estimated_cost_usd=to_wire_usd(estimates[node.id].expected),
                )
                for node in request.nodes
            ],
            estimated_cost_usd=sum_estimates(estimates.values()).expected,
            tags=list_given_tags(request.tags),
            note=request.note or None,
            created_at=now(),
        )

    def to_changes(
        self,
        workflow: WorkflowRecord,
        account_id: str,
        root_id: str,
        spec: Mapping[str, Any],
    ) -> list[Change]:
        """Return the changes that insert a workflow; `spec` holds facts that its record lacks."""
        insert = self._core.records.workflows.make_insert(
            account_id,
            workflow,
            root_id=root_id,
            task_id=workflow.task_id,
            status=workflow.status,
            spec=json.dumps(dict(spec)),
        )
        at = format_rfc3339(workflow.created_at)
        event = AppendEvent(workflow.id, "workflow.queued", {"id": workflow.id}, at)
        return [insert, event]

    async def cancel(self, context: RequestContext, workflow_id: str) -> WorkflowRecord:
        """Cancel a workflow; return a workflow that has ended unchanged."""
        row = await self.get_row(context, workflow_id)
        if row["status"] not in FINAL_STATUSES:
            # A task's workflow has no lease of its own, so the task is cancelled.
            await self._leases.cancel(row["task_id"] or workflow_id)
        return await self.get(context, workflow_id)

    async def run(
        self, workflow_id: str, lease: Lease, budgets: Sequence[Budget] = ()
    ) -> WorkflowRecord:
        """Run a stored workflow from its present state to its end; an ended one stays as it is."""
        fresh = self._fresh.pop(workflow_id, None)
        if fresh is not None:
            workflow, spec = fresh
        else:
            workflow, spec = await finish_before_cancel(self._load(workflow_id, lease))
        if workflow.status in FINAL_STATUSES:
            return workflow
        workflow_budget = Budget(
            from_wire_usd(workflow.options.max_cost_usd), from_wire_usd(workflow.cost_incurred_usd)
        )
        scheduler = Scheduler(
            self._core, self._executor, workflow, spec, lease, (*budgets, workflow_budget)
        )
        if fresh is None:
            workflow_budget.spent, interruptions = await finish_before_cancel(scheduler.recover())
            for budget in budgets:
                budget.spent += interruptions
        watched = WatchedWorkflow(lease.account_id, workflow)
        self._hold_functions(workflow)
        try:
            with self._core.observer.watch_workflow(watched):
                watched.workflow = await scheduler.run()
        finally:
            self._functions.pop(workflow_id, None)
        return watched.workflow

    async def abandon(self, workflow_id: str, lease: Lease) -> WorkflowRecord:
        """End a stored workflow as cancelled, without running it; an ended one stays as it is."""
        self._fresh.pop(workflow_id, None)
        workflow, spec = await self._load(workflow_id, lease)
        if workflow.status in FINAL_STATUSES:
            return workflow
        scheduler = Scheduler(self._core, self._executor, workflow, spec, lease, ())
        await scheduler.recover()
        return await scheduler.abandon()

    async def _load(
        self, workflow_id: str, lease: Lease
    ) -> tuple[WorkflowRecord, Mapping[str, Any]]:
        workflows = self._core.records.workflows
        row = await workflows.get_row(AccountScope(lease.account_id), workflow_id)
        return workflows.read(row), json.loads(str(row["spec"]))
