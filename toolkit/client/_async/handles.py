"""Handles: a resource, and what can be asked of it."""

import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import BaseModel

from toolkit.client import _wire
from toolkit.client._async.http import AsyncHttp
from toolkit.client._drawn import Drawn, LineageView, TimelineView, planned_nodes
from toolkit.client._shown import ReviewView, Shown
from toolkit.contract import (
    agents,
    artifacts,
    capabilities,
    compute,
    connections,
    endpoints,
    jobs,
    plans,
    runs,
    storage,
    tasks,
    templates,
    workflows,
)
from toolkit.contract.base import ErrorInfo
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.contract.events import Event
from toolkit.display import html, media
from toolkit.display.frames import flat
from toolkit.display.progress import Mode, Progress

R = TypeVar("R", bound=BaseModel)
J = TypeVar("J", bound=jobs.Job)
S = TypeVar("S", bound=endpoints.Infrastructure)
SHOWN_BYTES = 4 * 1024 * 1024


class AsyncHandle(Shown[R]):
    """A resource that can be read again."""

    area = ""
    model: type[Any]

    def __init__(self, http: AsyncHttp, record: R) -> None:
        super().__init__(record)
        self._http = http

    @property
    def path(self) -> str:
        """Where the resource is, below `/v1`."""
        return f"/{self.area}/{self.id}"

    async def refresh(self) -> Self:
        """Read the resource again."""
        self.record = _wire.data_of(await self._http.call("GET", self.path), self.model)
        return self


class AsyncWaitable(AsyncHandle[R]):
    """Work that can be waited for and cancelled."""

    ended: frozenset[str] = jobs.FINAL_STATUSES
    failed: frozenset[str] = frozenset({"failed", "cancelled"})
    _seen = 0  # the number of the last event that was shown

    @property
    def status(self) -> str:
        """The state it was in when last read."""
        return str(getattr(self.record, "status", ""))

    @property
    def done(self) -> bool:
        """Whether it was over when last read."""
        return self.status in self.ended

    async def events(self, after: int = 0, wait_s: int = 0) -> list[Event]:
        """Its events numbered above `after`, holding up to `wait_s` seconds while there is none."""
        envelope = await self._http.call(
            "GET",
            f"{self.path}/events",
            params={"after": after, "wait": wait_s},
            timeout_s=wait_s + 30.0,
        )
        return [Event.model_validate(item) for item in envelope["data"]["items"]]

    async def wait(
        self, timeout_s: float | None = None, *, progress: Mode = True, check: bool = True
    ) -> Self:
        """Wait until it is over, showing progress.

        An interrupt ends the wait and not the work: get it by its id and wait again.

        Args:
            timeout_s: how long to wait at most, in seconds; none is as long as it takes.
            progress: True for what fits the place, "lines" for a line each change, False for none.
            check: raise if it failed.

        Raises:
            WorkError: it failed or was cancelled; `check=False` returns it instead.
            ServiceError: `UNAVAILABLE` when the time was up first.
        """
        shown = Progress(progress)
        until = None if timeout_s is None else time.monotonic() + timeout_s
        await self.refresh()
        while not self.done:
            left = _wire.LONG_POLL_S if until is None else until - time.monotonic()
            if left <= 0:
                raise ServiceError(
                    ErrorCode.UNAVAILABLE,
                    f"{self.id} is still {self.status} after {timeout_s} s; it goes on.",
                )
            found = await self.events(self._seen, min(_wire.LONG_POLL_S, max(1, int(left))))
            for event in found:
                shown.add(event)
                await self._follow(event, shown)
                self._seen = event.n
            if not found or any(event.terminal for event in found) or self._pauses(found):
                await self.refresh()
        return self._checked() if check else self

    def _pauses(self, found: list[Event]) -> bool:
        """Whether these events may end the wait without being the last of all."""
        return any(event.type.endswith(".blocked") for event in found)

    async def _follow(self, event: Event, shown: Progress) -> None:
        """Show what happens below this resource; most have nothing below."""

    def _checked(self) -> Self:
        error = getattr(self.record, "error", None)
        if self.status in self.failed and error is not None:
            raise error.to_exception(of_work=True)
        return self

    def __await__(self) -> Generator[Any, None, Self]:
        return self.wait(progress=False).__await__()

    async def cancel(self) -> Self:
        """End it; what has ended stays as it is."""
        envelope = await self._http.call("POST", f"{self.path}/cancel")
        self.record = _wire.data_of(envelope, self.model)
        return self


