"""Events of runs, jobs, workflows and tasks, and waiting for them."""

import asyncio
import json
from collections.abc import Sequence

from toolkit.contract.errors import not_found
from toolkit.contract.events import Event
from toolkit.contract.jobs import FINAL_STATUSES
from toolkit.contract.tasks import FINAL_TASK_STATUSES
from toolkit.engine.core import Core

KINDS = {"run": "roots", "job": "jobs", "wfl": "workflows", "tsk": "tasks"}


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
        kind = resource_id.partition("_")[0]
        row = await self._core.store.get(KINDS[kind], resource_id) if kind in KINDS else None
        if row is None or row["account_id"] != account_id:
            raise not_found("resource", resource_id)
        events = await self._read(kind, resource_id, after)
        if not events and wait_s > 0 and not await self._over(row, kind, after):
            # A job's events are written with those of what it is part of.
            woken_by = str(row["run_id"] or row["workflow_id"]) if kind == "job" else resource_id
            await self._wait(woken_by, kind, resource_id, after, wait_s)
            events = await self._read(kind, resource_id, after)
        return list(events)

    async def wait(self, account_id: str, resource_id: str, seconds: float) -> None:
        """Wait until a run, workflow or task has ended, or the time is up."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        after = 0
        while (left := until - loop.time()) > 0:
            events = await self.list(account_id, resource_id, after=after, wait_s=left)
            if not events or events[-1].terminal:
                return
            after = events[-1].n

    async def _read(self, kind: str, resource_id: str, after: int) -> Sequence[Event]:
        store = self._core.store
        if kind == "job":
            rows = await store.job_events(resource_id, after=after)
        else:
            rows = await store.events(resource_id, after=after)
        events = []
        for row in rows:
            data = row["data"]
            event = Event(
                n=row["n"],
                resource_id=resource_id,
                type=str(row["type"]),
                at=row["at"],
                data=json.loads(data) if isinstance(data, str) else data,
            )
            if kind == "job":
                event.type = "job." + event.type.partition(".")[2]
                event.data["id"] = resource_id
            events.append(event)
        return events

    async def _over(self, row: dict[str, object], kind: str, after: int) -> bool:
        """Whether nothing comes any more: asked after the terminal event, do not hold."""
        if after == 0:
            return False
        if kind == "run":
            rows = await self._core.store.find("jobs", run_id=row["id"])
            return bool(rows) and rows[0]["status"] in FINAL_STATUSES
        return row["status"] in (FINAL_TASK_STATUSES if kind == "tsk" else FINAL_STATUSES)

    async def _wait(
        self, woken_by: str, kind: str, resource_id: str, after: int, wait_s: float
    ) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_s
        if kind != "job":
            await self._core.store.wait_for_event(resource_id, after=after, timeout_s=wait_s)
            return
        while (left := until - loop.time()) > 0:
            if await self._core.store.job_events(resource_id, after=after, limit=1):
                return
            seen = await self._core.store.events(woken_by, after=0, limit=100_000)
            last = seen[-1]["n"] if seen else 0
            await self._core.store.wait_for_event(woken_by, after=int(str(last)), timeout_s=left)
