"""Events of runs, jobs, workflows and tasks, and waiting for them."""

from collections.abc import Sequence

from toolkit.contract.errors import not_found
from toolkit.contract.events import TERMINAL_EVENTS, Event
from toolkit.contract.jobs import FINAL_STATUSES
from toolkit.contract.tasks import FINAL_TASK_STATUSES
from toolkit.engine.core import Core

# Where each kind is, and the column that says whether it is over.
KINDS = {
    "run": ("roots", "open"),
    "job": ("jobs", "status"),
    "wfl": ("workflows", "status"),
    "tsk": ("tasks", "status"),
}
GATHER_S = 0.02


class Events:
    """`/v1/{runs,jobs,workflows,tasks}/{id}/events`."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def list(
        self, account_id: str, resource_id: str, *, after: int, wait_s: float
    ) -> list[Event]:
        """The events numbered above `after`, waiting up to `wait_s` seconds while there is none.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        kind, row = await self._row(account_id, resource_id)
        events = await self._read(kind, resource_id, after)
        if not events and wait_s > 0 and not await self._over(row, kind):
            await self._core.store.wait_for_event(resource_id, after=after, timeout_s=wait_s)
            # What happens at once is told at once, but one event a request would be a flood.
            await self._core.store.wait_for_event(
                resource_id, after=after, timeout_s=GATHER_S, types=TERMINAL_EVENTS
            )
            events = await self._read(kind, resource_id, after)
        return list(events)

    async def wait(self, account_id: str, resource_id: str, seconds: float) -> None:
        """Wait until a run, workflow or task has ended, or the time is up.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        kind, row = await self._row(account_id, resource_id)
        if not await self._over(row, kind):
            await self._core.store.wait_for_event(
                resource_id, after=0, timeout_s=seconds, types=TERMINAL_EVENTS
            )

    async def told(self, account_id: str, resource_id: str, after: int) -> bool:
        """Whether no event will come after a number: it has ended, and all has been told."""
        kind, row = await self._row(account_id, resource_id)
        return await self._over(row, kind) and not await self._read(kind, resource_id, after)

    async def _read(self, kind: str, resource_id: str, after: int) -> Sequence[Event]:
        rows = await self._core.store.events(resource_id, after=after)
        events = []
        for row in rows:
            event = Event(
                n=row["n"],
                resource_id=resource_id,
                type=str(row["type"]),
                at=row["at"],
                data=row["data"],
            )
            if kind == "job":
                event.type = "job." + event.type.partition(".")[2]
                event.data["id"] = resource_id
            events.append(event)
        return events

    async def _row(self, account_id: str, resource_id: str) -> tuple[str, dict[str, object]]:
        kind = resource_id.partition("_")[0]
        row = None
        if kind in KINDS:
            table, over = KINDS[kind]
            row = await self._core.store.get(table, resource_id, "account_id", over)
        if row is None or row["account_id"] != account_id:
            raise not_found("resource", resource_id)
        return kind, row

    async def _over(self, row: dict[str, object], kind: str) -> bool:
        """Whether nothing comes any more."""
        if kind == "run":
            return not row["open"]
        return row["status"] in (FINAL_TASK_STATUSES if kind == "tsk" else FINAL_STATUSES)