class _One(AsyncWaitable[J]):
    """One capability being executed."""

    facts = (
        "capability", "status", "status_detail", "provider", "model", "output", "artifact_id",
        "error", "cost_usd", "latency_ms", "retry_count", "cached_from", "workflow_id", "node_id",
    )  # fmt: skip

    @property
    def output(self) -> Any:
        """What the capability answered; none until it is completed."""
        return self.record.output

    @property
    def artifact_id(self) -> str:
        """The artifact it yielded; empty until it is completed."""
        return self.record.artifact_id or ""

    @property
    def provider(self) -> str | None:
        """Who served it, or was asked last."""
        return self.record.provider

    @property
    def model_name(self) -> str | None:
        """The model that answered, as the provider names it."""
        return self.record.model

    @property
    def cost_usd(self) -> float | None:
        """What the call that worked was billed, in US dollars; none where the price is unknown."""
        return self.record.cost_usd

    @property
    def attempts(self) -> list[jobs.Attempt]:
        """Each try at a provider, in order."""
        return self.record.attempts

    @property
    def error(self) -> ErrorInfo | None:
        """What went wrong, if anything did."""
        return self.record.error

    @property
    def routing(self) -> jobs.Routing | None:
        """The router's decision, with every candidate and why it was kept or dropped."""
        return self.record.routing


class AsyncRun(_One[runs.Run]):
    """A run."""

    kind, area, model = "Run", "runs", runs.Run


class AsyncJob(_One[jobs.Job]):
    """A job: a run's, a workflow node's, or one asked for on a compute."""

    kind, area, model = "Job", "jobs", jobs.Job


class AsyncWorkflowRun(Drawn, AsyncWaitable[workflows.Workflow]):
    """A submitted workflow."""

    kind, area, model = "Workflow", "workflows", workflows.Workflow

    @property
    def nodes(self) -> list[workflows.Node]:
        """Its nodes, in the order given."""
        return self.record.nodes

    @property
    def cost_usd(self) -> float | None:
        """The sum of completed jobs' estimates; none where a price is unknown."""
        return self.record.cost_usd

    @property
    def latency_ms(self) -> int:
        """Wall time from submit to completion, in milliseconds; 0 until then."""
        return self.record.latency_ms or 0

    @property
    def retries(self) -> int:
        """Node retries across the workflow."""
        return self.record.retries

    @property
    def final_artifact_id(self) -> str:
        """The artifact of the last node that nothing depends on; empty until completion."""
        return self.record.final_artifact_id or ""

    async def retry(self) -> Self:
        """Run it again from its failed nodes on; its id and its results stay.

        Raises:
            RequestError: `CONFLICT` unless it has failed or was cancelled.
        """
        envelope = await self._http.call("POST", f"{self.path}/retry")
        self.record = _wire.data_of(envelope, self.model)
        return self

    async def rerun(
        self, from_: str, overrides: Mapping[str, Mapping[str, object]] | None = None
    ) -> Self:
        """A new workflow that runs one node again and what depends on it, and keeps the rest.

        Args:
            from_: the node to run again.
            overrides: input members that differ, by the id of a node that runs again.

        Raises:
            RequestError: `INVALID_REQUEST` for a node that does not run again.
        """
        body = {"from_node": from_, "overrides": dict(overrides or {})}
        envelope = await self._http.call("POST", f"{self.path}/fork", json=body)
        return type(self)(self._http, _wire.data_of(envelope, self.model))

    def _rows(self) -> list[workflows.Node]:
        return self.record.nodes

    def timeline(self) -> TimelineView:
        """When each node ran, as a Gantt chart that shows itself."""
        return TimelineView(self.record)

    def _title(self) -> str:
        return self.record.name

    def _nodes(self) -> list[workflows.Node]:
        return self.record.nodes


class AsyncTask(AsyncWaitable[tasks.Task]):
    """A task; `wait` also returns when it is blocked, which only a person can change."""

    kind, area, model = "Task", "tasks", tasks.Task
    ended = tasks.FINAL_TASK_STATUSES | {"blocked"}
    facts = (
        "objective", "status", "missing_capabilities", "missing_connections", "artifact_ids",
        "final_artifact_id", "workflow_id", "review_attempts", "cost_usd", "error",
    )  # fmt: skip

    @property
    def review(self) -> ReviewView | None:
        """The last verdict, the reviewer's or a person's."""
        return None if self.record.review is None else ReviewView(self.record.review)

    @property
    def final_artifact_id(self) -> str:
        """What the task delivers; empty until its review has passed."""
        return self.record.final_artifact_id or ""

    @property
    def workflow_id(self) -> str:
        """The workflow that was run last; empty until there is one."""
        return self.record.workflow_id or ""

    def _html(self) -> str:
        review = self.review
        return super()._html() + ("" if review is None else review._html())

    async def _follow(self, event: Event, shown: Progress) -> None:
        """While it executes, show the workflow's nodes."""
        workflow_id = event.data.get("workflow_id")
        if event.type != "task.executing" or not isinstance(workflow_id, str):
            return
        below = AsyncWorkflowRun(
            self._http, workflows.Workflow(id=workflow_id, name="", created_at=event.at)
        )
        after, over = 0, False
        while not over:
            found = await below.events(after, _wire.LONG_POLL_S)
            for one in found:
                after, over = one.n, one.terminal
                if one.type.startswith("node."):
                    shown.add(one)


