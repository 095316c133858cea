"""The service of `/v1/runs` and `/v1/route`: one capability or agent, run alone."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolkit.contract.annotations import WorkAnnotate
from toolkit.contract.base import WrittenRecord
from toolkit.contract.errors import ErrorCode, RequestError, build_not_found
from toolkit.contract.ids import Prefix, is_id, new_id
from toolkit.contract.jobs import FINAL_STATUSES
from toolkit.contract.operations.queries import MAX_TOTAL
from toolkit.contract.operations.work_queries import NO_FILTER, WorkFilter
from toolkit.contract.runs import Route, Run, RunCreate
from toolkit.engine.annotations import (
    annotate_record,
    build_annotation,
    list_given_tags,
)
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.admission import Admission
from toolkit.engine.job_record import JobRecord, read_wire_run
from toolkit.engine.orchestration.agent_runs import AgentRuns, to_run
from toolkit.engine.orchestration.single_jobs import Shown, SingleJobs
from toolkit.engine.request_context import RequestContext
from toolkit.engine.routing.registry import validate_input
from toolkit.engine.routing.router import check_servable, route
from toolkit.engine.services.artifacts import Artifacts
from toolkit.plugins import Capability
from toolkit.store import RUN_LIST


@dataclass(eq=False, slots=True)
class Runs:
    """The operations of `/v1/runs` and `/v1/route`."""

    _core: EngineContext
    _single_jobs: SingleJobs
    _artifacts: Artifacts
    _agents: AgentRuns

    async def create(self, context: RequestContext, request: RunCreate) -> Run:
        """Accept a run; it is durable and in progress when this returns.

        Raises:
            RequestError: every error of admission, and `TARGET_UNSUPPORTED`.
        """
        if request.target == "agent":
            return await self._agents.create(context, request)

        def show(job: JobRecord) -> Run:
            run = job.to_run()
            if request.tags or request.note:
                run.tags, run.note = list_given_tags(request.tags), request.note or None
            return run

        return await self._accept(context, request, new_id(Prefix.RUN), show)

    async def accept(self, context: RequestContext, request: RunCreate) -> str:
        """Accept a run like `create`, and return only its id: its caller waits for its end.

        Raises:
            RequestError: every error of `create`.
        """
        if request.target == "agent" or context.claim is not None:  # the claim stores the record
            return (await self.create(context, request)).id
        run_id = new_id(Prefix.RUN)
        await self._accept(context, request, run_id, lambda _job: None)
        return run_id

    async def _accept(
        self,
        context: RequestContext,
        request: RunCreate,
        run_id: str,
        show: Callable[[JobRecord], Shown],
    ) -> Shown:
        capability, value = self._resolve_request(request)
        return await self._single_jobs.accept(
            context,
            capability,
            value,
            request.input,
            request.options,
            show=show,
            run_id=run_id,
            further_changes=build_annotation(
                context.account_id, run_id, request.tags, request.note
            ),
        )

    async def get(self, context: RequestContext, run_id: str) -> Run:
        """Return a run.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        for row in await self._core.records.jobs.find_rows(context.scope, run_id=run_id):
            return await self._core.annotations.show(read_wire_run(row), run_id)
        task = await self._agents.find(context, run_id)
        if task is None:
            raise build_not_found("run", run_id)
        return to_run(await self._core.annotations.show(task, task.id))

    async def wait_for_end(
        self, context: RequestContext, run_id: str, seconds: float
    ) -> WrittenRecord | None:
        """Wait until a run that this process accepted has ended, or until the timeout.

        Returns:
            the ended run; None for a job that is no run, and if its state must be read first.
        """
        job = await self._single_jobs.wait_for_end(context, run_id, seconds)
        if job is None or job.run_id is None:
            return None
        return job.write_run(*await self._core.annotations.find(run_id))

    async def list(
        self,
        context: RequestContext,
        limit: int,
        before: str | None,
        work_filter: WorkFilter = NO_FILTER,
    ) -> list[Run]:
        """Return a page of runs that match a filter, newest first."""
        rows = await self._core.store.list_work(RUN_LIST, context.scope, work_filter, limit, before)
        runs = [annotate_record(read_wire_run(row), row) for row in rows]
        runs += await self._agents.list(context, limit, before, work_filter)
        return sorted(runs, key=lambda run: run.id, reverse=True)[:limit]

    async def count(
        self, context: RequestContext, work_filter: WorkFilter = NO_FILTER
    ) -> int | None:
        """Count the runs that match a filter; None if that takes too long."""
        run_count = await self._core.store.count_work(RUN_LIST, context.scope, work_filter)
        agent_count = None if run_count is None else await self._agents.count(context, work_filter)
        if run_count is None or agent_count is None or run_count + agent_count > MAX_TOTAL:
            return None
        return run_count + agent_count

    async def annotate(self, context: RequestContext, run_id: str, request: WorkAnnotate) -> Run:
        """Change the tags or the note of a run.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        run = await self.get(context, run_id)
        # An agent's run and its task are one piece of work.
        await self._core.annotations.change(context.account_id, run.task_id or run_id, request)
        return await self.get(context, run_id)

    async def cancel(self, context: RequestContext, run_id: str) -> Run:
        """Cancel a run; return a run that has ended unchanged."""
        run = await self.get(context, run_id)
        if run.task_id is not None:
            return await self._agents.cancel(context, run.task_id)
        if run.status not in FINAL_STATUSES:
            await self._single_jobs.cancel(run_id)
        return await self.get(context, run_id)

    async def route(self, context: RequestContext, request: RunCreate) -> Route:
        """Show the choice that `create` would make for the same request, and why; spend nothing.

        Raises:
            RequestError: every error of `create` except a missing connection, which is shown.
        """
        capability, value = self._resolve_request(request)
        operation = capability.estimate(value)
        providers = await self._core.directory.find_providers(
            context.scope, capability, request.options
        )
        pin = request.options.pin
        if request.options.provider is not None and (
            providers.connections or is_id(pin or "", Prefix.CONNECTION)
        ):
            check_servable(capability, request.options, providers)
        await Admission(self._core, self._artifacts, context.scope).check_references(
            capability, request.input, request.options
        )
        routing = route(capability, request.options, operation, providers, with_others=True).wire
        first = next((c for c in routing.candidates if not c.excluded), None)
        return Route(
            capability=capability.name,
            policy=routing.policy,
            candidates=routing.candidates,
            provider=first.provider if first else None,
            model=first.model if first else None,
            connection_id=first.connection_id if first else None,
            estimated_cost_usd=first.estimated_cost_usd if first else None,
            reservation_usd=first.reservation_usd if first else None,
        )

    def _resolve_request(self, request: RunCreate) -> tuple[Capability, Any]:
        """Return the requested capability, and the validated input.

        Raises:
            RequestError: `TARGET_UNSUPPORTED`, `NOT_FOUND`, `INVALID_REQUEST`.
        """
        if request.target != "capability":
            raise RequestError(ErrorCode.TARGET_UNSUPPORTED)
        capability = self._core.registry.require(request.name, request.version)
        return capability, validate_input(capability, request.input, frozenset(), "input")
