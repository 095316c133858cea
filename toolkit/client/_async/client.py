"""The client itself, with a property for each area of `/v1`."""

import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

import httpx

from toolkit.client._async.http import AsyncHttpClient
from toolkit.client._client_base import Area, ClientBase
from toolkit.client._options import check_arguments
from toolkit.client._replies import AsyncReply
from toolkit.client._tools import ToolArgument
from toolkit.client._unknown_ids import find_common_resource, find_work_resource
from toolkit.client._wire.messages import LONG_POLL_S, make_page_query
from toolkit.client._wire.timeouts import DEFAULT_TIMEOUT
from toolkit.client._wire.twin_clients import AsyncTwinClient
from toolkit.contract.errors import build_not_found
from toolkit.contract.ids import Prefix, is_id
from toolkit.contract.run_options import RunOptions
from toolkit.profiles.resolution import resolve_access

if TYPE_CHECKING:
    import pandas as pd  # noqa: F401 - in a string

    from toolkit.client._async.cascade import AsyncCascade
    from toolkit.client._async.conversation import AsyncConversation
    from toolkit.client._async.mapping import AsyncRowMapper
    from toolkit.client._async.resource import AsyncWorkResource
    from toolkit.client._async.resources.account import AsyncAccounts
    from toolkit.client._async.resources.agents import AsyncAgents
    from toolkit.client._async.resources.api_keys import AsyncApiKeys
    from toolkit.client._async.resources.artifacts import AsyncArtifact, AsyncArtifacts
    from toolkit.client._async.resources.billing import AsyncBillings
    from toolkit.client._async.resources.capabilities import AsyncCapabilities
    from toolkit.client._async.resources.catalog import AsyncCatalog
    from toolkit.client._async.resources.compute import AsyncComputes
    from toolkit.client._async.resources.connections import AsyncConnections
    from toolkit.client._async.resources.endpoints import AsyncEndpoints
    from toolkit.client._async.resources.jobs import AsyncExecution, AsyncJobs
    from toolkit.client._async.resources.maps import AsyncMaps
    from toolkit.client._async.resources.plans import AsyncPlans
    from toolkit.client._async.resources.providers import AsyncProviders
    from toolkit.client._async.resources.runs import AsyncRun, AsyncRuns
    from toolkit.client._async.resources.storage import AsyncStorages
    from toolkit.client._async.resources.tasks import AsyncTask, AsyncTasks
    from toolkit.client._async.resources.templates import AsyncTemplates
    from toolkit.client._async.resources.usage import AsyncUsage
    from toolkit.client._async.resources.workflows import AsyncWorkflowRun, AsyncWorkflows
    from toolkit.client._client_info import ClientInfo
    from toolkit.client._record_view import RouteView  # noqa: F401 - in a string
    from toolkit.client._vectors import Vectors
    from toolkit.contract.events import Event
    from toolkit.contract.health import Health
    from toolkit.display.records.comparison import WorkComparison

MAX_PAGE = 200


