"""Reads of a database of PostgreSQL, on the event loop, by a few connections."""

import asyncio
import re
import socket
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias, cast

import psycopg
from psycopg.rows import TupleRow

from toolkit.store.dialects import DatabaseKind
from toolkit.store.postgres.connections import (
    build_parameters,
    build_statement_timeout,
    make_postgres_error,
    make_unreachable_error,
    prepare_at_once,
)
from toolkit.store.read_connection import Row
from toolkit.store.writing.write_connection import DatabaseUnreachable

# Reads take turns on them; an idle connection costs the server some memory.
MAX_CONNECTIONS: Final = 8
# A server that is stopped in the middle answers nothing, though its machine does.
READ_TIMEOUT_S: Final = 15.0
CLOSE_TIMEOUT_S: Final = 1.0
_ENDS_SESSION: Final = ("FATAL", "PANIC")
_NAMED = re.compile(r"(?<![:\w]):([a-z_]\w*)")
AsyncConnection: TypeAlias = psycopg.AsyncConnection[TupleRow]


@dataclass(frozen=True, eq=False, slots=True)
class PendingRead:
    """A read that waits for its answer.

    Attributes:
        sql: statement in psycopg's parameter style.
        answer: names of the columns, and all rows; cancelled if nobody waits any more.
    """

    sql: str
    parameters: Mapping[str, object]
    answer: "asyncio.Future[tuple[Sequence[str], list[tuple[Any, ...]]]]"


