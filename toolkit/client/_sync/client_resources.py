# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""The resources of a client: one property for each area of `/v1`."""

from functools import cached_property
from typing import TYPE_CHECKING

from toolkit.client._sync.http import HttpClient

if TYPE_CHECKING:
    from toolkit.client._functions import Functions
    from toolkit.client._sync.resources.account import Accounts
    from toolkit.client._sync.resources.agents import Agents
    from toolkit.client._sync.resources.api_keys import ApiKeys
    from toolkit.client._sync.resources.artifacts import Artifacts
    from toolkit.client._sync.resources.billing import Billings
    from toolkit.client._sync.resources.capabilities import Capabilities
    from toolkit.client._sync.resources.catalog import Catalog
    from toolkit.client._sync.resources.compute import Computes
    from toolkit.client._sync.resources.connections import Connections
    from toolkit.client._sync.resources.endpoints import Endpoints
    from toolkit.client._sync.resources.jobs import Jobs
    from toolkit.client._sync.resources.plans import Plans
    from toolkit.client._sync.resources.providers import Providers
    from toolkit.client._sync.resources.runs import Runs
    from toolkit.client._sync.resources.storage import Storages
    from toolkit.client._sync.resources.tasks import Tasks
    from toolkit.client._sync.resources.templates import Templates
    from toolkit.client._sync.resources.usage import Usage
    from toolkit.client._sync.resources.workflows import Workflows


class ClientResources:
    """The areas of the service that a client offers, each over its connection.

    A resource is imported when it is first used: most programs need a few of them.
    """

    _http: HttpClient

    @cached_property
    def account(self) -> "Accounts":
        """The account, and the key that is used."""
        from toolkit.client._sync.resources.account import Accounts

        return Accounts(self._http)

    @cached_property
    def api_keys(self) -> "ApiKeys":
        """The keys of the account."""
        from toolkit.client._sync.resources.api_keys import ApiKeys

        return ApiKeys(self._http)

    @cached_property
    def providers(self) -> "Providers":
        """The vendor catalogue."""
        from toolkit.client._sync.resources.providers import Providers

        return Providers(self._http)

    @cached_property
    def connections(self) -> "Connections":
        """Pointers to the keys of vendors."""
        from toolkit.client._sync.resources.connections import Connections

        return Connections(self._http)

    @cached_property
    def capabilities(self) -> "Capabilities":
        """The capabilities that can be asked for."""
        from toolkit.client._sync.resources.capabilities import Capabilities

        return Capabilities(self._http)

    @cached_property
    def runs(self) -> "Runs":
        """Single capabilities, each executed once."""
        from toolkit.client._sync.resources.runs import Runs

        return Runs(self._http)

    @cached_property
    def jobs(self) -> "Jobs":
        """The jobs, each of which executes a capability."""
        from toolkit.client._sync.resources.jobs import Jobs

        return Jobs(self._http)

    @cached_property
    def workflows(self) -> "Workflows":
        """Graphs of capabilities."""
        from toolkit.client._sync.resources.workflows import Workflows

        return Workflows(self._http)

    @cached_property
    def tasks(self) -> "Tasks":
        """Objectives, planned, run and reviewed."""
        from toolkit.client._sync.resources.tasks import Tasks

        return Tasks(self._http)

    @cached_property
    def plans(self) -> "Plans":
        """The plans of what a task would do."""
        from toolkit.client._sync.resources.plans import Plans

        return Plans(self._http)

    @cached_property
    def endpoints(self) -> "Endpoints":
        """Serverless GPU endpoints."""
        from toolkit.client._sync.resources.endpoints import Endpoints

        return Endpoints(self._http)

    @cached_property
    def compute(self) -> "Computes":
        """GPU pods."""
        from toolkit.client._sync.resources.compute import Computes

        return Computes(self._http)

    @cached_property
    def storage(self) -> "Storages":
        """Network volumes."""
        from toolkit.client._sync.resources.storage import Storages

        return Storages(self._http)

    @cached_property
    def templates(self) -> "Templates":
        """Containers that endpoints or pods run."""
        from toolkit.client._sync.resources.templates import Templates

        return Templates(self._http)

    @cached_property
    def catalog(self) -> "Catalog":
        """The GPUs and models that can be had, with list prices."""
        from toolkit.client._sync.resources.catalog import Catalog

        return Catalog(self._http)

    @cached_property
    def agents(self) -> "Agents":
        """Objectives to fill in, under a name."""
        from toolkit.client._sync.resources.agents import Agents

        return Agents(self._http)

    @cached_property
    def usage(self) -> "Usage":
        """The usage, and its cost."""
        from toolkit.client._sync.resources.usage import Usage

        return Usage(self._http)

    @cached_property
    def billing(self) -> "Billings":
        """The bills of each vendor."""
        from toolkit.client._sync.resources.billing import Billings

        return Billings(self._http)

    @cached_property
    def artifacts(self) -> "Artifacts":
        """The artifacts that work has made or that were uploaded for it."""
        from toolkit.client._sync.resources.artifacts import Artifacts

        return Artifacts(self._http)

    @cached_property
    def functions(self) -> "Functions":
        """The functions of this process that its workflows may call."""
        from toolkit.client._functions import Functions

        return Functions(self._http.functions, self._http.url)
