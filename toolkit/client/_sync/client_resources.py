# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""The resources of a client: one property for each area of `/v1`."""

from typing import TYPE_CHECKING

from toolkit.client._areas import Area
from toolkit.client._client_base import ClientBase
from toolkit.client._replies import Reply
from toolkit.client._sync.http import HttpClient

if TYPE_CHECKING:
    import pandas as pd  # noqa: F401 - in a string

    from toolkit.client._record_view import RouteView  # noqa: F401 - in a string
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


class ClientResources(ClientBase[Reply["RouteView"], Reply["pd.DataFrame"]]):
    """The areas of the service that a client offers, each over its connection."""

    _http: HttpClient

    account: "Area[Accounts]" = Area("Accounts", "The account, and the key that is used.")
    api_keys: "Area[ApiKeys]" = Area("ApiKeys", "The keys of the account.")
    providers: "Area[Providers]" = Area("Providers", "The vendor catalogue.")
    connections: "Area[Connections]" = Area("Connections", "Pointers to the keys of vendors.")
    capabilities: "Area[Capabilities]" = Area(
        "Capabilities", "The capabilities that can be asked for."
    )
    runs: "Area[Runs]" = Area("Runs", "Single capabilities, each executed once.")
    jobs: "Area[Jobs]" = Area("Jobs", "The jobs, each of which executes a capability.")
    workflows: "Area[Workflows]" = Area("Workflows", "Graphs of capabilities.")
    tasks: "Area[Tasks]" = Area("Tasks", "Objectives, planned, run and reviewed.")
    plans: "Area[Plans]" = Area("Plans", "The plans of what a task would do.")
    endpoints: "Area[Endpoints]" = Area("Endpoints", "Serverless GPU endpoints.")
    compute: "Area[Computes]" = Area("Computes", "GPU pods.")
    storage: "Area[Storages]" = Area("Storages", "Network volumes.")
    templates: "Area[Templates]" = Area("Templates", "Containers that endpoints or pods run.")
    catalog: "Area[Catalog]" = Area(
        "Catalog", "The GPUs and models that can be had, with list prices."
    )
    agents: "Area[Agents]" = Area("Agents", "Objectives to fill in, under a name.")
    usage: "Area[Usage]" = Area("Usage", "The usage, and its cost.")
    billing: "Area[Billings]" = Area("Billings", "The bills of each vendor.")
    artifacts: "Area[Artifacts]" = Area(
        "Artifacts", "The artifacts that work has made or that were uploaded for it."
    )
