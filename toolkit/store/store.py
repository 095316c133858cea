"""The store itself: opened once per engine, used from that engine's event loop."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from sqlalchemy import Select, or_, select
from sqlalchemy import Update as UpdateStatement

from toolkit.contract.base import now, rfc3339
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.blobs import Blobs
from toolkit.store.changes import Change, Emit, Insert, Lease, Update
from toolkit.store.checkpoint import Checkpoints
from toolkit.store.database import connect, translated
from toolkit.store.owner import Owner
from toolkit.store.schema import migrate
from toolkit.store.tables import events as events_table
from toolkit.store.tables import metadata, roots
from toolkit.store.writer import Writer

POLL_S = 0.2
Row = dict[str, Any]


@dataclass(frozen=True, eq=False, slots=True)
class Waiter:
    """Somebody who waits for events of some types, or of any."""

    types: frozenset[str] | None
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class Store:
    """Rows, events, leases and artifacts' bytes of one data directory.

    Several processes may have the same directory open; each root is worked on by the one that
    holds its lease.
    """

    def __init__(
        self, data_dir: Path, durability: str, artifact_url: str | None, lease_s: float
    ) -> None:
        self._engine = connect(data_dir / "state.db", durability)
        self._lease_s = lease_s
        with translated():
            self._write_connection = self._engine.connect()
            migrate(self._write_connection)
            self._read_connection = self._engine.connect()
        self._owner = Owner(data_dir)
        self._checkpoints = Checkpoints(data_dir / "state.db")
        self._blobs = Blobs(
            artifact_url or str(data_dir / "artifacts"), synced=durability == "full"
        )
        # The writer's statements are SQLAlchemy's; running them by it costs more than SQLite does.
        driver: Any = self._write_connection.connection.dbapi_connection
        self._writer = Writer(
            driver,
            self._owner.id,
            always_in_thread=durability == "full",
            committed=self._committed,
        )
        self._waiters: dict[str, set[Waiter]] = {}

    @classmethod
    async def open(
        cls,
        data_dir: Path,
        *,
        durability: Literal["normal", "full"] = "normal",
        artifact_url: str | None = None,
        lease_s: float = 15.0,
    ) -> Self:
        """Open a data directory, making and migrating it as needed.

        Args:
            data_dir: where `state.db` is.
            durability: `full` makes every commit survive a power cut as well as a crash.
            artifact_url: where artifacts' bytes go, as fsspec spells it; `data_dir` by default.
            lease_s: how long a lease holds without being renewed, in seconds.

        Raises:
            ServiceError: `UNAVAILABLE` when it cannot be used.
        """
        try:
            data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)  # noqa: ASYNC240 - once
        except OSError as error:
            raise ServiceError(
                ErrorCode.UNAVAILABLE, f"The data directory cannot be made: {error.strerror}."
            ) from error
        return cls(data_dir, durability, artifact_url, lease_s)

    async def close(self) -> None:
        """Write what was submitted, and let go of everything."""
        await self._writer.drain()
        with translated():
            self._checkpoints.close()
            self._write_connection.close()
            self._read_connection.close()
            self._engine.dispose()
        self._owner.close()

    def write(
        self, changes: Sequence[Change], *, lease: Lease | None = None, eager: bool = True
    ) -> "asyncio.Future[None]":
        """Have changes written, all or nothing, in the order of the calls.

        Args:
            changes: what to write, in one transaction.
            lease: the lease that it is written under.
            eager: write it at once; otherwise soon, together with what comes next.

        Returns:
            a future that is done when they are durable; it raises `Conflict`, `LeaseLost` or
            `ServiceError`.
        """
        return self._writer.submit(changes, lease, eager=eager)

    def _committed(self, events: Sequence[Emit]) -> None:
        if self._waiters:
            for event in events:
                for key in (event.resource_id, event.job_id):
                    for waiter in self._waiters.get(key or "", ()):
                        if waiter.types is None or event.type in waiter.types:
                            waiter.woken.set()
        self._checkpoints.consider()

    def _rows(self, statement: "Select[Any]") -> list[Row]:
        with translated():
            found = self._read_connection.execute(statement).mappings().all()
            self._read_connection.rollback()
        return [dict(row) for row in found]

    async def get(self, table: str, row_id: str, *columns: str) -> Row | None:
        """One row by its id: all of it, or some columns."""
        of = metadata.tables[table]
        wanted: list[Any] = [of.c[column] for column in columns] or [of]
        rows = self._rows(select(*wanted).where(of.c.id == row_id))
        return rows[0] if rows else None

    async def find(self, table: str, **equals: object) -> list[Row]:
        """All rows whose columns have these values, oldest first."""
        of = metadata.tables[table]
        wanted = [of.c[column] == value for column, value in equals.items()]
        return self._rows(select(of).where(*wanted).order_by(of.c.id))

    async def page(
        self,
        table: str,
        account_id: str,
        *,
        limit: int,
        before: str | None = None,
        **equals: object,
    ) -> list[Row]:
        """An account's rows, newest first, from below the id `before`."""
        of = metadata.tables[table]
        wanted = [of.c.account_id == account_id]
        wanted += [of.c[column] == value for column, value in equals.items()]
        if before is not None:
            wanted.append(of.c.id < before)
        return self._rows(select(of).where(*wanted).order_by(of.c.id.desc()).limit(limit))

    async def events(self, resource_id: str, *, after: int, limit: int = 1000) -> list[Row]:
        """The events of a resource numbered above `after`, in order."""
        t = events_table
        wanted = (t.c.resource_id == resource_id, t.c.n > after)
        return self._read_events(select(t).where(*wanted).order_by(t.c.n).limit(limit))

    async def job_events(self, job_id: str, *, after: int, limit: int = 1000) -> list[Row]:
        """The same events as a job numbers them."""
        t = events_table
        wanted = (t.c.job_id == job_id, t.c.job_n > after)
        rows = self._read_events(select(t).where(*wanted).order_by(t.c.job_n).limit(limit))
        return [{**row, "n": row["job_n"], "resource_id": job_id} for row in rows]

    def _read_events(self, statement: "Select[Any]") -> list[Row]:
        return [{**row, "data": json.loads(row["data"])} for row in self._rows(statement)]

    async def wait_for_event(
        self,
        resource_id: str,
        *,
        after: int,
        timeout_s: float,
        types: frozenset[str] | None = None,
    ) -> None:
        """Return when a resource, or a job, may have an event above `after`, or the time is up.

        Args:
            resource_id: whose events.
            after: the number of the last event seen.
            timeout_s: the longest to wait, in seconds.
            types: wait for events of these types only; any, by default.
        """
        waiter = Waiter(types)
        waiters = self._waiters.setdefault(resource_id, set())
        waiters.add(waiter)
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s
        version = None
        try:
            while (left := until - loop.time()) > 0 and not waiter.woken.is_set():
                # Another process may be the one that writes it.
                seen, version = version, self._data_version()
                if seen != version and await self._has_event(resource_id, after, types):
                    return
                try:
                    await asyncio.wait_for(waiter.woken.wait(), min(left, POLL_S))
                except TimeoutError:
                    continue
        finally:
            waiters.discard(waiter)
            if not waiters:
                self._waiters.pop(resource_id, None)

    async def _has_event(self, resource_id: str, after: int, types: frozenset[str] | None) -> bool:
        read = self.job_events if resource_id.startswith("job_") else self.events
        if types is None:
            return bool(await read(resource_id, after=after, limit=1))
        t = events_table
        last = select(t).where(t.c.resource_id == resource_id).order_by(t.c.n.desc()).limit(1)
        rows = self._read_events(last)
        return bool(rows) and rows[0]["n"] > after and rows[0]["type"] in types

    def _data_version(self) -> int:
        with translated():
            row = self._read_connection.exec_driver_sql("PRAGMA data_version").first()
            self._read_connection.rollback()
        return int(row[0]) if row else 0

    def new_root(self, root_id: str, kind: str, account_id: str) -> tuple[Insert, Lease]:
        """A root that this process works on from the first; put the insert in its first write."""
        row: dict[str, object] = {
            "id": root_id,
            "account_id": account_id,
            "kind": kind,
            "open": True,
            "cancel_requested": False,
            "owner": self._owner.id,
            "lease_until": time.time() + self._lease_s,
            "fence": 1,
            "created_at": rfc3339(now()),
        }
        return Insert("roots", row), Lease(root_id, kind, account_id, 1)

    async def claim(self, limit: int) -> list[Lease]:
        """Take open roots that nobody works on any more, oldest first."""
        candidates = self._rows(
            select(roots)
            .where(
                roots.c.open.is_(True),
                or_(roots.c.owner.is_(None), roots.c.owner != self._owner.id),
            )
            .order_by(roots.c.id)
        )
        free = [row for row in candidates if self._is_free(row)][:limit]
        return [lease for row in free if (lease := await self._take(row)) is not None]

    def _is_free(self, row: Row) -> bool:
        owner = row["owner"]
        return owner is None or row["lease_until"] < time.time() or self._owner.is_dead(owner)

    async def _take(self, row: Row) -> Lease | None:
        """Take a root, unless another process was quicker."""
        fence = int(row["fence"])
        taken = self._change(
            roots.update()
            .where(roots.c.id == row["id"], roots.c.fence == fence)
            .values(
                owner=self._owner.id,
                lease_until=time.time() + self._lease_s,
                fence=fence + 1,
                open=True,
                cancel_requested=row["cancel_requested"] if row["open"] else False,
            )
        )
        self._writer.forget()
        return Lease(row["id"], row["kind"], row["account_id"], fence + 1) if taken else None

    async def reopen(self, root_id: str) -> Lease | None:
        """Take a root that had been closed; none when it is open, or another was quicker."""
        row = await self.get("roots", root_id)
        return None if row is None or row["open"] else await self._take(row)

    async def renew(self) -> None:
        """Keep what this process holds for another while."""
        self._change(
            roots.update()
            .where(roots.c.owner == self._owner.id, roots.c.open.is_(True))
            .values(lease_until=time.time() + self._lease_s)
        )

    async def release(self, lease: Lease, *, done: bool) -> None:
        """Let go of a root; `done` closes it, else the next process takes it up.

        Raises:
            LeaseLost: it was not this process's any more.
        """
        freed = {"owner": None, "open": not done}
        if done:
            await self.write([Update("roots", lease.root_id, freed)], lease=lease, eager=False)
            return
        # Nothing under this lease may be writable any more, yet it has to be let go of.
        self._change(
            roots.update()
            .where(
                roots.c.id == lease.root_id,
                roots.c.owner == self._owner.id,
                roots.c.fence == lease.fence,
            )
            .values(**freed)
        )

    async def request_cancel(self, root_id: str) -> None:
        """Ask whoever works on a root to cancel it."""
        self._change(roots.update().where(roots.c.id == root_id).values(cancel_requested=True))

    async def cancel_requested(self) -> set[str]:
        """The roots that this process works on and that are to be cancelled."""
        asked = select(roots.c.id).where(
            roots.c.owner == self._owner.id,
            roots.c.open.is_(True),
            roots.c.cancel_requested.is_(True),
        )
        return {str(row["id"]) for row in self._rows(asked)}

    def _change(self, statement: UpdateStatement) -> int:
        """Make one small change of leases at once; how many rows it hit."""
        with translated(), self._engine.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            hit = connection.execute(statement).rowcount
            connection.commit()
        return int(hit)

    async def put_blob(self, sha256: str, data: bytes) -> None:
        """Store bytes under their SHA-256."""
        await self._blobs.put(sha256, data)

    async def get_blob(self, sha256: str, start: int = 0, end: int | None = None) -> bytes:
        """Stored bytes from `start` up to but without `end`."""
        return await self._blobs.get(sha256, start, end)
