"""Records laid out for people: facts on one line each, and a table for each list and schema."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from toolkit.display.records import schema
from toolkit.display.text import MISSING_FIELD, format_cell, is_empty

MAX_DEPTH = 4  # levels; deeper values are shown on one line
# The displayed columns of lists whose rows have more members than a line holds.
TABLE_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "candidates": (
        "provider", "model", "score", "estimated_cost_usd", "latency_p50_ms", "kept", "reason",
    ),
    "attempts": (
        "n", "provider", "model", "status", "cost_usd", "started_at", "ended_at", "error",
    ),
    "events": ("n", "at", "type", "data"),
    "nodes": (
        "id", "capability", "status", "error", "provider", "cost_usd", "retry_count",
        "depends_on", "artifact_id",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RecordSection:
    """A list or a schema of a record, as a table.

    Attributes:
        title: path of names to the list or schema.
        rows: rows whose values `toolkit.display.text.format_cell` formats.
    """

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, object]]


def outline_record(record: Mapping[str, object]) -> tuple[dict[str, str], list[RecordSection]]:
    """Lay a record out: its facts by name, then its tables; empty values are omitted.

    >>> routing = {"policy": "cost", "candidates": [{"a": 2}]}
    >>> facts, sections = outline_record({"n": 1, "routing": routing})
    >>> facts, sections[0].title, sections[0].columns
    ({'n': '1', 'routing policy': 'cost'}, 'routing candidates', ('a',))
    """
    facts: dict[str, str] = {}
    sections: list[RecordSection] = []
    for title, name, value in _iter_parts("", record, 0):
        if isinstance(value, RecordSection):
            sections.append(value)
        else:
            facts[title] = format_cell(name, value)
    return facts, sections


def _iter_parts(
    path: str, record: Mapping[str, object], depth: int
) -> Iterator[tuple[str, str, object]]:
    """Yield the title, the name and the value of each part of a record."""
    for name, value in record.items():
        title = f"{path} {name}".strip().replace("_", " ")
        if is_empty(value) and not name.endswith("_usd"):
            continue
        if isinstance(value, Mapping) and schema.is_schema(value):
            yield title, name, RecordSection(title, schema.FIELD_COLUMNS, schema.list_fields(value))
        elif isinstance(value, Mapping) and depth < MAX_DEPTH and _is_deep(value):
            yield from _iter_parts(title, value, depth + 1)
        elif name != MISSING_FIELD and _is_records(value):
            yield title, name, build_section(title, name, value)
        else:
            yield title, name, value


def _is_deep(value: Mapping[str, object]) -> bool:
    """Check whether a mapping holds more than a line can."""
    return any(
        isinstance(member, Mapping) or _is_records(member) for member in value.values() if member
    )


def _is_records(value: object) -> TypeGuard[list[Mapping[str, object]]]:
    return (
        isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)
    )


def build_section(title: str, name: str, records: Sequence[Mapping[str, object]]) -> RecordSection:
    """Build the table of a list of records, with the important columns of its kind.

    Args:
        name: kind of the list, as a record names it, such as `attempts`.
    """
    rows = [_build_row(row) for row in records]
    keys = dict.fromkeys(key for row in rows for key in row)
    columns = TABLE_COLUMNS.get(name, tuple(keys))
    filled = tuple(
        key for key in columns if key in keys and not all(is_empty(row.get(key)) for row in rows)
    )
    return RecordSection(title, filled or tuple(keys), rows)


def _build_row(record: Mapping[str, object]) -> dict[str, object]:
    """Copy a record as a row of a table, with `kept` in place of its opposite `excluded`."""
    row = dict(record)
    if "excluded" in row:
        row["kept"] = not row.pop("excluded")
    return row
