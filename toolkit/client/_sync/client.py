# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""The client itself, with a property for each area of `/v1`."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import httpx

from toolkit.client._areas import Area
from toolkit.client._client_base import ClientBase
from toolkit.client._options import check_arguments
from toolkit.client._replies import Reply
from toolkit.client._sync.http import HttpClient
from toolkit.client._unknown_ids import find_common_resource, find_work_resource
from toolkit.client._wire.messages import LONG_POLL_S, make_page_query
from toolkit.client._wire.timeouts import DEFAULT_TIMEOUT
from toolkit.client._wire.twin_clients import TwinClient
from toolkit.contract.errors import build_not_found
from toolkit.profiles.resolution import resolve_access

if TYPE_CHECKING:
    import pandas as pd  # noqa: F401 - in a string

    from toolkit.client._client_info import ClientInfo
    from toolkit.client._record_view import RouteView  # noqa: F401 - in a string
    from toolkit.client._sync.mapping import RowMapper
    from toolkit.client._sync.resource import WorkResource
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
    from toolkit.client._sync.resources.jobs import Execution, Jobs
    from toolkit.client._sync.resources.plans import Plans
    from toolkit.client._sync.resources.providers import Providers
    from toolkit.client._sync.resources.runs import Runs
    from toolkit.client._sync.resources.storage import Storages
    from toolkit.client._sync.resources.tasks import Task, Tasks
    from toolkit.client._sync.resources.templates import Templates
    from toolkit.client._sync.resources.usage import Usage
    from toolkit.client._sync.resources.workflows import WorkflowRun, Workflows
    from toolkit.contract.events import Event
    from toolkit.contract.health import Health
    from toolkit.display.records.comparison import WorkComparison

MAX_PAGE = 200


