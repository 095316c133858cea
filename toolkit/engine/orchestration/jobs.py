"""The service of `/v1/jobs`: reads all jobs, and creates jobs on a compute."""

from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.ids import Prefix, is_id
from toolkit.contract.jobs import FINAL_STATUSES, Job, JobCreate, ProviderLists
from toolkit.engine.context import EngineContext
from toolkit.engine.job_record import JobRecord
from toolkit.engine.orchestration.single_jobs import SingleJobs
from toolkit.engine.request_context import RequestContext
from toolkit.engine.routing.registry import validate_input
from toolkit.engine.services.record_reader import RecordReader
from toolkit.plugins import Capability
from toolkit.store import AccountScope


class Jobs(RecordReader[Job]):
    """The operations of `/v1/jobs`."""

    def __init__(self, core: EngineContext, single_jobs: SingleJobs) -> None:
        super().__init__(core, core.records.jobs)
        self._single_jobs = single_jobs

    async def create(self, context: RequestContext, request: JobCreate) -> Job:
        """Accept a job on a compute; it is durable and in progress when this returns.

        Raises:
            RequestError: `INVALID_REQUEST` for a type that no compute runs or for two different
                computes, `NOT_FOUND` for an unknown compute, `PROVIDER_NOT_ALLOWED` for a provider
                other than the compute's, and every error of admission.
        """
        capability = self._find_capability(request.type)
        value = validate_input(capability, request.input, frozenset(), "input")
        if request.options.compute_id not in (None, request.compute_id):
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                "The request names two computes.",
                details=[Detail("options.compute_id", "differs from compute_id")],
            )
        cloud = await self._find_provider(context.account_id, request.compute_id)
        provider, pin = request.options.provider, request.options.pin
        if isinstance(provider, ProviderLists):
            provider = ProviderLists(only=provider.only or (cloud,), ignore=provider.ignore)
        if pin not in (None, cloud) and not is_id(pin or "", Prefix.CONNECTION):
            raise RequestError(
                ErrorCode.PROVIDER_NOT_ALLOWED,
                f"The compute is at `{cloud}`: only that provider can use it.",
                details=[Detail("options.provider", f"must be {cloud}")],
            )
        update = {"compute_id": request.compute_id, "provider": provider or cloud}
        return await self._single_jobs.accept(
            context,
            capability,
            value,
            request.input,
            request.options.model_copy(update=update),
            show=JobRecord.to_wire,
        )

    async def cancel(self, context: RequestContext, job_id: str) -> Job:
        """Cancel a single job; return a job that has ended unchanged.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` for a workflow's node or a task's call of a model,
                because these end with the workflow or task.
        """
        row = await self._records.get_row(context.scope, job_id)
        job = self._records.read(row)
        if job.status in FINAL_STATUSES:
            return job
        if job.workflow_id is not None:
            raise RequestError(
                ErrorCode.CONFLICT,
                f"The job is a node of `{job.workflow_id}`: cancel the workflow.",
            )
        if row["root_id"] not in (job.run_id, job.id):
            raise RequestError(
                ErrorCode.CONFLICT, f"The job is part of `{row['root_id']}`: cancel that."
            )
        await self._single_jobs.cancel(job.run_id or job.id)
        return await self.get(context, job_id)

    def _find_capability(self, job_type: str) -> Capability:
        by_type = {
            capability.type_of_job: capability
            for capability in self._core.registry.list_newest()
            if self._runs_in_pods(capability)
        }
        if job_type not in by_type:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                "No compute runs jobs of this type.",
                details=[Detail("type", f"must be one of {', '.join(sorted(by_type))}")],
            )
        return by_type[job_type]

    def _runs_in_pods(self, capability: Capability) -> bool:
        kind = capability.operation.kind if capability.operation else ""
        return any(kind in vendor.in_pod for vendor in self._core.registry.find_vendors(capability))

    async def _find_provider(self, account_id: str, compute_id: str) -> str:
        row = await self._core.records.compute.get_row(AccountScope(account_id), compute_id)
        connection = await self._core.store.get_row("connections", str(row["connection_id"]))
        return "" if connection is None else str(connection["provider"])
