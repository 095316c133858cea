"""Events of runs, jobs, workflows and tasks, and waiting for them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.contract.errors import ErrorCode, RequestError, build_not_found
from toolkit.contract.events import TERMINAL_EVENTS, Event
from toolkit.contract.jobs import FINAL_STATUSES
from toolkit.contract.tasks import FINAL_TASK_STATUSES
from toolkit.engine.context import EngineContext
from toolkit.engine.request_context import RequestContext
from toolkit.store import ReadOnlyStore, ReadScope

# The table of each kind of resource, by the prefix of its id.
TABLES_BY_PREFIX = {
    "run": "jobs",
    "job": "jobs",
    "map": "maps",
    "wfl": "workflows",
    "tsk": "tasks",
}
# Last event of work that continues only if its caller acts, or not at all.
SETTLING_EVENTS = TERMINAL_EVENTS | {"task.blocked"}
BATCH_WINDOW_S = 0.02
ABANDONED_MESSAGE = (
    "`{}` is unfinished and no process continues it, because the data directory is a copy or is"
    " only read: open it with `toolkit serve --take-up`, or take_up=True."
)


class Events:
    """The operations of `/v1/{runs,jobs,maps,workflows,tasks}/{id}/events`."""

    def __init__(self, core: EngineContext) -> None:
        self._core = core

    async def list(
        self, context: RequestContext, resource_id: str, *, after: int, wait_s: float
    ) -> list[Event]:
        """List the events numbered above `after`, by a long poll of up to `wait_s` seconds.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` if no process will continue the work.
        """
        store, deadline = self._core.store, time.monotonic() + wait_s
        while True:
            source = await self._find_source(context.scope, resource_id)
            # Read before the events, so that the wait misses no event that arrives meanwhile.
            last = await store.get_last_event_number(source.id)
            events = await self._read_events(source, after)
            remaining_s = deadline - time.monotonic()
            if events or source.is_over or remaining_s <= 0:
                return list(events)
            await self._check_not_abandoned(resource_id)
            # A caller that names a future number still learns when the resource ends.
            await store.wait_for_event(source.id, after=last, timeout_s=remaining_s)
            # Wait a moment for more: one event a response would flood the caller with requests.
            await store.wait_for_event(
                source.id, after=last, timeout_s=BATCH_WINDOW_S, types=TERMINAL_EVENTS
            )

    async def wait(self, context: RequestContext, resource_id: str, seconds: float) -> None:
        """Wait until a run, job, workflow or task has ended or is blocked, or until the timeout.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` if no process will continue the work.
        """
        source = await self._find_source(context.scope, resource_id)
        if not source.is_over:
            await self._check_not_abandoned(resource_id)
            await self._core.store.wait_for_event(
                source.id, after=0, timeout_s=seconds, types=SETTLING_EVENTS
            )

    async def is_exhausted(self, context: RequestContext, resource_id: str, after: int) -> bool:
        """Check whether no event will follow a number: the resource has ended, and all are read."""
        source = await self._find_source(context.scope, resource_id)
        return source.is_over and not await self._read_events(source, after)

    async def _check_not_abandoned(self, resource_id: str) -> None:
        """Refuse to wait for work that no process continues: in a copy or a read-only store."""
        store = self._core.store
        if not store.is_copy and not isinstance(store, ReadOnlyStore):
            return
        root_id, table = resource_id, TABLES_BY_PREFIX[resource_id.partition("_")[0]]
        if not resource_id.startswith(("run_", "map_", "tsk_")):
            row = await store.get_row(table, resource_id, "root_id")
            root_id = resource_id if row is None else str(row["root_id"])
        if await store.leases.is_abandoned(root_id):
            raise RequestError(ErrorCode.CONFLICT, ABANDONED_MESSAGE.format(resource_id))

    async def _read_events(self, source: "_EventSource", after: int) -> Sequence[Event]:
        rows = await self._core.store.list_events(source.id, after=after)
        events = []
        for row in rows:
            event = Event(
                n=row["n"],
                resource_id=source.resource_id,
                type=str(row["type"]),
                at=row["at"],
                data=row["data"],
            )
            if source.kind == "job":
                event.type = "job." + event.type.partition(".")[2]
                event.data["id"] = source.resource_id
            if source.kind == "agent":
                _convert_to_run_event(event)
            events.append(event)
        return events

    async def _find_source(self, scope: ReadScope, resource_id: str) -> "_EventSource":
        """Find where the events of a resource are stored, and whether more will come.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        kind = resource_id.partition("_")[0]
        if kind not in TABLES_BY_PREFIX:
            raise build_not_found("resource", resource_id)
        # A state and its event are one write; the end of the work item is written later.
        if kind == "run":
            jobs = await self._core.records.jobs.find_rows(scope, run_id=resource_id)
            row = next(iter(jobs), None)
        else:
            row = await self._core.store.find_owned_row(
                TABLES_BY_PREFIX[kind], scope, resource_id, "status"
            )
        if row is not None:
            is_over = row["status"] in (FINAL_TASK_STATUSES if kind == "tsk" else FINAL_STATUSES)
            return _EventSource(resource_id, resource_id, kind, is_over)
        if kind == "run":
            for task in await self._core.records.tasks.find_rows(scope, run_id=resource_id):
                is_over = task["status"] in FINAL_TASK_STATUSES
                return _EventSource(resource_id, str(task["id"]), "agent", is_over)
        raise build_not_found("resource", resource_id)


@dataclass(frozen=True, slots=True)
class _EventSource:
    """The stored events of a resource, and the resource they are reported for.

    Attributes:
        resource_id: id of the requested resource.
        id: id that the events are stored under: for an agent's run, the id of its task.
        is_over: whether no more events will come.
    """

    resource_id: str
    id: str
    kind: str
    is_over: bool


def _convert_to_run_event(event: Event) -> None:
    state = event.type.partition(".")[2]
    error = event.data.get("error")
    if isinstance(error, dict) and error.get("code") == ErrorCode.CANCELLED.name:
        state = "cancelled"
    event.type = f"run.{state if state in FINAL_STATUSES else 'running'}"
    event.data = {**event.data, "id": event.resource_id, "task_id": event.data["id"]}
    if state not in FINAL_STATUSES:
        event.data["status_detail"] = state
