"""Reads of a database of PostgreSQL, on the event loop, by a few connections."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Final, TypeAlias

import psycopg
from psycopg.adapt import Buffer, Loader
from psycopg.rows import TupleRow
from psycopg.types.numeric import Int8Dumper

from toolkit.store.dialects import DatabaseKind
from toolkit.store.postgres.connections import (
    PREPARED_STATEMENTS,
    build_parameters,
    make_postgres_error,
    make_unreachable_error,
)
from toolkit.store.read_connection import Row

# Reads take turns on them; an idle connection costs the server some memory.
MAX_CONNECTIONS: Final = 8
_NAMED = re.compile(r"(?<![:\w]):([a-z_]\w*)")
_Connection: TypeAlias = psycopg.AsyncConnection[TupleRow]


class PostgresReadConnection:
    """A pool of connections to read by, opened as they are needed, each anew after it was cut.

    Args:
        url: the database's address.
        application_name: what the server's lists of sessions show.
    """

    kind: DatabaseKind = "postgresql"

    def __init__(self, url: str, application_name: str) -> None:
        self._parameters = build_parameters(url, application_name)
        self._idle: list[_Connection] = []
        self._turns = asyncio.Semaphore(MAX_CONNECTIONS)
        self._is_closed = False

    async def fetch_rows(self, sql: str, given: Mapping[str, object]) -> list[Row]:
        """Fetch all rows, each by the names of its columns."""
        names, found = await self._fetch(sql, given)
        return [dict(zip(names, row, strict=True)) for row in found]

    async def fetch_values(self, sql: str, given: Mapping[str, object]) -> tuple[Any, ...] | None:
        """Fetch the values of the first row, if there is one."""
        _, found = await self._fetch(sql, given)
        return found[0] if found else None

    async def close(self) -> None:
        """Close all connections; those in use, as soon as they are not."""
        self._is_closed = True
        await self._close_idle()

    async def _fetch(
        self, sql: str, given: Mapping[str, object]
    ) -> tuple[Sequence[str], list[tuple[Any, ...]]]:
        """Fetch the names of the columns, and all rows; once more if the connection was cut."""
        async with self._turns:
            try:
                return await self._try_fetch(sql, given)
            except psycopg.OperationalError:
                # The server was restarted, or is another one by now: so it is with all of them.
                await self._close_idle()
            except psycopg.Error as error:
                raise make_postgres_error(error) from error
            try:
                return await self._try_fetch(sql, given)
            except psycopg.OperationalError as error:
                raise make_unreachable_error() from error
            except psycopg.Error as error:
                raise make_postgres_error(error) from error

    async def _try_fetch(
        self, sql: str, given: Mapping[str, object]
    ) -> tuple[Sequence[str], list[tuple[Any, ...]]]:
        connection = self._idle.pop() if self._idle else await self._open_connection()
        is_whole = False
        try:
            cursor = await connection.execute(spell_parameters(sql).encode(), given)
            found = await cursor.fetchall()
            is_whole = True
        except psycopg.OperationalError:
            raise
        except psycopg.Error:
            is_whole = not connection.closed
            raise
        finally:
            # One whose read was given up in the middle still has an answer to come.
            if is_whole and not self._is_closed:
                self._idle.append(connection)
            else:
                await connection.close()
        return [column.name for column in cursor.description or ()], found

    async def _open_connection(self) -> _Connection:
        return await open_async_connection(self._parameters)

    async def _close_idle(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            with suppress(psycopg.Error):
                await connection.close()


async def open_async_connection(parameters: Mapping[str, Any]) -> _Connection:
    """Open a connection whose every statement is a transaction of its own.

    Args:
        parameters: as `build_parameters` makes them.

    Raises:
        psycopg.Error: it cannot be opened.
    """
    connection = await psycopg.AsyncConnection.connect(**parameters, autocommit=True)
    connection.prepare_threshold = 0
    connection.prepared_max = PREPARED_STATEMENTS
    # Of one size, so that a statement does not have to be prepared for each.
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_loader("numeric", _SumLoader)
    return connection


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


class _SumLoader(Loader):
    """A loader of sums, which are whole numbers as the columns are that are summed up."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data).decode()
        return int(text) if text.lstrip("-").isdigit() else float(text)
