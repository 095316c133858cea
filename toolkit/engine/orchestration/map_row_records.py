"""The rows of maps as the store has them: ids and numbers, counts, and results."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from toolkit.contract.base import ErrorInfo, JsonObject, to_canonical_json
from toolkit.contract.maps import MapRecord, MapRow, RowCounts, RowStatus
from toolkit.contract.money import to_wire_usd
from toolkit.contract.row_templates import check_columns, digest_row, list_columns
from toolkit.engine.money.amounts import from_nano_usd
from toolkit.store import Change, InsertRow, Row, UpdateRow

_RETRIED = frozenset({"failed", "cancelled"})


def count_rows(record: MapRecord, rows: Sequence[Row]) -> MapRecord:
    """Return a map with its rows' states and costs, from their counts by status and reason."""
    counts = RowCounts()
    reasons: dict[str, int] = {}
    nano = completed_nano = 0
    for row in rows:
        number, status = int(row["n"]), str(row["status"])
        counts.total += number
        setattr(counts, status, getattr(counts, status) + number)
        nano += int(row["nano"])
        completed_nano += int(row["nano"]) if status == "completed" else 0
        if row["reason"] is not None:
            reasons[row["reason"]] = reasons.get(row["reason"], 0) + number
    expected = None
    if counts.completed:
        rest = counts.queued + counts.running
        mean = from_nano_usd(completed_nano) / counts.completed
        expected = to_wire_usd(from_nano_usd(nano) + mean * rest)
    update: dict[str, object] = {
        "row_counts": counts,
        "reasons": reasons,
        "cost_incurred_usd": to_wire_usd(from_nano_usd(nano)),
        "estimated_cost_usd": expected,
    }
    if record.status == "completed" and counts.queued:
        update["status"] = "queued"  # rows were added, and are about to begin
    return record.model_copy(update=update)


def select_columns(record: MapRecord, rows: Sequence[JsonObject]) -> list[JsonObject]:
    """Select the columns that a map's templates name.

    Raises:
        RequestError: `INVALID_REQUEST` for a row that lacks one.
    """
    columns = list_columns(record.input)
    for row in rows:
        check_columns(columns, row.keys())
    return [{name: row[name] for name in columns} for row in rows]


def name_rows(map_id: str, rows: Sequence[JsonObject]) -> list[tuple[str, str]]:
    """Return the id and the JSON of each row; equal rows have the same id."""
    return [(f"{map_id}/{digest_row(row)}", to_canonical_json(row)) for row in rows]


def plan_rows(
    account_id: str,
    map_id: str,
    named: Sequence[tuple[str, str]],
    known: Mapping[str, Row],
    size: int,
) -> tuple[list[Change], list[int]]:
    """Return the changes that add rows and queue failed rows again, and the rows' numbers.

    Args:
        named: the id and the JSON of each row.
        known: the rows that the map has already, by id.
        size: the number of its rows.
    """
    numbers = {row_id: int(row["n"]) for row_id, row in known.items()}
    changes: list[Change] = []
    for row_id, doc in named:
        if row_id not in numbers:
            numbers[row_id] = size + len(numbers) - len(known)
            values: dict[str, object] = {
                "id": row_id,
                "account_id": account_id,
                "map_id": map_id,
                "n": numbers[row_id],
                "doc": doc,
                "status": "queued",
            }
            changes.append(InsertRow("map_rows", values))
    changes += [
        # It keeps the number of its end until the next, so that no number is given twice.
        UpdateRow("map_rows", row_id, {"status": "queued", "reason": None})
        for row_id, row in known.items()
        if row["status"] in _RETRIED
    ]
    return changes, [numbers[row_id] for row_id, _ in named]


@lru_cache(maxsize=4096)  # many rows cost the same
def _to_usd(nano: int) -> float:
    return to_wire_usd(from_nano_usd(nano))


class _JobResult(MapRow):
    """The members that a row has from the document of its job."""

    row: int = 0
    n: int = 0
    digest: str = ""
    status: RowStatus = "queued"


def read_row(row: Row) -> MapRow:
    """Read a row that has ended, with the result of its job."""
    # Other members of the document are skipped, which takes a third of the time of parsing them.
    result = _JobResult.model_validate_json(row["doc"] or "{}")
    members: dict[str, object] = {
        "row": row["n"],
        "n": row["ended"],
        "digest": row["id"].rpartition("/")[2],
        "status": row["status"],
        "job_id": row["job_id"],
        "cost_incurred_usd": _to_usd(int(row["nano"])),
    }
    if row["doc"] is None and row["reason"] is not None:
        members["error"] = ErrorInfo(code=row["reason"], message=row["error"] or row["reason"])
    result.__dict__.update(members)
    return result
