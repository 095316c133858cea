"""The engine's context: its shared parts, made once when it opens and passed to all others."""

from dataclasses import dataclass, field
from functools import cached_property

from toolkit.contract.connections import Connection
from toolkit.contract.workflows import FUNCTION_CAPABILITY
from toolkit.engine.access.grants import Grants
from toolkit.engine.access.quotas import Quotas
from toolkit.engine.access.shares import Shares, find_borrower
from toolkit.engine.annotations import Annotations
from toolkit.engine.concurrency.fair_semaphore import FairSemaphore
from toolkit.engine.limits.deployment import Deployment
from toolkit.engine.money.allowance import Allowances
from toolkit.engine.observer import Observer
from toolkit.engine.provider_context import ProviderContext
from toolkit.engine.provider_directory import ProviderDirectory
from toolkit.engine.records import Records
from toolkit.engine.routing.connection_gate import GateRegistry
from toolkit.engine.text_streams import TextStreams
from toolkit.engine.transport.driver import MAX_FUNCTION_THREADS
from toolkit.functions import FunctionTable
from toolkit.plugins import Capability
from toolkit.store import ConfigurationCache, Store


@dataclass(kw_only=True)
class EngineContext(ProviderContext):
    """The engine's shared parts.

    Attributes:
        records: repositories of the stored records.
        directory: finder of the vendors, models and connections that an account may use.
        is_reproducible: whether the same work must be routed alike in every process: latencies and
            error rates are then ignored.
        concurrency: limit of concurrent jobs, in total and by account.
        in_flight: ids of resources that this process is creating or deleting at a GPU cloud.
        deployment: engines that share the store.
        observer: observer of workflows, jobs and calls.
        texts: streams of the texts that vendors are writing.
        functions: functions of this process that workflows may call; None allows no functions.
        function_limits: limit of concurrent function calls; separate from jobs' limit, because
            functions may wait for jobs.
    """

    store: Store
    deployment: Deployment
    is_draining: bool = False
    is_reproducible: bool = False
    observer: Observer = field(default_factory=Observer)
    in_flight: set[str] = field(default_factory=set)
    texts: TextStreams = field(default_factory=TextStreams)
    functions: FunctionTable | None = None
    function_limits: FairSemaphore = field(
        default_factory=lambda: FairSemaphore(MAX_FUNCTION_THREADS)
    )

    def __post_init__(self) -> None:
        settings, store = self.settings, self.store
        self.records = Records(store)
        self.shares = Shares(store)
        self.grants = Grants(store, [vendor.variable for vendor in self.registry.vendors.values()])
        self.gates = GateRegistry(settings, store, self.deployment)
        self.allowances = Allowances(store)
        self.quotas = Quotas(store, settings)
        self.concurrency = FairSemaphore(
            settings.max_concurrent_jobs, per_group=settings.max_concurrent_jobs_per_account
        )
        self.directory = ProviderDirectory(
            settings,
            self.registry,
            store,
            self.records,
            self.shares,
            self.gates,
            has_statistics=not self.is_reproducible,
        )

    def require_for_node(self, name: str) -> Capability:
        """Find the capability of a workflow's node; functions count as capabilities only here.

        Raises:
            RequestError: see `Registry.require`.
        """
        return self._call_function if name == FUNCTION_CAPABILITY else self.registry.require(name)

    @cached_property
    def _call_function(self) -> Capability:
        from toolkit.functions.node_capability import make_function_capability

        return make_function_capability(self.functions)

    @cached_property
    def annotations(self) -> Annotations:
        """The tags and notes of work."""
        return Annotations(self.store)

    async def resolve_secret(self, connection: Connection) -> str:
        """Resolve the secret of a connection, if its account may use it.

        Raises:
            WorkError: `SECRET_UNRESOLVED`; `CREDENTIALS_MISSING` if the connection was deleted, or
                is no longer shared with the account that works through it.
        """
        variables = await self._granted.find((connection.id, find_borrower(connection)))
        return await self.resolver.resolve(
            connection.connection_type, connection.secret_ref, variables
        )

    @cached_property
    def _granted(self) -> ConfigurationCache[tuple[str, str | None], frozenset[str]]:
        return ConfigurationCache(self.store, self._load_granted)

    async def _load_granted(self, key: tuple[str, str | None]) -> frozenset[str]:
        """Load the variables that a connection may point to.

        Args:
            key: the connection's id, and the account that it is shared with or None.

        Raises:
            WorkError: `CREDENTIALS_MISSING` if the account may no longer use the connection.
        """
        connection_id, borrower = key
        await self.shares.check_usable(connection_id, borrower)
        return await self.grants.find_variables(connection_id)

    @cached_property
    def services(self) -> dict[str, str]:
        """Addresses for capabilities' own requests, by name: `encyclopedia`, `contact`, `zim`.

        The contact and the path of the ZIM file are left out if they are not set.
        """
        services = {"encyclopedia": self.settings.encyclopedia_url}
        if self.settings.contact:
            services["contact"] = self.settings.contact
        if self.settings.zim_path is not None:
            services["zim"] = str(self.settings.zim_path)
        return services
