# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""The client itself."""

import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

import httpx

from toolkit.client._options import collect_options, document_options
from toolkit.client._sync.client_experiments import ClientExperiments
from toolkit.client._sync.http import HttpClient
from toolkit.client._wire.messages import LONG_POLL_S, make_page_query, make_run_body
from toolkit.client._wire.timeouts import DEFAULT_TIMEOUT
from toolkit.client._wire.twin_clients import TwinClient
from toolkit.contract.errors import build_not_found
from toolkit.contract.run_options import RunOptions
from toolkit.contract.short_tracebacks import UnknownAttributeError
from toolkit.profiles.resolution import ServerAccess, resolve_access

if TYPE_CHECKING:
    from toolkit.cassettes import CassetteMode
    from toolkit.client._client_info import ClientInfo
    from toolkit.client._record_view import RouteView
    from toolkit.client._sync.resource import WorkResource
    from toolkit.contract.events import Event
    from toolkit.contract.health import Health
    from toolkit.local import EngineThread, Registry
    from toolkit.sandbox import Faults
    from toolkit.settings import Settings

MAX_PAGE = 200


class Client(ClientExperiments):
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
        self._thread: EngineThread | None = None  # of the embedded engine; none for a server's
        self._description = ""  # of the embedded engine

    @classmethod
    def local(
        cls,
        data_dir: str | Path | None = None,
        *,
        sandbox: bool = False,
        settings: "Settings | None" = None,
        registry: "Registry | None" = None,
        faults: "Faults | None" = None,
        max_retries: int | None = None,
        cache: bool | None = None,
        cassette: str | Path | None = None,
        mode: "CassetteMode" = "replay",
        take_up: bool | None = None,
        read_only: bool = False,
        dispatch: str | None = None,
        database: str | None = None,
    ) -> Self:
        """Open the embedded engine, with nothing to set up.

        Args:
            data_dir: the directory of all data; `./.toolkit` by default.
            sandbox: use the simulated vendor cloud: no keys, no network, no bills.
            settings: more settings, such as vendors' base URLs.
            registry: other capabilities and vendors than the built-in and installed ones.
            faults: what goes wrong in the sandbox (which it implies), and the log of its calls.
            max_retries: ask the engine again at most so often; 3 times by default.
            cache: use the results of equal jobs again, unless a run or workflow says no.
            cassette: the YAML file that vendors' answers are written to or played from.
            mode: of the cassette. `replay` answers from the file alone, without network and keys;
                `record` makes it anew; `auto` replays what is known and records what is new.
            take_up: whether work that another process left unfinished is resumed. By default, as
                far as its secrets are there, and not in a copy of a directory; true makes a copy a
                directory of its own and resumes; false resumes nothing.
            read_only: only read what is there, of all accounts; nothing is written.
            dispatch: the Dask cluster that does CPU steps, as `dask://host:port` or `tls://…` (the
                extra `dask`); worker processes of this machine by default.
            database: the database of PostgreSQL that has the rows, as `postgresql://user@host/name`
                (the extra `postgres`); one in `data_dir` by default.

        Raises:
            ServiceError: `UNAVAILABLE` when the data directory or the cassette cannot be used.
            ValueError: for a mode that there is not.

        >>> import tempfile
        >>> from toolkit import Client
        >>> with Client.local(tempfile.mkdtemp(), sandbox=True) as client:
        ...     client.capabilities.get("llm.generate").title
        'Generate text'
        """
        # The one import that looks upward, and only here: who asks a server loads no engine.
        from toolkit.local import LOCAL_URL, LoopChannel, start_engine

        thread, key = start_engine(
            data_dir,
            sandbox=sandbox,
            settings=settings,
            registry=registry,
            faults=faults,
            cassette=cassette,
            mode=mode,
            take_up=take_up,
            read_only=read_only,
            dispatch=dispatch,
            database=database,
        )
        client = cls(
            base_url=LOCAL_URL,
            api_key=key,
            transport=httpx.BaseTransport(),  # which sends nothing
            max_retries=max_retries,
            cache=cache,
            on_close=thread.close,
        )
        client._http.attach_channel(LoopChannel(thread))
        client._attach_engine(thread)
        return client

    if not TYPE_CHECKING:  # a name that there is not is found by mypy, too

        def __getattr__(self, name: str) -> object:
            if name.startswith("_"):
                raise AttributeError(name)
            from toolkit.client._capability_calls import CapabilityCalls

            calls = (f"capabilities.{one}" for one in vars(CapabilityCalls) if one[0] != "_")
            raise UnknownAttributeError(self, name, calls)

    def _attach_engine(self, thread: "EngineThread") -> None:
        """Attach the engine that this client owns."""
        self._thread = thread
        self._http.functions = thread.functions
        for capability in thread.engine.capabilities.list_newest():
            self.capabilities._remember_id(
                capability.id
            )  # so that completion knows them before any read
        folder = thread.engine.settings.data_dir
        self._http.access = replace(self.access, data_dir=folder)
        world = "in the sandbox" if thread.engine.settings.sandbox else "live"
        self._description = f"{world}, data in {folder}"
        # A cell that is run again drops its client, which closes the engine, unless a resource or a
        # handle of the client is still in use: each of them holds what sends its requests.
        weakref.finalize(self._http, thread.close).atexit = False

    @property
    def is_held(self) -> bool:
        """True if the directory is a copy, so that work left in it is not resumed."""
        return self._thread is not None and self._thread.engine.is_held

    def take_up(self, id: str) -> None:
        """Resume one run, workflow or task that another process left unfinished.

        Nothing is done where it is being worked on, or where the directory is a copy; a server
        resumes its work by itself.
        """
        if self._thread is not None:
            self._thread.call(self._thread.engine.take_up(id))

    @document_options(RunOptions)
    def route(
        self,
        name: str,
        input: Mapping[str, object],
        *,
        version: str | None = None,
        **options: Unpack[RunOptions],
    ) -> "RouteView":
        """Return the choice a run would get, and why each vendor and model was kept or dropped.

        Takes what `runs.create` takes, and spends nothing.

        Args:
            name: a capability, or `name@version`.
            input: its input.
            version: the version, where it is not in the name.
            **options: those of a run.

        Raises:
            RequestError: `INVALID_REQUEST`, `NOT_FOUND`, `PROVIDER_NOT_ALLOWED` and others.
        """
        from toolkit.client._record_view import RouteView
        from toolkit.contract.runs import Route

        body = make_run_body(name, input, version, collect_options(options))
        return RouteView(self._http.request_record(Route, "POST", "/route", json=body))

    def events(self, resource_id: str, after: int = 0) -> "Iterator[Event]":
        """Yield the events of a run, job, workflow or task as they come, until it is over.

        None is left out and none is repeated; `after` continues where an earlier reading ended.

        Args:
            resource_id: a `run_`, `job_`, `wfl_` or `tsk_` id.
            after: the number of the last event that is known already.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        from toolkit.contract.ids import Prefix
        from toolkit.contract.jobs import FINAL_STATUSES

        followed: dict[str, WorkResource[Any]] = {
            Prefix.RUN: self.runs,
            Prefix.JOB: self.jobs,
            Prefix.WORKFLOW: self.workflows,
            Prefix.TASK: self.tasks,
        }
        area = followed.get(resource_id.partition("_")[0])
        if area is None:
            raise build_not_found("run, job, workflow or task", resource_id)
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

    @property
    def access(self) -> ServerAccess:
        """The address that is spoken to, and where it and the key came from."""
        return self._http.access

    def close(self) -> None:
        """Close the connections; what is under way on the service goes on."""
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
        return f"<{type(self).__name__} {self._description or self._http.url}>"
