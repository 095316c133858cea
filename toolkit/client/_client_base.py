"""The base of both clients: it opens the embedded engine, and offers `map` and `route`."""

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self, TypeVar, Unpack

import httpx

from toolkit.client._client_state import ClientState
from toolkit.client._options import collect_options, document_options
from toolkit.client._wire.messages import make_run_body
from toolkit.contract.collector_pause import pause_collector
from toolkit.contract.run_options import RunOptions
from toolkit.contract.short_tracebacks import HasKnownNames
from toolkit.profiles.resolution import ServerAccess

if TYPE_CHECKING:
    import pandas as pd
    from pydantic import BaseModel

    from toolkit.cassettes import CassetteMode
    from toolkit.client._function_nodes import Functions
    from toolkit.client._row_map import RowMap
    from toolkit.local import EngineThread, Registry
    from toolkit.sandbox import Faults
    from toolkit.settings import Settings


T = TypeVar("T")
# A RouteView and a DataFrame; coroutines that return them in the async client.
V = TypeVar("V")
D = TypeVar("D")


class Area(cached_property[T]):
    """An attribute such as `client.runs`, whose module `resources.runs` is imported on first use.

    Its annotation names the class to import, as in `runs: "Area[Runs]"`.
    """

    def __init__(self, doc: str) -> None:
        super().__init__(self._open)
        self.__doc__ = doc

    def __set_name__(self, owner: type[Any], name: str) -> None:
        """Derive the module and the class to import from the attribute's name and annotation."""
        super().__set_name__(owner, name)
        self._kind = str(owner.__annotations__[name]).removeprefix("Area[").removesuffix("]")
        self._module = f"{owner.__module__.rpartition('.')[0]}.resources.{name}"

    def _open(self, client: Any) -> T:
        module = import_module(self._module)  # nosemgrep: rules.no-import-of-data
        area: T = getattr(module, self._kind)(client._http)
        return area


class NoTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """A transport that raises for every request, for a client whose engine is in this process."""


