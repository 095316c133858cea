# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""The client itself."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from toolkit.client import _wire
from toolkit.client._shown import RouteView
from toolkit.client._sync.area import Followed
from toolkit.client._sync.areas import (
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
from toolkit.client._sync.http import Http
from toolkit.contract.errors import not_found
from toolkit.contract.events import Event
from toolkit.contract.health import Health
from toolkit.contract.ids import Prefix
from toolkit.contract.jobs import FINAL_STATUSES
from toolkit.contract.runs import Route
from toolkit.profiles.resolution import Access, resolve_access


class Client:
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
        transport: httpx.BaseTransport | None = None,
        timeout_s: float = 60.0,
        cache: bool | None = None,
        max_wait_s: float | None = None,
        cacert: str | Path | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        access = resolve_access(base_url, api_key, profile)
        self._http = Http(access, transport, timeout_s, cache, max_wait_s, cacert)
        self._on_close = on_close
        self.account = account.Accounts(self._http)
        self.providers = providers.Providers(self._http)
        self.connections = connections.Connections(self._http)
        self.capabilities = capabilities.Capabilities(self._http)
        self.runs = runs.Runs(self._http)
        self.jobs = jobs.Jobs(self._http)
        self.workflows = workflows.Workflows(self._http)
        self.tasks = tasks.Tasks(self._http)
        self.plans = plans.Plans(self._http)
        self.endpoints = endpoints.Endpoints(self._http)
        self.compute = compute.Computes(self._http)
        self.storage = storage.Storages(self._http)
        self.templates = templates.Templates(self._http)
        self.catalog = catalog.Catalog(self._http)
        self.agents = agents.Agents(self._http)
        self.usage = usage.Usage(self._http)
        self.billing = billing.Billings(self._http)
        self.artifacts = artifacts.Artifacts(self._http)

    def route(
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
        return RouteView(self._http.data(Route, "POST", "/route", json=body))

    def events(self, resource_id: str, after: int = 0) -> Iterator[Event]:
        """The events of a run, job, workflow or task as they come, until it is over.

        None is left out and none comes twice; `after` goes on where an earlier reading ended.

        Args:
            resource_id: a `run_`, `job_`, `wfl_` or `tsk_` id.
            after: the number of the last event that is known already.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        followed: dict[str, Followed[Any]] = {
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
            found = area.events(resource_id, after, _wire.LONG_POLL_S)
            for event in found:
                yield event
                after = event.n
            if not found or found[-1].terminal:
                # A workflow that is retried goes on after an end; and what ended while nothing
                # was told may still have its last event to tell.
                status = (area.get(resource_id)).status
                over = status in FINAL_STATUSES and not area.events(resource_id, after)

    def health(self) -> Health:
        """Whether the service is there, and how busy; not waited for where it is away."""
        return self._http.data(Health, "GET", "/health", max_wait_s=0.0)

    @property
    def access(self) -> Access:
        """The address that is spoken to, and where it and the key came from."""
        return self._http.access

    def close(self) -> None:
        """Let go of the service; what is under way there goes on."""
        self._http.close()
        if self._on_close is not None:
            self._on_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._http.url}>"
