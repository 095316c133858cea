"""A database of PostgreSQL that is looked at: the server itself refuses every write."""

import asyncio
import secrets
from typing import Final

from toolkit.store.data_dir.owners import LeaseOwner
from toolkit.store.database import ViewedDatabase
from toolkit.store.postgres.clock import PostgresClock
from toolkit.store.postgres.database import SAFETY_POLL_S
from toolkit.store.postgres.mark import is_marked_as_copy
from toolkit.store.postgres.opening import open_existing
from toolkit.store.postgres.reads import PostgresReadConnection

NAME: Final = "toolkit-reader"  # what the server's lists of sessions show


class _PostgresOnlooker(LeaseOwner):
    """An opening of the store that owns nothing; leases alone tell who has gone."""

    def __init__(self) -> None:
        self.id = secrets.token_hex(8)

    def is_stale(self, owner: str) -> bool:  # noqa: ARG002 - an owner's
        return False


async def view_postgres(url: str) -> ViewedDatabase:
    """Open a database of the newest revision for reading.

    Raises:
        ServiceError: `UNAVAILABLE` when it cannot be used, or is of another version.
    """
    is_copy = await asyncio.to_thread(_look_at, url)
    reads = PostgresReadConnection(url, NAME, is_read_only=True)
    clock = PostgresClock(reads)
    return ViewedDatabase(
        reads, clock, _PostgresOnlooker(), is_copy, None, SAFETY_POLL_S, reads.close
    )


def _look_at(url: str) -> bool:
    """See that a database can be read, and tell whether it is a copy."""
    with open_existing(url, newest=True, is_read_only=True) as connection:
        return is_marked_as_copy(connection)
