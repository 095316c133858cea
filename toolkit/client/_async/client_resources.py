"""The resources of a client: one property for each area of `/v1`."""

from functools import cached_property
from typing import TYPE_CHECKING

from toolkit.client._async.http import AsyncHttpClient

if TYPE_CHECKING:
    from toolkit.client._async.resources.account import AsyncAccounts
    from toolkit.client._async.resources.agents import AsyncAgents
    from toolkit.client._async.resources.api_keys import AsyncApiKeys
    from toolkit.client._async.resources.artifacts import AsyncArtifacts
    from toolkit.client._async.resources.billing import AsyncBillings
    from toolkit.client._async.resources.capabilities import AsyncCapabilities
    from toolkit.client._async.resources.catalog import AsyncCatalog
    from toolkit.client._async.resources.compute import AsyncComputes
    from toolkit.client._async.resources.connections import AsyncConnections
    from toolkit.client._async.resources.endpoints import AsyncEndpoints
    from toolkit.client._async.resources.jobs import AsyncJobs
    from toolkit.client._async.resources.plans import AsyncPlans
    from toolkit.client._async.resources.providers import AsyncProviders
    from toolkit.client._async.resources.runs import AsyncRuns
    from toolkit.client._async.resources.storage import AsyncStorages
    from toolkit.client._async.resources.tasks import AsyncTasks
    from toolkit.client._async.resources.templates import AsyncTemplates
    from toolkit.client._async.resources.usage import AsyncUsage
    from toolkit.client._async.resources.workflows import AsyncWorkflows
    from toolkit.client._functions import Functions


class AsyncClientResources:
    """The areas of the service that a client offers, each over its connection.

    A resource is imported when it is first used: most programs need a few of them.
    """

    _http: AsyncHttpClient

    @cached_property
    def account(self) -> "AsyncAccounts":
        """The account, and the key that is used."""
        from toolkit.client._async.resources.account import AsyncAccounts

        return AsyncAccounts(self._http)

    @cached_property
    def api_keys(self) -> "AsyncApiKeys":
        """The keys of the account."""
        from toolkit.client._async.resources.api_keys import AsyncApiKeys

        return AsyncApiKeys(self._http)

    @cached_property
    def providers(self) -> "AsyncProviders":
        """The vendor catalogue."""
        from toolkit.client._async.resources.providers import AsyncProviders

        return AsyncProviders(self._http)

    @cached_property
    def connections(self) -> "AsyncConnections":
        """Pointers to the keys of vendors."""
        from toolkit.client._async.resources.connections import AsyncConnections

        return AsyncConnections(self._http)

    @cached_property
    def capabilities(self) -> "AsyncCapabilities":
        """The capabilities that can be asked for."""
        from toolkit.client._async.resources.capabilities import AsyncCapabilities

        return AsyncCapabilities(self._http)

    @cached_property
    def runs(self) -> "AsyncRuns":
        """Single capabilities, each executed once."""
        from toolkit.client._async.resources.runs import AsyncRuns

        return AsyncRuns(self._http)

    @cached_property
    def jobs(self) -> "AsyncJobs":
        """The jobs, each of which executes a capability."""
        from toolkit.client._async.resources.jobs import AsyncJobs

        return AsyncJobs(self._http)

    @cached_property
    def workflows(self) -> "AsyncWorkflows":
        """Graphs of capabilities."""
        from toolkit.client._async.resources.workflows import AsyncWorkflows

        return AsyncWorkflows(self._http)

    @cached_property
    def tasks(self) -> "AsyncTasks":
        """Objectives, planned, run and reviewed."""
        from toolkit.client._async.resources.tasks import AsyncTasks

        return AsyncTasks(self._http)

    @cached_property
    def plans(self) -> "AsyncPlans":
        """The plans of what a task would do."""
        from toolkit.client._async.resources.plans import AsyncPlans

        return AsyncPlans(self._http)

    @cached_property
    def endpoints(self) -> "AsyncEndpoints":
        """Serverless GPU endpoints."""
        from toolkit.client._async.resources.endpoints import AsyncEndpoints

        return AsyncEndpoints(self._http)

    @cached_property
    def compute(self) -> "AsyncComputes":
        """GPU pods."""
        from toolkit.client._async.resources.compute import AsyncComputes

        return AsyncComputes(self._http)

    @cached_property
    def storage(self) -> "AsyncStorages":
        """Network volumes."""
        from toolkit.client._async.resources.storage import AsyncStorages

        return AsyncStorages(self._http)

    @cached_property
    def templates(self) -> "AsyncTemplates":
        """Containers that endpoints or pods run."""
        from toolkit.client._async.resources.templates import AsyncTemplates

        return AsyncTemplates(self._http)

    @cached_property
    def catalog(self) -> "AsyncCatalog":
        """The GPUs and models that can be had, with list prices."""
        from toolkit.client._async.resources.catalog import AsyncCatalog

        return AsyncCatalog(self._http)

    @cached_property
    def agents(self) -> "AsyncAgents":
        """Objectives to fill in, under a name."""
        from toolkit.client._async.resources.agents import AsyncAgents

        return AsyncAgents(self._http)

    @cached_property
    def usage(self) -> "AsyncUsage":
        """The usage, and its cost."""
        from toolkit.client._async.resources.usage import AsyncUsage

        return AsyncUsage(self._http)

    @cached_property
    def billing(self) -> "AsyncBillings":
        """The bills of each vendor."""
        from toolkit.client._async.resources.billing import AsyncBillings

        return AsyncBillings(self._http)

    @cached_property
    def artifacts(self) -> "AsyncArtifacts":
        """The artifacts that work has made or that were uploaded for it."""
        from toolkit.client._async.resources.artifacts import AsyncArtifacts

        return AsyncArtifacts(self._http)

    @cached_property
    def functions(self) -> "Functions":
        """The functions of this process that its workflows may call."""
        from toolkit.client._functions import Functions

        return Functions(self._http.functions, self._http.url)
