"""The engine as a whole: the single object that servers and notebooks hold."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Literal, Self, TypeVar, TypeVarTuple, Unpack, cast

import httpx

from toolkit.contract.base import WrittenRecord
from toolkit.contract.errors import ErrorCode, ServiceError, ToolkitError
from toolkit.contract.health import Health
from toolkit.contract.version import read_installed_version
from toolkit.engine.access.accounts import Accounts
from toolkit.engine.access.api_keys import ApiKeys
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.job_executor import JobExecutor
from toolkit.engine.execution.leases import LeaseManager
from toolkit.engine.infrastructure.catalog import Catalog
from toolkit.engine.infrastructure.compute import Computes
from toolkit.engine.infrastructure.endpoints import Endpoints
from toolkit.engine.infrastructure.reconciler import Reconciler
from toolkit.engine.infrastructure.storage import Storages
from toolkit.engine.infrastructure.templates import Templates
from toolkit.engine.limits.deployment import Deployment
from toolkit.engine.observer import GateState, Observer
from toolkit.engine.orchestration.agent_runs import AgentRuns
from toolkit.engine.orchestration.agents import Agents
from toolkit.engine.orchestration.jobs import Jobs
from toolkit.engine.orchestration.maps import Maps
from toolkit.engine.orchestration.planning import Planning
from toolkit.engine.orchestration.planning_steps import PlanningSteps
from toolkit.engine.orchestration.plans import Plans
from toolkit.engine.orchestration.reviewing.evidence_reader import EvidenceReader
from toolkit.engine.orchestration.reviewing.reviews import Reviews
from toolkit.engine.orchestration.reviewing.task_judge import TaskJudge
from toolkit.engine.orchestration.runs import Runs
from toolkit.engine.orchestration.single_jobs import SingleJobs
from toolkit.engine.orchestration.task_manager import TaskManager
from toolkit.engine.orchestration.tasks import Tasks
from toolkit.engine.orchestration.workflow_reruns import WorkflowReruns
from toolkit.engine.orchestration.workflows import Workflows
from toolkit.engine.request_context import RequestContext
from toolkit.engine.routing.registry import Registry
from toolkit.engine.services.artifacts import Artifacts
from toolkit.engine.services.billing import Billings
from toolkit.engine.services.connections import Connections
from toolkit.engine.services.events import Events
from toolkit.engine.services.idempotency import IdempotencyStore
from toolkit.engine.services.lineage import Lineages
from toolkit.engine.services.usage import Usage
from toolkit.engine.transport.driver import Driver
from toolkit.engine.transport.executors import make_executor
from toolkit.engine.transport.lookup_cache import LookupCache
from toolkit.engine.transport.network import NetworkTransport
from toolkit.functions import FunctionTable
from toolkit.plugins import ProviderError, RunInProcess
from toolkit.secrets import EnvironmentResolver, SecretResolver
from toolkit.settings import Settings
from toolkit.store import ReadOnlyStore, Store

log = logging.getLogger(__name__)
Args = TypeVarTuple("Args")
T = TypeVar("T")


# A liveness probe is answered at once, even while an unreachable store does not answer.
ALIVE_WAIT_S, READY_WAIT_S = 0.5, 2.0
MAX_ASKING_S = 30.0  # longer than the store itself waits for an answer


class Engine:
    """The engine: accepts work, runs it and reports on it; it contains no HTTP server.

    Every method belongs on the event loop it was opened on, and raises only `ToolkitError`s.

    Attributes:
        core: shared parts of the engine, such as the store.
        leases: leases on the work items that this process works on.

    >>> async def main() -> None:
    ...     engine = await Engine.open(Settings(data_dir="somewhere"))
    ...     await engine.close()
    """

    def __init__(self, core: EngineContext) -> None:
        self.core = core
        self.leases = LeaseManager(core)
        self.settings = core.settings
        self.artifacts = Artifacts(core)
        self.lineage = Lineages(core)
        executor = JobExecutor(core, self.artifacts)
        self.accounts = Accounts(core.store, core.settings, core.deployment)
        self.keys = ApiKeys(core.store, core.quotas, core.allowances)
        self.connections = Connections(core)
        self.capabilities = core.registry
        single_jobs = SingleJobs(core, self.leases, executor, self.artifacts)
        self.jobs = Jobs(core, single_jobs)
        self.workflows = Workflows(core, self.leases, executor, self.artifacts)
        self.maps = Maps(core, self.leases, executor, self.artifacts)
        self.reruns = WorkflowReruns(core, self.leases, self.workflows)
        steps = PlanningSteps(core)
        self._prepare_planning = steps.prepare
        self.plans = Plans(core, steps)
        self.planning = Planning(core, steps, self.plans, self.workflows, executor, single_jobs)
        judge = TaskJudge(core, steps, executor)
        evidence = EvidenceReader(core, self.artifacts)
        manager = TaskManager(
            core, steps, self.planning, self.plans, self.workflows, evidence, judge
        )
        self.leases.register_handler("task", manager.run_task)
        self.tasks = Tasks(core, self.leases, self.planning, self.plans, manager)
        self.reviews = Reviews(
            core, self.leases, self.plans, self.workflows, evidence, self.tasks, manager
        )
        self.agents = Agents(core)
        agent_runs = AgentRuns(core, self.agents, self.planning, self.plans, self.tasks)
        self.runs = Runs(core, single_jobs, self.artifacts, agent_runs)
        self.catalog = Catalog(core)
        self.storage = Storages(core)
        self.templates = Templates(core)
        self.endpoints = Endpoints(core, self.catalog)
        self.compute = Computes(core, self.catalog)
        self.reconciler = Reconciler([self.endpoints, self.compute, self.templates, self.storage])
        self.events = Events(core)
        self.texts = core.texts
        self.usage = Usage(core)
        self.billing = Billings(core, self.usage)
        self.idempotency = IdempotencyStore(core)
        self._asking_store: asyncio.Task[bool] | None = None
        self._upkeep: list[asyncio.Task[None]] = []

    @classmethod
    async def open(
        cls,
        settings: Settings | None = None,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        resolver: SecretResolver | None = None,
        registry: Registry | None = None,
        reproducible: bool = False,
        observer: Observer | None = None,
        take_up: bool | None = None,
        read_only: bool = False,
        functions: FunctionTable | None = None,
    ) -> Self:
        """Open the data directory, resume abandoned work, and be ready for new work.

        Work whose secrets this process lacks is left alone, and so is all work in a copy of a data
        directory.

        Args:
            settings: location of the data and access to vendors; `TOOLKIT_…` variables by default.
            transport: HTTP transport to vendors; the network by default.
            resolver: resolver of pointers to secrets; this process's environment by default.
            registry: capabilities and vendors; all built-in and installed vendors by default.
            reproducible: whether to route the same work alike in every process, ignoring latencies.
            observer: observer of workflows, jobs, calls and commits; None by default.
            take_up: True resumes abandoned work even in a copy, which becomes an independent data
                directory; False resumes nothing; None follows the settings.
            read_only: whether to only read the records, of all accounts.
            functions: functions of this process that workflows may call; None allows no functions.

        Raises:
            ServiceError: `UNAVAILABLE` if the data directory cannot be used.
        """
        settings = settings or Settings()
        registry = registry or Registry.load()
        if take_up is None:
            take_up = settings.take_up
        executor = make_executor(settings)
        if read_only:
            store: Store = await ReadOnlyStore.view(
                settings.data_dir,
                settings.artifact_url,
                settings.artifact_endpoint_url,
                settings.get_database_url(),
            )
        else:
            store = await Store.open(
                settings.data_dir,
                durability=settings.durability,
                artifact_url=settings.artifact_url,
                artifact_endpoint_url=settings.artifact_endpoint_url,
                lease_s=settings.lease_s,
                timed=observer.record_commit if observer is not None else None,
                sandbox=settings.sandbox,
                take_up=take_up,
                database=settings.get_database_url(),
                database_wait_s=settings.database_wait_s,
            )
        deployment = Deployment(store.limits)
        if settings.artifact_reads == "presigned":
            try:
                # Tried now, because only the operator can fix storage that cannot sign.
                await store.blobs.make_link("0" * 64, settings.artifact_link_s, {})
            except ToolkitError:
                await store.close()
                raise
        core = EngineContext(
            settings=settings,
            store=store,
            registry=registry,
            driver=Driver(
                (lambda: transport) if transport else NetworkTransport,
                executor,
                settings.reply_limit_bytes,
                # A recording or replay must contain every request.
                lookup_cache=None if reproducible else LookupCache(),
            ),
            resolver=resolver or EnvironmentResolver(None, optional=registry.local_variables),
            deployment=deployment,
            is_reproducible=reproducible,
            observer=observer or Observer(),
            functions=functions,
        )
        engine = cls(core)
        if read_only:
            return engine
        takes_up = not engine.is_held and take_up is not False
        try:
            await deployment.open()
            warning = await store.claim_artifact_place()
            if warning is not None:
                log.warning(warning)
            await engine.leases.open(take_up=takes_up)
        except BaseException:
            await engine.close(0)
            raise
        upkeep = [engine.idempotency.sweep_expired()]
        if takes_up and not reproducible:  # a replay makes no request that was not recorded
            upkeep.append(engine.reconciler.run_forever())
        engine._upkeep = [asyncio.create_task(work, name="upkeep") for work in upkeep]
        return engine

    @property
    def is_read_only(self) -> bool:
        """True if the directory was opened only for reading."""
        return isinstance(self.core.store, ReadOnlyStore)

    @property
    def is_held(self) -> bool:
        """True if the data directory is a copy of another, whose abandoned work is not resumed."""
        return self.core.store.is_copy

    async def take_up(self, root_id: str) -> None:
        """Resume one run, workflow or task if it was abandoned; do nothing in a copy."""
        if not self.is_held:
            await self.leases.take_up(root_id)

    @property
    def is_draining(self) -> bool:
        """True once the engine refuses new work."""
        return self.core.is_draining

    def drain(self) -> None:
        """Refuse new work from now on."""
        self.core.is_draining = True

    async def close(self, grace_s: float = 10.0) -> None:
        """Refuse new work, wait up to `grace_s` seconds for calls in flight, then close.

        Work that has not ended by then can be resumed later.
        """
        self.drain()
        for task in self._upkeep:
            task.cancel()
            await asyncio.wait([task])
        await self.leases.close(grace_s)
        self.artifacts.close()
        await self.core.driver.aclose()
        await self.core.deployment.close()
        await self.core.store.close()

    async def get_health(self) -> Health:
        """Report the engine's status, its version and the number of running jobs.

        The status is also `degraded` if engines on the same store keep artifacts in separate
        places.
        """
        status = await self.find_readiness(ALIVE_WAIT_S)
        if status == "ok" and self.core.store.limits.has_engines_apart:
            status = "degraded"
        return Health(
            status=status,
            version=read_installed_version(),
            sandbox=self.settings.sandbox,
            jobs_running=self.leases.running_count,
        )

    async def find_readiness(
        self, wait_s: float = READY_WAIT_S
    ) -> Literal["ok", "draining", "degraded"]:
        """Report whether the engine can accept and store new work.

        It is `draining` if it refuses new work, and `degraded` if the store does not answer in
        time.

        Args:
            wait_s: maximum time for the store to answer, in seconds.
        """
        if self.is_draining:
            return "draining"
        # A pending check is reused, because a cancelled read costs a connection.
        if self._asking_store is None or self._asking_store.done():
            self._asking_store = asyncio.create_task(self._can_use_store(), name="readiness")
        asking = self._asking_store
        await asyncio.wait([asking], timeout=wait_s)
        return "ok" if asking.done() and asking.result() else "degraded"

    async def _can_use_store(self) -> bool:
        try:
            async with asyncio.timeout(MAX_ASKING_S):
                await self.core.store.get_row("configuration", "all")
        except (ServiceError, TimeoutError):
            return False
        return True

    def list_connection_states(self) -> list[GateState]:
        """List the state of every connection that this process has used."""
        return self.core.gates.list_states()

    def prepare_worker(self, *, plans: bool) -> None:
        """Start a worker process for likely first requests, without waiting for it.

        It loads the steps of capabilities that need no vendor, such as cards.

        Args:
            plans: whether to load the steps of planning too, which takes longer.
        """
        if plans:
            self._prepare_planning()
        local = [
            capability
            for capability in self.core.registry.by_name.values()
            if capability.operation is None
        ]
        self.core.driver.prepare_steps(
            [step for capability in local for step in capability.cpu_steps]
        )

    async def run_in_worker(
        self, account_id: str, function: Callable[[Unpack[Args]], T], *args: *Args
    ) -> T:
        """Call a module-level function in a worker process; waiting accounts take turns.

        Raises:
            ServiceError: `UNAVAILABLE` if it took too long, or the process died.
        """
        try:
            value = await self.core.driver.run_in_process(RunInProcess(function, args), account_id)
        except ProviderError as fault:
            raise ServiceError(ErrorCode.UNAVAILABLE, fault.message) from None
        return cast("T", value)

    async def wait(
        self, context: RequestContext, resource_id: str, seconds: float
    ) -> WrittenRecord | None:
        """Wait until a run, workflow or task has ended, or until the timeout.

        Returns:
            the ended run if this process accepted it; None for all other work, which must be read.
        """
        deadline = time.monotonic() + seconds
        run = await self.runs.wait_for_end(context, resource_id, seconds)
        if run is None:
            await self.events.wait(context, resource_id, deadline - time.monotonic())
        return run
