"""The resources of a client: one property for each area of `/v1`."""

from typing import TYPE_CHECKING

from toolkit.client._areas import Area
from toolkit.client._async.http import AsyncHttpClient
from toolkit.client._client_base import ClientBase
from toolkit.client._replies import AsyncReply

if TYPE_CHECKING:
    import pandas as pd  # noqa: F401 - in a string

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
    from toolkit.client._record_view import RouteView  # noqa: F401 - in a string


class AsyncClientResources(ClientBase[AsyncReply["RouteView"], AsyncReply["pd.DataFrame"]]):
    """The areas of the service that a client offers, each over its connection."""

    _http: AsyncHttpClient

    account: "Area[AsyncAccounts]" = Area("AsyncAccounts", "The account, and the key that is used.")
    api_keys: "Area[AsyncApiKeys]" = Area("AsyncApiKeys", "The keys of the account.")
    providers: "Area[AsyncProviders]" = Area("AsyncProviders", "The vendor catalogue.")
    connections: "Area[AsyncConnections]" = Area(
        "AsyncConnections", "Pointers to the keys of vendors."
    )
    capabilities: "Area[AsyncCapabilities]" = Area(
        "AsyncCapabilities", "The capabilities that can be asked for."
    )
    runs: "Area[AsyncRuns]" = Area("AsyncRuns", "Single capabilities, each executed once.")
    jobs: "Area[AsyncJobs]" = Area("AsyncJobs", "The jobs, each of which executes a capability.")
    workflows: "Area[AsyncWorkflows]" = Area("AsyncWorkflows", "Graphs of capabilities.")
    tasks: "Area[AsyncTasks]" = Area("AsyncTasks", "Objectives, planned, run and reviewed.")
    plans: "Area[AsyncPlans]" = Area("AsyncPlans", "The plans of what a task would do.")
    endpoints: "Area[AsyncEndpoints]" = Area("AsyncEndpoints", "Serverless GPU endpoints.")
    compute: "Area[AsyncComputes]" = Area("AsyncComputes", "GPU pods.")
    storage: "Area[AsyncStorages]" = Area("AsyncStorages", "Network volumes.")
    templates: "Area[AsyncTemplates]" = Area(
        "AsyncTemplates", "Containers that endpoints or pods run."
    )
    catalog: "Area[AsyncCatalog]" = Area(
        "AsyncCatalog", "The GPUs and models that can be had, with list prices."
    )
    agents: "Area[AsyncAgents]" = Area("AsyncAgents", "Objectives to fill in, under a name.")
    usage: "Area[AsyncUsage]" = Area("AsyncUsage", "The usage, and its cost.")
    billing: "Area[AsyncBillings]" = Area("AsyncBillings", "The bills of each vendor.")
    artifacts: "Area[AsyncArtifacts]" = Area(
        "AsyncArtifacts", "The artifacts that work has made or that were uploaded for it."
    )
