"""The part of a client that sends no request: its engine in this process, and what it knows."""

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self, TypeVar, Unpack

import httpx

from toolkit.client._client_state import ClientState
from toolkit.client._options import collect_options, document_options
from toolkit.client._wire.messages import make_run_body
from toolkit.contract.run_options import RunOptions
from toolkit.contract.short_tracebacks import UnknownAttributeError
from toolkit.profiles.resolution import ServerAccess

if TYPE_CHECKING:
    import pandas as pd
    from pydantic import BaseModel

    from toolkit.cassettes import CassetteMode
    from toolkit.client._functions import Functions
    from toolkit.client._row_map import RowMap
    from toolkit.local import EngineThread, Registry
    from toolkit.sandbox import Faults
    from toolkit.settings import Settings

# A RouteView and a DataFrame, or for the async client what is awaited for one.
V = TypeVar("V")
D = TypeVar("D")


class NoTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """A transport that sends nothing: that of a client whose engine is in this process."""


class ClientBase(ABC, Generic[V, D]):
    """What both clients have in common."""

    capabilities: Any
    _http: ClientState
    _channel_kind: ClassVar[str]  # the class of `toolkit.local` that leads to an engine
    _thread: "EngineThread | None" = None  # of the embedded engine; none for a server's
    _description = ""  # of the embedded engine

    @abstractmethod
    def _load_row_mapper(self) -> "type[RowMap[D]]":
        """Import what runs the rows: few programs need it."""

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
        # So that completion knows them before any is read.
        for capability in thread.engine.capabilities.list_newest():
            client.capabilities._remember_id(capability.id)
        folder = thread.engine.settings.data_dir
        client._http.access = replace(client.access, data_dir=folder)
        world = "in the sandbox" if thread.engine.settings.sandbox else "live"
        client._description = f"{world}, data in {folder}"
        # A cell that is run again drops its client, which closes the engine, unless a resource or a
        # handle of the client is still in use: each of them holds what sends its requests.
        weakref.finalize(client._http, thread.close).atexit = False
        return client

    if not TYPE_CHECKING:  # a name that there is not is found by mypy, too

        def __getattr__(self, name: str) -> object:
            if name.startswith("_"):
                raise AttributeError(name)
            from toolkit.client._capability_calls import CapabilityCalls

            calls = (f"capabilities.{one}" for one in vars(CapabilityCalls) if one[0] != "_")
            raise UnknownAttributeError(self, name, calls)

    @document_options(RunOptions)
    def route(
        self,
        name: str,
        input: Mapping[str, object],
        *,
        version: str | None = None,
        **options: Unpack[RunOptions],
    ) -> V:
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
        made: V = self._http.request_view(RouteView, Route, "POST", "/route", json=body)
        return made

    def map(
        self,
        name: str,
        rows: "pd.DataFrame | pd.Series[Any] | Iterable[Mapping[str, object] | str]",
        *,
        output_model: "type[BaseModel] | None" = None,
        max_cost_usd: float | None = None,
        concurrency: int = 8,
        on_error: Literal["stop", "continue"] | int = "stop",
        options: RunOptions | None = None,
        progress: bool = True,
        tags: Sequence[str] | None = None,
        note: str | None = None,
        **fields: object,
    ) -> D:
        """Run a capability on every row of a table, and return a row of results for each.

        The same call resumes where it was interrupted, even by a kernel that died: results that
        are there are used again, unpaid, and rows that failed are tried again.

        Args:
            name: a capability, or `name@version`.
            rows: a DataFrame, or mappings; or texts (a list or a Series), as a column `text`.
            output_model: a pydantic model that each answer has to fit; its fields are columns.
            max_cost_usd: one budget over all rows, paid now or before. Runs in flight count with
                their maximum cost, no matter which call began them. A row that the rest may not
                cover is not begun, and says so.
            concurrency: how many runs are under way at most; 3 until one has succeeded.
            on_error: "stop" to begin no more rows after 10 failures with the same code; a number
                for another limit; "continue" for none. Errors that end by themselves, such as
                those of a vendor that is away, do not count.
            options: those of each run, such as `{"provider": "openai"}`.
            tags, note: those of each run.
            progress: whether a line shows how far it is, its cost, and why rows failed.
            **fields: the input; `{column}` in a text stands for a row's value.

        Returns:
            the answers' fields, `status`, `cost_usd`, `latency_ms`, `run_id`, `cached` and
            `error`, by the index of `rows`; `attrs["tag"]` is the tag that its runs share.

        Raises:
            RequestError: `INVALID_REQUEST` for a column that there is not, and others for what is
                wrong with all rows.
            KeyboardInterrupt: it was interrupted, in one line; runs under way go on.
        """
        return self._load_row_mapper()(
            self._http,
            name,
            rows,
            fields,
            options,
            output_model,
            max_cost_usd,
            concurrency,
            on_error,
            tags,
            note,
            progress=progress,
        ).run_all()

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

    @property
    def access(self) -> ServerAccess:
        """The address that is spoken to, and where it and the key came from."""
        return self._http.access

    @cached_property
    def functions(self) -> "Functions":
        """The functions of this process that its workflows may call."""
        from toolkit.client._functions import Functions

        return Functions(self._http.functions, self._http.url)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._description or self._http.url}>"
