"""The client itself."""

from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from toolkit.client import _wire
from toolkit.client._async.area import AsyncFollowed
from toolkit.client._async.areas import (
    account,
    agents,
    artifacts,
    billing,
    capabilities,
    catalog,
    compute,
    connections,
    endpoints,
    jobs,
    plans,
    providers,
    runs,
    storage,
    tasks,
    templates,
    usage,
    workflows,
)
from toolkit.client._async.http import AsyncHttp
from toolkit.client._shown import RouteView
from toolkit.contract.errors import not_found
from toolkit.contract.events import Event
from toolkit.contract.health import Health
from toolkit.contract.ids import Prefix
from toolkit.contract.jobs import FINAL_STATUSES
from toolkit.contract.runs import Route
from toolkit.profiles.resolution import Access, resolve_access


class AsyncClient:
    """Speaks `/v1` to whatever serves it.

    Args:
        base_url: the service's address, with or without `/v1`; `TOOLKIT_BASE_URL` by default.
        api_key: `sk_live_…`; `TOOLKIT_API_KEY` by default.
        profile: the name of what `toolkit login` has kept, an address with its key; by default
            `TOOLKIT_PROFILE`, then the profile `default`, where no address is named otherwise.
        transport: what requests go over; the network by default.
        timeout_s: the longest one request may take, in seconds.
        cache: have runs and workflows use the results of equal jobs again, unless one says no.
        max_wait_s: wait so long for a server that is away, such as one that is started again, in
            seconds; `TOOLKIT_MAX_WAIT_S`, or a minute, by default. What was asked for goes on.
        cacert: a file of certificates, in PEM, that vouch for the server beside those that the
            machine (or `SSL_CERT_FILE`) names.
        on_close: called once the client is closed.

    Raises:
        ServiceError: `UNAVAILABLE` when there is no address.
        RequestError: `INVALID_REQUEST` for an address that can be none, and for one beside a
            profile of another; `UNAUTHENTICATED` for a key that can be none; `NOT_FOUND` or
            `UNAUTHENTICATED` for a profile that cannot be used.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        profile: str | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        timeout_s: float = 60.0,
        cache: bool | None = None,
        max_wait_s: float | None = None,
        cacert: str | Path | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        access = resolve_access(base_url, api_key, profile)
        self._http = AsyncHttp(access, transport, timeout_s, cache, max_wait_s, cacert)
        self._on_close = on_close
        self.account = account.AsyncAccounts(self._http)
        self.providers = providers.AsyncProviders(self._http)
        self.connections = connections.AsyncConnections(self._http)
        self.capabilities = capabilities.AsyncCapabilities(self._http)
        self.runs = runs.AsyncRuns(self._http)
        self.jobs = jobs.AsyncJobs(self._http)
        self.workflows = workflows.AsyncWorkflows(self._http)
        self.tasks = tasks.AsyncTasks(self._http)
        self.plans = plans.AsyncPlans(self._http)
        self.endpoints = endpoints.AsyncEndpoints(self._http)
        self.compute = compute.AsyncComputes(self._http)
        self.storage = storage.AsyncStorages(self._http)
        self.templates = templates.AsyncTemplates(self._http)
        self.catalog = catalog.AsyncCatalog(self._http)
        self.agents = agents.AsyncAgents(self._http)
        self.usage = usage.AsyncUsage(self._http)
        self.billing = billing.AsyncBillings(self._http)
        self.artifacts = artifacts.AsyncArtifacts(self._http)

    async def route(
        self,
        name: str,
        input: Mapping[str, object],  # noqa: A002 - the contract's word
        *,
        version: str | None = None,
        optimize_for: str | None = None,
        provider: str | None = None,
        endpoint_id: str | None = None,
        compute_id: str | None = None,
        max_cost_usd: float | None = None,
        deadline_s: float | None = None,
        cache: bool | None = None,
        fallback_on_rejection: bool | None = None,
    ) -> RouteView:
        """The choice that a run would get, and why each vendor and model was kept or dropped.

        Takes what `runs.create` takes, and spends nothing.

        Raises:
            RequestError: `INVALID_REQUEST`, `NOT_FOUND`, `PROVIDER_NOT_ALLOWED` and others.
        """
        options = _wire.without_none(
            optimize_for=optimize_for,
            provider=provider,
            endpoint_id=endpoint_id,
            compute_id=compute_id,
            max_cost_usd=max_cost_usd,
            deadline_s=deadline_s,
            cache=cache,
            fallback_on_rejection=fallback_on_rejection,
        )
        body = _wire.run_body(name, input, version, options)
        return RouteView(await self._http.data(Route, "POST", "/route", json=body))

    async def events(self, resource_id: str, after: int = 0) -> AsyncIterator[Event]:
        """The events of a run, job, workflow or task as they come, until it is over.

        None is left out and none comes twice; `after` goes on where an earlier reading ended.

        Args:
            resource_id: a `run_`, `job_`, `wfl_` or `tsk_` id.
            after: the number of the last event that is known already.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        followed: dict[str, AsyncFollowed[Any]] = {
            Prefix.RUN: self.runs,
            Prefix.JOB: self.jobs,
            Prefix.WORKFLOW: self.workflows,
            Prefix.TASK: self.tasks,
        }
        area = followed.get(resource_id.partition("_")[0])
        if area is None:
            raise not_found("run, job, workflow or task", resource_id)
        over = False
        while not over:
            found = await area.events(resource_id, after, _wire.LONG_POLL_S)
            for event in found:
                yield event
                after = event.n
            if not found or found[-1].terminal:
                # A workflow that is retried goes on after an end; and what ended while nothing
                # was told may still have its last event to tell.
                status = (await area.get(resource_id)).status
                over = status in FINAL_STATUSES and not await area.events(resource_id, after)

    async def health(self) -> Health:
        """Whether the service is there, and how busy; not waited for where it is away."""
        return await self._http.data(Health, "GET", "/health", max_wait_s=0.0)

    @property
    def access(self) -> Access:
        """The address that is spoken to, and where it and the key came from."""
        return self._http.access

    async def aclose(self) -> None:
        """Let go of the service; what is under way there goes on."""
        await self._http.aclose()
        if self._on_close is not None:
            self._on_close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._http.url}>"