class AsyncClient(ClientBase[AsyncReply["RouteView"], AsyncReply["pd.DataFrame"]]):
    """A client of any service that speaks `/v1`.

    `AsyncClient.local` makes a client with an engine in this process.

    Args:
        base_url: address of the service, with or without `/v1`. Default: `TOOLKIT_BASE_URL`.
        api_key: `sk_live_…`. Default: `TOOLKIT_API_KEY`.
        profile: name of a profile of `toolkit login`. Default, if no address is given:
            `TOOLKIT_PROFILE`, then the profile `default`.
        transport: transport of the requests. Default: the network.
        http_client: an `httpx.AsyncClient`, or a client of httpx2 or another package with the same
            methods, in place of `transport` and `cacert`. Its headers, cookies and hooks apply, and
            closing this client closes it, as with openai-python.
        timeout: maximum time of each part of a request, as in httpx: seconds, an `httpx.Timeout`,
            or None for no limit. Default: the timeout of `http_client` if it is not httpx's
            default, or a minute. A longer time raises `ServiceTimeoutError`, a `TimeoutError`.
        max_retries: maximum number of times that any request is repeated, if that is safe. Default:
            3 after an error answer, and as many as fit in `max_wait_s` while the service cannot be
            reached or limits the rate of requests.
        cache: reuse the results of equal jobs, unless a run or workflow disables this.
        max_wait_s: maximum seconds to wait for a service that cannot be reached, and in total for
            its rate limit. Work under way goes on. Default: `TOOLKIT_MAX_WAIT_S`, or a minute.
        cacert: PEM file of trusted certificates, in addition to those of the machine or of
            `SSL_CERT_FILE`.
        on_close: function that is called after the client is closed.

    Raises:
        ServiceError: `UNAVAILABLE` without an address.
        RequestError: `INVALID_REQUEST` for a malformed address, or one that contradicts the
            profile; `UNAUTHENTICATED` for a malformed key; both and `NOT_FOUND` for a profile.
        TypeError: `http_client` is no client, or is given with `transport` or `cacert`.
    """

    _http: AsyncHttpClient
    _channel_kind = "AsyncLoopChannel"

    account: "Area[AsyncAccounts]" = Area("The account, and the key that is used.")
    api_keys: "Area[AsyncApiKeys]" = Area("The keys of the account.")
    providers: "Area[AsyncProviders]" = Area("The vendor catalogue.")
    connections: "Area[AsyncConnections]" = Area("Pointers to the keys of vendors.")
    capabilities: "Area[AsyncCapabilities]" = Area(
        "The capabilities, with the schemas of input and output."
    )
    runs: "Area[AsyncRuns]" = Area("Single capabilities, each executed once.")
    jobs: "Area[AsyncJobs]" = Area("The jobs, each of which executes a capability.")
    maps: "Area[AsyncMaps]" = Area("Tables, each row of which is a job.")
    workflows: "Area[AsyncWorkflows]" = Area("Graphs of capabilities.")
    tasks: "Area[AsyncTasks]" = Area("Objectives that are planned, executed and reviewed.")
    plans: "Area[AsyncPlans]" = Area("The plans of tasks.")
    endpoints: "Area[AsyncEndpoints]" = Area("Serverless GPU endpoints.")
    compute: "Area[AsyncComputes]" = Area("GPU pods.")
    storage: "Area[AsyncStorages]" = Area("Network volumes.")
    templates: "Area[AsyncTemplates]" = Area("Containers that endpoints or pods run.")
    catalog: "Area[AsyncCatalog]" = Area(
        "The GPUs and models that vendors offer, with list prices."
    )
    agents: "Area[AsyncAgents]" = Area("Named objectives with parameters.")
    usage: "Area[AsyncUsage]" = Area("The usage, and its cost.")
    billing: "Area[AsyncBillings]" = Area("The bills of each vendor.")
    artifacts: "Area[AsyncArtifacts]" = Area(
        "The artifacts that work has made or that were uploaded for it."
    )

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        profile: str | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        http_client: httpx.AsyncClient | AsyncTwinClient | None = None,
        timeout: float | httpx.Timeout | None = DEFAULT_TIMEOUT,
        max_retries: int | None = None,
        cache: bool | None = None,
        max_wait_s: float | None = None,
        cacert: str | Path | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        access = resolve_access(base_url, api_key, profile)
        self._http = AsyncHttpClient(
            access, transport, http_client, timeout, max_retries, cache, max_wait_s, cacert
        )
        self._on_close = on_close

    def _load_row_mapper(self) -> "type[AsyncRowMapper]":
        from toolkit.client._async.mapping import AsyncRowMapper

        return AsyncRowMapper

    def _load_cascade(self) -> "type[AsyncCascade]":
        from toolkit.client._async.cascade import AsyncCascade

        return AsyncCascade

    @check_arguments("compare takes two pieces of work; `runs.list().to_frame()` compares many")
    async def compare(
        self,
        a: "str | AsyncExecution[Any] | AsyncWorkflowRun | AsyncTask",
        b: "str | AsyncExecution[Any] | AsyncWorkflowRun | AsyncTask",
    ) -> "WorkComparison":
        """Compare two runs, jobs, workflows or tasks: input, route, text, cost and time.

        For a task, this compares the delivered workflow, or the last one.

        Args:
            a, b: ids or handles of the same kind.

        Raises:
            RequestError: `INVALID_REQUEST` for different kinds, `NOT_FOUND`.
        """
        from toolkit.display.records.comparison import (
            WorkComparison,
            compare_jobs,
            compare_tasks,
            compare_workflows,
            find_workflow_shown,
            list_jobs_apart,
        )

        first, second = (work if isinstance(work, str) else work.id for work in (a, b))
        kind = find_common_resource(first, second)
        if kind in ("runs", "jobs"):
            area = getattr(self, kind)
            job, other_job = await area.get(first), await area.get(second)
            return WorkComparison(kind, first, second, compare_jobs(job.record, other_job.record))
        tasks, ids = [], [first, second]
        if kind == "tasks":
            tasks = [(await self.tasks.get(id)).record for id in ids]
            workflow_ids = [find_workflow_shown(task) for task in tasks]
            ids = [id for id in workflow_ids if id is not None]
        workflows, jobs = [(await self.workflows.get(id)).record for id in ids], {}
        if len(workflows) == 2:
            apart = list_jobs_apart(*workflows)
            jobs = {id: (await self.jobs.get(id)).record for id in apart}
        if kind == "tasks":
            facts = compare_tasks(tasks[0], tasks[1], workflows, jobs)
        else:
            facts = compare_workflows(workflows[0], workflows[1], jobs)
        return WorkComparison(kind, first, second, facts)

    async def events(self, resource_id: str, after: int = 0) -> "AsyncIterator[Event]":
        """Yield the events of a run, job, workflow or task until its end, each exactly once.

        Args:
            resource_id: id of the work.
            after: number of the last known event.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        from toolkit.contract.jobs import FINAL_STATUSES

        name = find_work_resource(resource_id)
        if name is None:
            raise build_not_found("run, job, workflow or task", resource_id)
        area: AsyncWorkResource[Any] = getattr(self, name)
        over = False
        while not over:
            batch = await area.events(resource_id, after, LONG_POLL_S)
            for event in batch:
                yield event
                after = event.n
            if not batch or batch[-1].terminal:
                # A workflow that is retried continues after a terminal event; and work that ended
                # while there were no events may still have its last event.
                status = (await area.get(resource_id)).status
                over = status in FINAL_STATUSES and not await area.events(resource_id, after)

    async def info(self) -> "ClientInfo":
        """Return facts about this client: sandbox or live, place, account and money spent.

        The money is None if the key lacks the scope `read`.
        """
        from datetime import UTC, datetime

        from toolkit.client._client_info import ClientInfo

        health, account = await self.health(), await self.account.get()
        spent_here, spent_today = None, None
        if "read" in account.key.scopes:
            today = datetime.now(UTC).date()
            lines = await self.usage.list(["day"], first=today, last=today)
            spent_here, spent_today = await self._sum_own_costs(), lines.cost_usd or 0.0
        folder = self.access.data_dir
        return ClientInfo(
            sandbox=health.sandbox,
            place=self.access.server if folder is None else f"data in {folder}",
            account=account.email,
            spent_here_usd=spent_here,
            spent_today_usd=spent_today,
        )

    async def _sum_own_costs(self) -> float:
        """Return the total cost in USD of the work that this client has started.

        Of each kind (runs, jobs, workflows, tasks), only the newest 2,000 count.
        """
        spent = 0.0
        for resource, ids in self._http.started.items():
            pending, cursor = set(ids), None
            while pending:
                query = make_page_query(MAX_PAGE, cursor)
                page = await self.read(f"/{resource}", query)
                for record in page["items"]:
                    if record["id"] in pending:
                        spent += record.get("cost_incurred_usd") or 0.0
                pending -= {record["id"] for record in page["items"]}
                cursor = page.get("next_cursor")
                if cursor is None:
                    break
        return spent

    async def embed(
        self,
        texts: str | Iterable[object],
        *,
        purpose: Literal["document", "query"] = "document",
        dimensions: int | None = None,
        **options: Unpack[RunOptions],
    ) -> "Vectors":
        """Embed texts, such as a column of a frame, by runs of `embed.generate`.

        Equal texts are embedded once, and texts that were embedded before come from the cache.

        Args:
            texts: the texts; one text gives one row.
            purpose: `query` for texts to find documents by.
            dimensions: length of the vectors, if the model can shorten them.
            **options: options of the runs.

        Returns:
            an array of n × d 32-bit floats, in the order of the texts.

        Raises:
            RequestError: `INVALID_REQUEST` for an item that is no text; others as for a run.
            WorkError: a run failed.
        """
        from toolkit.client._vectors import align_vectors, list_texts, split_batches

        listed = list_texts(texts)
        batches, parts = list(split_batches(listed)), []
        chosen: RunOptions = {"cache": True, **options}
        fields = {"purpose": purpose} | ({} if dimensions is None else {"dimensions": dimensions})
        for batch in batches:
            run = await self.runs.create("embed.generate", {"texts": batch, **fields}, **chosen)
            await run.wait(progress=False)
            parts.append(await run.vectors)
        return align_vectors(listed, batches, parts)

    async def transcribe(
        self,
        audio: "AsyncArtifact | bytes | str | Path",
        *,
        language: str | None = None,
        prompt: str = "",
        **options: Unpack[RunOptions],
    ) -> "AsyncRun":
        """Transcribe audio by a run of `speech.transcribe`, and wait for it.

        Args:
            audio: an MP3, M4A or WAV: its artifact or the artifact's id, its bytes, or its path.
            language: ISO 639-1 code of the spoken language; detected by default.
            prompt: names and terms that may occur, for models that take them.
            **options: options of the run.

        Returns:
            the run, with `text` and `segments`.

        Raises:
            RequestError: as for a run.
            WorkError: the run failed.
        """
        if isinstance(audio, str) and is_id(audio, Prefix.ARTIFACT):
            audio_id = audio
        elif isinstance(audio, bytes | str | Path):
            audio_id = (await self.artifacts.upload(audio)).id
        else:
            audio_id = audio.id
        fields = {"audio": audio_id, "language": language, "prompt": prompt}
        chosen: RunOptions = {"cache": True, **options}
        run = await self.runs.create("speech.transcribe", fields, **chosen)
        return await run.wait(progress=False)

    async def conversation(
        self,
        name: str | None = None,
        *,
        system: str = "",
        tools: Sequence[ToolArgument] = (),
        max_turns: int = 1,
        **options: Unpack[RunOptions],
    ) -> "AsyncConversation":
        """Begin a conversation with a model, or continue the conversation of this name.

        Each turn is a run with its cost and route, so a new kernel continues where the last one
        stopped.

        Args:
            name: name of the conversation; a new one by default.
            system: standing instructions.
            tools: annotated Python functions that the model may call, or descriptions of tools.
            max_turns: maximum runs for one message, because answers of your functions lead to
                further runs. By default your functions are not called.
            **options: options of every run.
        """
        from toolkit.client._async.conversation import AsyncConversation

        made = AsyncConversation(
            self._http,
            name or secrets.token_hex(8),
            system=system,
            tools=tools,
            max_turns=max_turns,
            **options,
        )
        if name is not None:
            await made.load()
        return made

    async def health(self) -> "Health":
        """Return the state and the load of the service; fail at once if it cannot be reached."""
        from toolkit.contract.health import Health

        return await self._http.request_record(Health, "GET", "/health", max_wait_s=0.0)

    async def read(
        self,
        path: str,
        params: Mapping[str, str | int] | None = None,
        *,
        max_wait_s: float | None = None,
    ) -> Any:
        """Read a path of the service as plain JSON.

        Args:
            path: path below `/v1`, such as `/runs`.
            params: query parameters.
            max_wait_s: maximum seconds to wait for an unreachable service, if less than usual.

        Raises:
            RequestError: `NOT_FOUND` and others.
        """
        return await self._http.request_json(path, params=params, max_wait_s=max_wait_s)

    async def aclose(self) -> None:
        """Close the connections, and the embedded engine if any; work on a server continues."""
        await self._http.aclose()
        if self._on_close is not None:
            self._on_close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
