"""Notices of commits: an engine tells the others whose events it wrote, once they are durable."""

from collections.abc import Iterable, Iterator
from typing import Final

EVENT_CHANNEL: Final = "toolkit_events"
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