class PostgresReadConnection:
    """A pool of read connections, opened as needed, each reopened after it was cut.

    Reads are made by tasks of the pool, and not by the callers: a request that is cancelled in
    the middle leaves no connection with a pending answer, and waits for nothing.
    """

    kind: DatabaseKind = "postgresql"

    def __init__(self, url: str, application_name: str, *, is_read_only: bool = False) -> None:
        self._parameters = build_parameters(url, application_name, is_read_only=is_read_only)
        self._queue: deque[PendingRead] = deque()
        self._idle: list[AsyncConnection] = []
        self._busy: set[AsyncConnection] = set()
        self._working: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def fetch_rows(self, sql: str, parameters: Mapping[str, object]) -> list[Row]:
        """Fetch all rows, each by the names of its columns."""
        names, rows = await self._fetch(sql, parameters)
        return [dict(zip(names, row, strict=True)) for row in rows]

    async def fetch_values(
        self, sql: str, parameters: Mapping[str, object]
    ) -> tuple[Any, ...] | None:
        """Fetch the values of the first row, or None if there are no rows."""
        _, rows = await self._fetch(sql, parameters)
        return rows[0] if rows else None

    async def close(self) -> None:
        """Close all connections, and refuse the pending reads."""
        self._is_closed = True
        for connection in self._busy:
            cut_connection(connection)
        if self._working:
            await asyncio.wait(self._working)
        await self._close_idle()

    def _fetch(
        self, sql: str, parameters: Mapping[str, object]
    ) -> "asyncio.Future[tuple[Sequence[str], list[tuple[Any, ...]]]]":
        """Fetch the names of the columns, and all rows."""
        loop = asyncio.get_running_loop()
        read = PendingRead(spell_parameters(sql), parameters, loop.create_future())
        if any(isinstance(value, str) and "\0" in value for value in parameters.values()):
            # No text in the database has a NUL, so nothing can match.
            read.answer.set_result(((), []))
            return read.answer
        self._queue.append(read)
        if len(self._working) < MAX_CONNECTIONS:
            worker = loop.create_task(self._work())
            self._working.add(worker)
        return read.answer

    async def _work(self) -> None:
        """Make the reads of the queue, one after the other, until there are none."""
        try:
            while self._queue:
                read = self._queue.popleft()
                if not read.answer.done():
                    await self._answer(read)
        finally:
            # In the same step that saw the queue empty: later reads must not rely on this task.
            self._working.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    async def _answer(self, read: PendingRead) -> None:
        try:
            answer = await self._make(read)
        except TimeoutError:
            _refuse(read, make_unreachable_error())
        except DatabaseUnreachable:
            # All waiting reads would fail for the same reason, each of them later.
            unread, self._queue = [read, *self._queue], deque()
            for pending in unread:
                _refuse(pending, make_unreachable_error())
            await self._close_idle()
        except psycopg.Error as error:
            _refuse(read, make_postgres_error(error))
        except Exception as error:
            _refuse(read, error)
        else:
            if not read.answer.done():
                read.answer.set_result(answer)

    async def _make(self, read: PendingRead) -> tuple[Sequence[str], list[tuple[Any, ...]]]:
        """Make a read, once more if its connection was cut."""
        if self._is_closed:
            raise DatabaseUnreachable
        with suppress(DatabaseUnreachable):
            if self._idle:
                return await self._run(self._idle.pop(), read)
        # The server was restarted or replaced, so all idle connections are broken.
        await self._close_idle()
        try:
            connection = await open_async_connection(self._parameters)
        except psycopg.Error as error:
            raise DatabaseUnreachable from error
        return await self._run(connection, read, is_new=True)

    async def _run(
        self, connection: AsyncConnection, read: PendingRead, *, is_new: bool = False
    ) -> tuple[Sequence[str], list[tuple[Any, ...]]]:
        self._busy.add(connection)
        loop = asyncio.get_running_loop()
        # psycopg's own cancellation asks the server, which may be the part that does not answer.
        limit = loop.call_later(READ_TIMEOUT_S, cut_connection, connection)
        is_whole = False
        try:
            if is_new:
                statement = build_statement_timeout(READ_TIMEOUT_S)
                await connection.execute(statement, prepare=False)
            cursor = await connection.execute(read.sql.encode(), read.parameters)
            rows = await cursor.fetchall()
            is_whole = True
        except psycopg.Error as error:
            if loop.time() >= limit.when():
                raise TimeoutError from error
            if connection.closed or error.diag.severity_nonlocalized in _ENDS_SESSION:
                raise DatabaseUnreachable from error
            is_whole = True
            raise
        finally:
            limit.cancel()
            self._busy.discard(connection)
            if is_whole and not self._is_closed:
                self._idle.append(connection)
            else:
                await connection.close()
        return [column.name for column in cursor.description or ()], rows

    async def _close_idle(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            with suppress(psycopg.Error):
                await connection.close()


def _refuse(read: PendingRead, error: Exception) -> None:
    if not read.answer.done():
        read.answer.set_exception(error)
        read.answer.exception()  # marks it as retrieved, as the caller may be gone


def cut_connection(connection: AsyncConnection) -> None:
    """End a connection's socket, so that no caller waits for an answer on it any longer."""
    with suppress(psycopg.Error, OSError):
        shared = socket.socket(fileno=connection.fileno())
        try:
            shared.shutdown(socket.SHUT_RDWR)
        finally:
            shared.detach()  # it is still the connection's


async def open_async_connection(parameters: Mapping[str, Any]) -> AsyncConnection:
    """Open a connection whose every statement is a transaction of its own.

    Raises:
        psycopg.Error: it cannot be opened.
    """
    opening = asyncio.ensure_future(psycopg.AsyncConnection.connect(**parameters, autocommit=True))
    try:
        connection = await asyncio.shield(opening)
    except asyncio.CancelledError:
        await _close_soon(opening)
        raise
    prepare_at_once(connection)
    return connection


async def _close_soon(opening: "asyncio.Task[AsyncConnection]") -> None:
    """Close a connection once it is open; give it up if nobody answers within `CLOSE_TIMEOUT_S`.

    If it were cut off halfway, its session would stay at the server for a minute. The server could
    not be stopped, nor the database deleted, until then.
    """
    await asyncio.wait([opening], timeout=CLOSE_TIMEOUT_S)
    if opening.cancel():  # nobody answers
        await asyncio.wait([opening])
    if not opening.cancelled() and opening.exception() is None:
        await opening.result().close()


@cache
def spell_parameters(sql: str) -> str:
    """Spell the named parameters of a statement as psycopg does.

    >>> spell_parameters("SELECT 1 FROM roots WHERE id LIKE 'run%' AND id < :before")
    "SELECT 1 FROM roots WHERE id LIKE 'run%%' AND id < %(before)s"
    >>> spell_parameters("SELECT doc::jsonb FROM jobs WHERE id = %(id)s::VARCHAR")
    'SELECT doc::jsonb FROM jobs WHERE id = %(id)s::VARCHAR'
    """
    if "%(" in sql:  # SQLAlchemy has spelled them
        return sql
    return _NAMED.sub(r"%(\1)s", sql.replace("%", "%%"))
