"""Notices of commits: an engine tells the others whose events it wrote, once they are durable; and
what work it has let go of, as that is committed.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from sqlalchemy import TextClause, text

EVENT_CHANNEL: Final = "toolkit_events"
WORK_CHANNEL: Final = "toolkit_work"
NOTIFY_SQL: Final = (
    f"SELECT pg_notify('{EVENT_CHANNEL}', payload) FROM unnest(%s::text[]) AS payload"  # noqa: S608 - our names
)
MAX_PAYLOAD_BYTES: Final = 7_900  # of PostgreSQL's 8,000
_SEPARATOR: Final = " "


def build_payloads(sender: str, ids: Iterable[str]) -> Iterator[str]:
    """Build the payloads that name resources and jobs, several in each.

    Args:
        sender: the owner that tells it, who need not be told.
        ids: of whatever has new events.
    """
    named, size = [sender], len(sender)
    for each in sorted(set(ids)):
        if size + len(each) + 1 > MAX_PAYLOAD_BYTES:
            yield _SEPARATOR.join(named)
            named, size = [sender], len(sender)
        named.append(each)
        size += len(each.encode()) + 1
    if len(named) > 1:
        yield _SEPARATOR.join(named)


def read_payload(payload: str) -> tuple[str, list[str]]:
    """Read a payload: who sent it, and the ids of what has new events."""
    sender, *ids = payload.split(_SEPARATOR)
    return sender, ids


def build_work_notice(sender: str, root_id: str) -> TextClause:
    """Build the statement that tells the others of a work item: it is free, or to be cancelled.

    It belongs in the transaction that makes it so, as they have to find it so. One that notifies
    waits for all others to commit, but these are few.

    Args:
        sender: the owner that tells it.
        root_id: of the work item.
    """
    (payload,) = build_payloads(sender, [root_id])
    statement = text("SELECT pg_notify(:channel, :payload)")
    return statement.bindparams(channel=WORK_CHANNEL, payload=payload)
