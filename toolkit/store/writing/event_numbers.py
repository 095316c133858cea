"""The rows of events: each gets the next number of its resource, and of its job."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

from pydantic_core import to_json

from toolkit.store.changes import AppendEvent

# The number of remembered resources and jobs; the last number of others is looked up again.
NUMBER_CACHE_SIZE = 10_000
EVENT_COLUMNS = ("resource_id", "n", "type", "at", "data", "job_id", "job_n")


class EventNumbers:
    """The last number of each resource and job, remembered while this process adds to them.

    They hold until another process adds events, which it does with the lease (`forget`), or a
    transaction fails.

    Args:
        find_last: finds the greatest number in the open transaction, 0 if there is none: by the
            column of the resource or job, the column of the number, and the id.
    """

    def __init__(self, find_last: Callable[[str, str, str], int]) -> None:
        self._find_last = find_last
        self._last_n: dict[str, int] = {}
        # Ids of rows that this transaction inserts, which have no events yet.
        self._new_ids: set[str] = set()
        self._is_forgotten = False

    def begin(self, inserts: Iterable[Iterable[str]] = ()) -> None:
        """Begin a transaction, with the ids of the rows that it inserts."""
        if self._is_forgotten:
            self._is_forgotten = False
            self._last_n.clear()
        self._new_ids = {row_id for rows in inserts for row_id in rows}

    def make_rows(self, events: Sequence[AppendEvent]) -> list[list[object]]:
        """Make the rows of events, in order: their values in the order of `EVENT_COLUMNS`."""
        rows = []
        for event in events:
            resource_id, job_id = event.resource_id, _find_named_job(event)
            row: list[object] = [
                resource_id,
                self._next_number("resource_id", "n", resource_id),
                event.type,
                event.at,
                to_json(_omit_known(event)).decode(),
                job_id,
                job_id and self._next_number("job_id", "job_n", job_id),
            ]
            rows.append(row)
        return rows

    def list_unknown(self, events: Iterable[AppendEvent]) -> list[tuple[str, str, list[str]]]:
        """List the keys that `find_last` will look up: by both columns, the sorted ids."""
        resources = {event.resource_id for event in events}
        jobs = {job_id for event in events if (job_id := _find_named_job(event))}
        lookups = []
        for key, column, ids in (("resource_id", "n", resources), ("job_id", "job_n", jobs)):
            unknown = sorted(ids.difference(self._new_ids, ids & self._last_n.keys()))
            lookups += [(key, column, unknown)] if unknown else []
        return lookups

    def _next_number(self, key: str, column: str, value: str) -> int:
        """Return the next number of a resource or job; only the holder of its lease adds to it."""
        last = self._last_n.get(value)
        if last is None:
            last = 0 if value in self._new_ids else self._find_last(key, column, value)
        self._last_n[value] = last + 1
        return last + 1

    def trim(self) -> None:
        """Forget the oldest of too many numbers.

        Call it between transactions only, as the database lacks the numbers of an open transaction.
        """
        if len(self._last_n) > NUMBER_CACHE_SIZE:
            for value in list(islice(self._last_n, len(self._last_n) - NUMBER_CACHE_SIZE // 2)):
                del self._last_n[value]

    def forget(self) -> None:
        """Forget the remembered numbers: another process may have added events.

        It takes effect in the next transaction, because it is called on any thread. A transaction
        under way has looked up its numbers, and has assigned some that are not in the database yet.
        """
        self._is_forgotten = True

    def __len__(self) -> int:
        """The number of remembered numbers."""
        return len(self._last_n)


def _find_named_job(event: AppendEvent) -> str | None:
    """Find the job that an event's row names; a job that is a work item of its own needs no name.

    Its events are all that its run has, or it itself, and have the same numbers.
    """
    is_alone = event.resource_id.startswith("run_") or event.resource_id == event.job_id
    return None if is_alone else event.job_id


def _omit_known(event: AppendEvent) -> Mapping[str, object]:
    """Return an event's data without the ids that are known anyway; readers add them."""
    data, ids = event.data, {"id": event.resource_id, "job_id": event.job_id}
    if data.get("id") != event.resource_id and "job_id" not in data:
        return data
    return {name: value for name, value in data.items() if ids.get(name) != value}