class AsyncAgent(AsyncHandle[agents.Agent]):
    """An agent: an objective to fill in, under a name."""

    kind, area, model = "Agent", "agents", agents.Agent

    @property
    def name(self) -> str:
        """`name@version`, which names it in `runs.create`."""
        return f"{self.record.name}@{self.record.version}"

    @property
    def parameters(self) -> list[str]:
        """What a run has to be given, each a text."""
        return self.record.parameters

    async def run(self, **parameters: str) -> AsyncRun:
        """Run it with its parameters filled in; the run is under way when this returns.

        Raises:
            RequestError: `INVALID_REQUEST` for a parameter that is missing, `CREDENTIALS_MISSING`.
        """
        body = _wire.run_body(self.name, parameters, None, {}, "agent")
        envelope = await self._http.call("POST", "/runs", json=body)
        return AsyncRun(self._http, _wire.data_of(envelope, runs.Run))


class AsyncPlan(Drawn, AsyncHandle[plans.Plan]):
    """A plan."""

    kind, area, model = "Plan", "plans", plans.Plan
    planned = True

    def _rows(self) -> list[plans.PlanNode]:
        return self.record.nodes

    def _title(self) -> str:
        return self.record.objective

    def _nodes(self) -> list[workflows.Node]:
        return planned_nodes([node.model_dump() for node in self.record.nodes])


class _Infrastructure(AsyncHandle[S]):
    """What is kept at a GPU cloud."""

    @property
    def status(self) -> str:
        """`creating`, `ready`, `failed`, `deleting` or `deleted`."""
        return self.record.status

    @property
    def error(self) -> ErrorInfo | None:
        """What went wrong, if anything did."""
        return self.record.error


class AsyncEndpoint(_Infrastructure[endpoints.Endpoint]):
    """A serverless endpoint."""

    kind, area, model = "Endpoint", "endpoints", endpoints.Endpoint


class AsyncCompute(_Infrastructure[compute.Compute]):
    """A GPU pod."""

    kind, area, model = "Compute", "compute", compute.Compute


class AsyncStorage(_Infrastructure[storage.Storage]):
    """A network volume."""

    kind, area, model = "Storage", "storage", storage.Storage


class AsyncTemplate(_Infrastructure[templates.Template]):
    """A template."""

    kind, area, model = "Template", "templates", templates.Template


class AsyncConnection(AsyncHandle[connections.Connection]):
    """A provider connection."""

    kind, area, model = "Connection", "providers/connections", connections.Connection


class AsyncCapability(AsyncHandle[capabilities.Capability]):
    """A capability."""

    kind, area, model = "Capability", "capabilities", capabilities.Capability

    @property
    def title(self) -> str:
        """Its human label."""
        return self.record.title

    def _html(self) -> str:
        row = flat(self.record)
        names = ("title", "description", "status", "default_provider", "accepts", "yields", "input")
        return html.facts(f"{self.id}@{self.record.version}", {n: row[n] for n in names})


class AsyncArtifact(AsyncHandle[artifacts.Artifact]):
    """An artifact; what is small enough is kept once read, and shows itself."""

    kind, area, model = "Artifact", "artifacts", artifacts.Artifact
    _kept: bytes | None = None

    async def content(self) -> bytes:
        """Its bytes."""
        if self._kept is not None:
            return self._kept
        data = (await self._http.send("GET", f"{self.path}/content")).content
        if len(data) <= SHOWN_BYTES:
            self._kept = data
        return data

    async def lineage(self) -> LineageView:
        """The jobs and artifacts it came from."""
        envelope = await self._http.call("GET", f"{self.path}/lineage")
        return LineageView(_wire.data_of(envelope, artifacts.Lineage))

    async def delete(self) -> Self:
        """Delete it with its bytes."""
        envelope = await self._http.call("DELETE", self.path)
        self.record, self._kept = _wire.data_of(envelope, self.model), None
        return self

    async def text(self) -> str:
        """Its bytes as text."""
        return (await self.content()).decode("utf-8")

    async def save(self, path: str | Path) -> Path:
        """Write it to a file, whole or not at all."""
        return _wire.write(path, await self.content())

    def _repr_mimebundle_(self, **_: object) -> Any:
        if self._kept is None:
            return super()._repr_mimebundle_()
        plain = {"text/plain": repr(self)}
        return {**plain, **media.shown(self.record.media_type, self._kept, self.record.filename)}
