# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""The client itself."""

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

import httpx

from toolkit.client import _wire
from toolkit.client._shown import RouteView
from toolkit.client._sync import areas
from toolkit.client._sync.http import Http
from toolkit.contract.health import Health
from toolkit.contract.runs import Route


class Client:
    """Speaks `/v1` to whatever serves it.

    Args:
        base_url: the service's address, with or without `/v1`; `TOOLKIT_BASE_URL` by default.
        api_key: `sk_live_…`; `TOOLKIT_API_KEY` by default.
        transport: what requests go over; the network by default.
        timeout_s: the longest one request may take, in seconds.
        cache: have runs and workflows use the results of equal jobs again, unless one says no.
        on_close: called once the client is closed.

    Raises:
        ServiceError: `UNAVAILABLE` when there is no address.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        transport: httpx.BaseTransport | None = None,
        timeout_s: float = 60.0,
        cache: bool | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self._http = Http(base_url, api_key, transport, timeout_s, cache)
        self._on_close = on_close
        self.account = areas.Accounts(self._http)
        self.providers = areas.Providers(self._http)
        self.connections = areas.Connections(self._http)
        self.capabilities = areas.Capabilities(self._http)
        self.runs = areas.Runs(self._http)
        self.jobs = areas.Jobs(self._http)
        self.workflows = areas.Workflows(self._http)
        self.tasks = areas.Tasks(self._http)
        self.plans = areas.Plans(self._http)
        self.endpoints = areas.Endpoints(self._http)
        self.compute = areas.Computes(self._http)
        self.agents = areas.Agents(self._http)
        self.usage = areas.Usage(self._http)
        self.billing = areas.Billings(self._http)
        self.artifacts = areas.Artifacts(self._http)

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
        )
        body = _wire.run_body(name, input, version, options)
        return RouteView(_wire.data_of(self._http.call("POST", "/route", json=body), Route))

    def health(self) -> Health:
        """Whether the service is there, and how busy."""
        return _wire.data_of(self._http.call("GET", "/health"), Health)

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
