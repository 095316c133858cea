"""Records laid out for people: facts of one line each, and a table for each list and schema."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from toolkit.display import schema
from toolkit.display.text import MISSING, cell, is_empty

DEEPEST = 4  # below that, what is nested stands on one line
# The columns shown of lists that have more in each row than a line holds.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "candidates": (
        "provider", "model", "score", "estimated_cost_usd", "latency_p50_ms", "kept", "reason",
    ),
    "attempts": (
        "n", "provider", "model", "status", "cost_usd", "started_at", "ended_at", "error",
    ),
    "nodes": (
        "id", "capability", "depends_on", "status", "provider", "cost_usd", "retry_count",
        "artifact_id", "error",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Section:
    """A list or a schema of a record, as a table.

    Attributes:
        title: the names that lead to it.
        rows: whose values are shown by `toolkit.display.text.cell`.
    """

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, object]]


def outline(record: Mapping[str, object]) -> tuple[dict[str, str], list[Section]]:
    """Lay a record out: its facts by name, then its tables; what is empty is left out.

    >>> facts, sections = outline({"n": 1, "routing": {"policy": "cost", "candidates": [{"a": 2}]}})
    >>> facts, sections[0].title, sections[0].columns
    ({'n': '1', 'routing policy': 'cost'}, 'routing candidates', ('a',))
    """
    facts: dict[str, str] = {}
    sections: list[Section] = []
    for title, name, value in _parts("", record, 0):
        if isinstance(value, Section):
            sections.append(value)
        else:
            facts[title] = cell(name, value)
    return facts, sections


def _parts(
    path: str, record: Mapping[str, object], depth: int
) -> Iterator[tuple[str, str, object]]:
    """Yield the title, the name and the value of each part of a record."""
    for name, value in record.items():
        title = f"{path} {name}".strip().replace("_", " ")
        if is_empty(value) and not name.endswith("_usd"):
            continue
        if isinstance(value, Mapping) and schema.is_schema(value):
            yield title, name, Section(title, schema.COLUMNS, schema.fields(value))
        elif isinstance(value, Mapping) and depth < DEEPEST and _is_deep(value):
            yield from _parts(title, value, depth + 1)
        elif name != MISSING and _is_records(value):
            yield title, name, _table(title, name, value)
        else:
            yield title, name, value


def _is_deep(value: Mapping[str, object]) -> bool:
    """Tell whether a mapping holds more than a line can."""
    return any(isinstance(each, Mapping) or _is_records(each) for each in value.values() if each)


def _is_records(value: object) -> TypeGuard[list[Mapping[str, object]]]:
    """Tell whether a value is a list of records."""
    return (
        isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)
    )


def _table(title: str, name: str, records: list[Mapping[str, object]]) -> Section:
    rows = [_row(row) for row in records]
    known = dict.fromkeys(key for row in rows for key in row)
    columns = COLUMNS.get(name, tuple(known))
    filled = tuple(
        key for key in columns if key in known and not all(is_empty(row.get(key)) for row in rows)
    )
    return Section(title, filled or tuple(known), rows)


def _row(record: Mapping[str, object]) -> dict[str, object]:
    """Lay out a record as a row: a candidate that was not excluded was kept."""
    row = dict(record)
    if "excluded" in row:
        row["kept"] = not row.pop("excluded")
    return row