class ClientBase(HasKnownNames, ABC, Generic[V, D]):
    """The methods that both clients share."""

    capabilities: Any
    _http: ClientState
    _channel_kind: ClassVar[str]  # the class of `toolkit.local` that leads to an engine
    _thread: "EngineThread | None" = None  # of the embedded engine; None for a server's client
    _description = ""  # of the embedded engine

    @abstractmethod
    def _load_row_mapper(self) -> "type[RowMap[D]]":
        """Import the class that runs rows, which few programs need."""

    @abstractmethod
    def _load_cascade(self) -> Any:
        """Import the class that runs cascades."""

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
        """Open an engine in this process, which needs no setup, and return a client of it.

        Args:
            data_dir: directory of all data. Default: `./.toolkit`.
            sandbox: use the simulated vendor cloud, which needs no keys, no network and no money.
            settings: further settings, such as vendors' base URLs.
            registry: capabilities and vendors. Default: all that are built in or installed.
            faults: faults of the sandbox, and the log of its calls. Implies `sandbox=True`.
            max_retries: maximum number of times that a call of the engine is repeated. Default: 3.
            cache: reuse the results of equal jobs, unless a run or workflow disables this.
            cassette: path of the YAML file that vendors' answers are written to or replayed from.
            mode: mode of the cassette. `replay` answers from the file alone, without network and
                keys; `record` writes a new file; `auto` replays known calls and records the others.
            take_up: resume work that another process left unfinished. By default the engine
                resumes work if its secrets are available and the directory is not a copy. True
                makes a copy a directory of its own and resumes its work. False resumes nothing.
            read_only: read the records of all accounts, and write nothing.
            dispatch: address of the Dask cluster that runs CPU steps, as `dask://host:port` or
                `tls://…` (needs the extra `dask`). Default: worker processes of this machine.
            database: URL of the PostgreSQL database that holds all rows, as
                `postgresql://user@host/name` (needs the extra `postgres`). Default: a SQLite
                database in `data_dir`.

        Raises:
            ServiceError: `UNAVAILABLE` if the data directory or the cassette cannot be used.
            ValueError: `mode` is unknown.

        >>> import tempfile
        >>> from toolkit import Client
        >>> with Client.local(tempfile.mkdtemp(), sandbox=True) as client:
        ...     client.capabilities.get("llm.generate").title
        'Generate text'
        """
        with pause_collector(objects_stay=True):
            # The only import of a higher layer; a client of a server must not load the engine.
            from toolkit import local

            thread, key = local.start_engine(
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
        make: Callable[..., Self] = cls
        client = make(
            base_url=local.LOCAL_URL,
            api_key=key,
            transport=NoTransport(),
            max_retries=max_retries,
            cache=cache,
            on_close=thread.close,
        )
        client._http.channel = getattr(local, cls._channel_kind)(thread)
        client._thread = thread
        client._http.functions = thread.functions
        # Completion offers these ids before the first capability is read.
        for capability in thread.engine.capabilities.list_newest():
            client.capabilities._remember_id(capability.id)
        folder = thread.engine.settings.data_dir
        client._http.access = replace(client.access, data_dir=folder)
        world = "in the sandbox" if thread.engine.settings.sandbox else "live"
        client._description = f"{world}, data in {folder}"
        # Running a cell again drops its client, which closes the engine. Resources and handles of
        # the client that are still in use hold `_http`, and so keep the engine open.
        weakref.finalize(client._http, thread.close).atexit = False
        return client

    def _list_names_elsewhere(self) -> list[str]:
        from toolkit.client._capability_calls import CapabilityCalls

        return [f"capabilities.{name}" for name in vars(CapabilityCalls) if name[0] != "_"]

    @document_options(RunOptions)
    def route(
        self,
        name: str,
        input: Mapping[str, object],
        *,
        version: str | None = None,
        **options: Unpack[RunOptions],
    ) -> V:
        """Return the provider and model that a run would use, and why each other was excluded.

        The arguments are the same as in `runs.create`. Routing is free.

        Args:
            name: name of a capability, or `name@version`.
            input: input of the capability.
            version: version of the capability, unless `name` contains it.
            **options: options of a run.

        Raises:
            RequestError: `INVALID_REQUEST`, `NOT_FOUND`, `PROVIDER_NOT_ALLOWED` and others.
        """
        from toolkit.client._record_view import RouteView
        from toolkit.contract.runs import Route

        body = make_run_body(name, input, version, collect_options(options))
        view: V = self._http.request_view(RouteView, Route, "POST", "/route", json=body)
        return view

    def map(
        self,
        name: str,
        rows: "pd.DataFrame | pd.Series[Any] | Iterable[Mapping[str, object] | str] | Path | Any",
        *,
        output_model: "type[BaseModel] | None" = None,
        max_cost_usd: float | None = None,
        concurrency: int = 8,
        on_error: Literal["stop", "continue"] | int = "stop",
        options: RunOptions | None = None,
        sealed: bool = False,
        progress: bool = True,
        tags: Sequence[str] | None = None,
        note: str | None = None,
        cascade: tuple[str, str] | None = None,
        agreement: float = 0.95,
        **fields: object,
    ) -> D:
        """Run a capability on every row of a table, and return a row of results for each.

        The rows are one map of the service, which goes on if the kernel dies. An equal call has the
        same map: it waits for it, adds new rows, and tries failed rows again. Existing results are
        not paid again.

        Args:
            name: name of a capability, or `name@version`.
            rows: a table of pandas, polars or pyarrow, an iterable of mappings, or texts (a list or
                a Series), which become a column `text`. An artifact, by its handle or id, and a
                file, by its `Path`, hold JSON lines, CSV, Parquet or Arrow.
            output_model: pydantic model that each answer must match; its fields become columns.
            max_cost_usd: budget for all rows together, including earlier calls. Running rows count
                with their maximum cost. A row that the rest of the budget may not cover is not
                begun, and its `error` says so.
            concurrency: maximum number of rows in progress; 3 until the first has succeeded.
            on_error: "stop" begins no more rows after 10 failures with the same code; a number
                sets another limit; "continue" sets no limit. Temporary errors, such as that of an
                unreachable vendor, do not count.
            options: options of each row, such as `{"provider": "openai"}`.
            sealed: fail rows that a second model or host would answer, in later calls, too. The
                first answer decides.
            tags, note: tags and note of the map.
            progress: show a line with the progress, the cost and the reasons of failed rows.
            cascade: a cheap and a dear model, as quality tiers (`economy`, `standard`, `premium`),
                providers or `provider/model`. The cheap model answers all rows, the dear model a
                random sample, and the rows whose confidence is below a threshold.
            agreement: least share of rows with the label of the dear model, from 0 to 1, which the
                threshold guarantees with a confidence of 95 %.
            **fields: input of the capability; `{column}` in a text stands for the row's value.

        Returns:
            a table of the library of `rows`, else of pandas, with the fields of the answers,
            `status`, `cost_usd`, `latency_ms`, `job_id`, `cached` and `error` as columns. A table
            of pandas has the index of `rows`, and the id of the map as `attrs["map"]`. With a
            cascade it is of pandas, `cost_usd` is the cost of all answers to the row, and the
            columns `confidence`, `escalated` and `sampled` are added. `attrs["cascade"]` has the
            agreement with its limits (`agreement`, `low`, `high`), the `threshold`, the `maps`,
            and `saved_usd` against the dear model alone.

        Raises:
            RequestError: `INVALID_REQUEST` for an unknown column; other codes for an error that
                affects all rows.
            KeyboardInterrupt: the wait was interrupted; the map goes on.
        """
        make_part = partial(
            self._load_row_mapper(),
            self._http,
            name,
            output_model=output_model,
            max_cost_usd=max_cost_usd,
            concurrency=concurrency,
            on_error=on_error,
            tags=tags,
            note=note,
            sealed=sealed,
            progress=progress,
        )
        whole = make_part(rows, fields, options)
        if cascade is None:
            return whole.run_all()
        result: D = self._load_cascade()(whole, make_part, cascade, agreement).run_all()
        return result

    @property
    def is_held(self) -> bool:
        """True if the engine's data directory is a copy, so that unfinished work is not resumed."""
        return self._thread is not None and self._thread.engine.is_held

    def take_up(self, id: str) -> None:
        """Resume one run, workflow or task that another process left unfinished.

        This does nothing if another process works on it, or if the directory is a copy. A server
        resumes its work by itself.
        """
        if self._thread is not None:
            self._thread.call(self._thread.engine.take_up(id))

    @property
    def access(self) -> ServerAccess:
        """The address and the key of the service, and the source of both."""
        return self._http.access

    @cached_property
    def functions(self) -> "Functions":
        """The functions of this process that workflows may call."""
        from toolkit.client._function_nodes import Functions

        return Functions(self._http.functions, self._http.url)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._description or self._http.url}>"