class Client(ClientBase[Reply["RouteView"], Reply["pd.DataFrame"]]):
    """A client that speaks `/v1` to whatever serves it.

    `Client.local` makes one that has an engine of its own, in this process.

    Args:
        base_url: the service's address, with or without `/v1`; `TOOLKIT_BASE_URL` by default.
        api_key: `sk_live_…`; `TOOLKIT_API_KEY` by default.
        profile: the name of a profile of `toolkit login`, an address with its key; by default
            `TOOLKIT_PROFILE`, then the profile `default`, where no address is named otherwise.
        transport: the transport of requests; the network by default.
        http_client: an `httpx.Client` to send requests by, such as one with a proxy, instead
            of one of our own; or one of httpx2, or of another package with the same methods. Its
            headers, cookies and hooks are sent along; as with openai-python, closing this client
            closes it, too. It takes the place of `transport` and `cacert`.
        timeout: the longest that each part of a request may take (connecting, sending, reading),
            as in httpx: seconds, an `httpx.Timeout`, or none for no limit. Where it is left out,
            that of `http_client` if it differs from httpx's default, or else a minute. What takes
            longer raises `ServiceTimeoutError`, which is a `TimeoutError`.
        max_retries: send a request again at most so often, whatever failed, and only where its
            work is done once all the same; 0 never does. By default 3 times for what the service
            answers, and for as long as `max_wait_s` says while it is away or limits the rate of
            requests.
        cache: have runs and workflows use the results of equal jobs again, unless one says no.
        max_wait_s: wait so long for a server that is away, such as one that restarts, and as long
            in all as its rate limit asks one request to wait, in seconds; `TOOLKIT_MAX_WAIT_S`, or
            a minute, by default. Work under way goes on.
        cacert: a file of certificates, in PEM, that vouch for the server beside those that the
            machine (or `SSL_CERT_FILE`) names.
        on_close: a function that is called once the client is closed.

    Raises:
        ServiceError: `UNAVAILABLE` when there is no address.
        RequestError: `INVALID_REQUEST` for an address that can be none, and for one beside a
            profile of another; `UNAUTHENTICATED` for a key that can be none; `NOT_FOUND` or
            `UNAUTHENTICATED` for a profile that cannot be used.
        TypeError: for an `http_client` that is none, or beside what it has of its own.
    """

    _http: HttpClient
    _channel_kind = "LoopChannel"

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

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        profile: str | None = None,
        transport: httpx.BaseTransport | None = None,
        http_client: httpx.Client | TwinClient | None = None,
        timeout: float | httpx.Timeout | None = DEFAULT_TIMEOUT,
        max_retries: int | None = None,
        cache: bool | None = None,
        max_wait_s: float | None = None,
        cacert: str | Path | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        access = resolve_access(base_url, api_key, profile)
        self._http = HttpClient(
            access, transport, http_client, timeout, max_retries, cache, max_wait_s, cacert
        )
        self._on_close = on_close

    def _load_row_mapper(self) -> "type[RowMapper]":
        from toolkit.client._sync.mapping import RowMapper

        return RowMapper

    @check_arguments("compare takes two pieces of work; `runs.list().to_frame()` has many")
    def compare(
        self,
        a: "str | Execution[Any] | WorkflowRun | Task",
        b: "str | Execution[Any] | WorkflowRun | Task",
    ) -> "WorkComparison":
        """Compare two runs, two workflows or two tasks: input, route, text, cost and time.

        Of tasks, the workflows that they deliver are compared, or else those that they ran last.

        Args:
            a: an id, or what `runs`, `workflows` or `tasks` gave.
            b: another one of its kind.

        Raises:
            RequestError: `INVALID_REQUEST` for two of different kinds, `NOT_FOUND`.
        """
        from toolkit.display.records.comparison import (
            WorkComparison,
            compare_jobs,
            compare_tasks,
            compare_workflows,
            find_workflow_shown,
            list_jobs_apart,
        )

        first, second = (one if isinstance(one, str) else one.id for one in (a, b))
        kind = find_common_resource(first, second)
        if kind in ("runs", "jobs"):
            area = getattr(self, kind)
            one, other = area.get(first), area.get(second)
            return WorkComparison(kind, first, second, compare_jobs(one.record, other.record))
        tasks, ids = [], [first, second]
        if kind == "tasks":
            tasks = [(self.tasks.get(id)).record for id in ids]
            found = [find_workflow_shown(task) for task in tasks]
            ids = [id for id in found if id is not None]
        workflows, jobs = [(self.workflows.get(id)).record for id in ids], {}
        if len(workflows) == 2:
            apart = list_jobs_apart(*workflows)
            jobs = {id: (self.jobs.get(id)).record for id in apart}
        if kind == "tasks":
            facts = compare_tasks(tasks[0], tasks[1], workflows, jobs)
        else:
            facts = compare_workflows(workflows[0], workflows[1], jobs)
        return WorkComparison(kind, first, second, facts)

    def events(self, resource_id: str, after: int = 0) -> "Iterator[Event]":
        """Yield the events of a run, job, workflow or task as they come, until it is over.

        None is left out and none is repeated; `after` continues where an earlier reading ended.

        Args:
            resource_id: a `run_`, `job_`, `wfl_` or `tsk_` id.
            after: the number of the last event that is known already.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        from toolkit.contract.jobs import FINAL_STATUSES

        name = find_work_resource(resource_id)
        if name is None:
            raise build_not_found("run, job, workflow or task", resource_id)
        area: WorkResource[Any] = getattr(self, name)
        over = False
        while not over:
            found = area.events(resource_id, after, LONG_POLL_S)
            for event in found:
                yield event
                after = event.n
            if not found or found[-1].terminal:
                # A workflow that is retried continues after a terminal event; and work that ended
                # while there were no events may still have its last event.
                status = (area.get(resource_id)).status
                over = status in FINAL_STATUSES and not area.events(resource_id, after)

    def info(self) -> "ClientInfo":
        """Tell where this client is: sandbox or live, folder or server, account, money spent."""
        from datetime import UTC, datetime

        from toolkit.client._client_info import ClientInfo

        health, account = self.health(), self.account.get()
        spent_here, spent_today = None, None
        if "read" in account.key.scopes:
            today = datetime.now(UTC).date()
            lines = self.usage.list(["day"], first=today, last=today)
            spent_here, spent_today = self._sum_own_costs(), lines.cost_usd or 0.0
        folder = self.access.data_dir
        return ClientInfo(
            sandbox=health.sandbox,
            place=self.access.server if folder is None else f"data in {folder}",
            account=account.email,
            spent_here_usd=spent_here,
            spent_today_usd=spent_today,
        )

    def _sum_own_costs(self) -> float:
        """Sum up what was paid for the work that this client has started."""
        spent = 0.0
        for resource, ids in self._http.started.items():
            wanted, cursor = set(ids), None
            while wanted:
                query = make_page_query(MAX_PAGE, cursor)
                page = self.read(f"/{resource}", query)
                for one in page["items"]:
                    if one["id"] in wanted:
                        spent += one.get("cost_incurred_usd") or 0.0
                wanted -= {one["id"] for one in page["items"]}
                cursor = page.get("next_cursor")
                if cursor is None:
                    break
        return spent

    def health(self) -> "Health":
        """Tell whether the service is there, and how busy; not waited for where it is away."""
        from toolkit.contract.health import Health

        return self._http.request_record(Health, "GET", "/health", max_wait_s=0.0)

    def read(
        self,
        path: str,
        params: Mapping[str, str | int] | None = None,
        *,
        max_wait_s: float | None = None,
    ) -> Any:
        """Read a path of the service as plain JSON: no record is made of it.

        Args:
            path: the path below `/v1`, such as `/runs`.
            params: the query.
            max_wait_s: wait so long for a service that is away, where that is less than usual.

        Raises:
            RequestError: `NOT_FOUND` and others.
        """
        return self._http.request_json(path, params=params, max_wait_s=max_wait_s)

    def close(self) -> None:
        """Close the connections; what is under way on the service goes on."""
        self._http.close()
        if self._on_close is not None:
            self._on_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
