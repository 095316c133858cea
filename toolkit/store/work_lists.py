"""Lists of runs, workflows and tasks, by a filter: the statements, and the search in texts.

A filtered list is read in slices of so many rows: the edge of a slice is found in an index, and
what is looked at lies above it. So a filter that hardly anything fits does not hold up the loop.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache, partial
from typing import Any, Final

from pydantic_core import from_json

from toolkit.contract.base import format_rfc3339
from toolkit.contract.ids import Prefix, make_earliest_id
from toolkit.contract.operations.work_queries import WorkFilter
from toolkit.store.account_scope import (
    ReadScope,
    ScopeKind,
    build_account_condition,
    get_scope_values,
)
from toolkit.store.dialects import DatabaseKind
from toolkit.store.json_sql import JSON_SQL, JsonSql
from toolkit.store.read_connection import Row
from toolkit.store.tables import name_columns

SLICE_ROWS: Final = 500
# An id may be made a while before its record, and never later.
_ID_MARGIN_MS = 600_000
_AFTER_ALL_IDS = "~"  # sorts after whatever an id has


@dataclass(frozen=True, slots=True)
class IdSource:
    """The rows that have the ids of a list, in the order of an index.

    Attributes:
        table: where they are.
        key: the column of the ids.
        joined: the table with the rows of the list, where that is another one, and how it is found.
        condition: a further condition on rows of the table, in addition to the scope.
    """

    table: str
    key: str
    joined: str = ""
    condition: str = "TRUE"

    def build_conditions(self, scope: ScopeKind) -> tuple[str, ...]:
        """Build the conditions of a scope's ids between two bounds."""
        owned = build_account_condition(scope, self.table)
        return owned, self.condition, f"{self.key} < :before", f"{self.key} >= :edge"


@dataclass(frozen=True, eq=False)
class WorkList:
    """One kind of work: where its rows are, and the conditions of a filter.

    Attributes:
        prefix: that of its ids.
        rows: the table of its rows.
        ids: all ids of an account.
        tagged_ids: the ids of those with a tag; none where `ids` are looked through for them.
        annotated: the column of the id that tags and notes are kept by.
        record: whose input `has_text` looks through.
        match: builds the conditions, by field of the filter, in a database's SQL.
    """

    prefix: Prefix
    rows: str
    ids: IdSource
    tagged_ids: IdSource | None
    annotated: str
    record: str
    match: Callable[[JsonSql], Mapping[str, str]]


def _find_tagged(join: str) -> IdSource:
    return IdSource("tags", "tags.resource_id", join, "tags.tag = :tag0")


def _match_name(column: str) -> str:
    """Build the condition that a capability has a name, or a name and version."""
    any_version = f"substr({column}, 1, length(:capability) + 1) = :capability || '@'"
    return f"({column} = :capability OR {any_version})"


def _match_common(sql: JsonSql, rows: str, kind: str) -> dict[str, str]:
    cost = sql.get_number(sql.read(f"{rows}.doc"), "cost_usd")
    return {
        "status": f"{rows}.status = :status",
        "since": f"{rows}.created_at >= :since",
        "until": f"{rows}.created_at < :until",
        "min_cost_usd": f"{cost} >= :min_cost_usd",
        "max_cost_usd": f"{cost} <= :max_cost_usd",
        "text": sql.match_text(f"{rows}.doc", kind),
    }


_NODES_OF_WORKFLOW = "SELECT 1 FROM jobs WHERE jobs.workflow_id = workflows.id AND"


def _match_run(sql: JsonSql) -> dict[str, str]:
    return {
        **_match_common(sql, "jobs", "run"),
        "capability": _match_name("jobs.capability"),
        "provider": "jobs.provider = :provider",
    }


def _match_agent_run(sql: JsonSql) -> dict[str, str]:
    task = sql.read("tasks.doc")
    name, version = (sql.get_text(task, "agent", each) for each in ("name", "version"))
    # As `to_run` shows the task of an agent's run.
    status = (
        f"CASE WHEN {sql.get_text(task, 'error', 'code')} = 'CANCELLED' THEN 'cancelled'"
        " WHEN tasks.status IN ('completed', 'failed') THEN tasks.status ELSE 'running' END"
    )
    return {
        **_match_common(sql, "tasks", "agent_run"),
        "capability": _match_name(f"{name} || '@' || {version}"),
        "provider": "FALSE",  # an agent's run names none
        "status": f"{status} = :status",
    }


def _match_workflow(sql: JsonSql) -> dict[str, str]:
    items = sql.list_items(sql.read("workflows.doc"), "nodes", "node")
    nodes = f"SELECT 1 FROM {items} WHERE"  # noqa: S608 - our names
    name = _match_name(sql.get_text("node.value", "capability"))
    # What an earlier workflow did for a fork is not among its own jobs.
    kept = f"{nodes} {sql.get_text('node.value', 'provider')} = :provider"
    return {
        **_match_common(sql, "workflows", "workflow"),
        "capability": f"EXISTS ({nodes} {name})",
        "provider": f"(EXISTS ({_NODES_OF_WORKFLOW} jobs.provider = :provider) OR EXISTS ({kept}))",
    }


def _match_task(sql: JsonSql) -> dict[str, str]:
    made = sql.list_items(sql.read("tasks.doc"), "workflow_ids", "made")
    nodes = f"SELECT 1 FROM {made} JOIN jobs ON jobs.workflow_id = {sql.get_item('made')} WHERE"  # noqa: S608
    return {
        **_match_common(sql, "tasks", "task"),
        "capability": f"EXISTS ({nodes} {_match_name('jobs.capability')})",
        "provider": f"EXISTS ({nodes} jobs.provider = :provider)",
    }


RUN_LIST = WorkList(
    Prefix.RUN,
    "jobs",
    IdSource(
        "roots",
        "roots.id",
        "jobs ON jobs.run_id = roots.id",
        "roots.kind = 'run'",
    ),
    _find_tagged("jobs ON jobs.run_id = tags.resource_id"),
    "jobs.run_id",
    "run",
    _match_run,
)
AGENT_RUN_LIST = WorkList(
    Prefix.RUN,
    "tasks",
    IdSource("tasks", "tasks.run_id"),
    None,
    "tasks.id",
    "agent_run",
    _match_agent_run,
)
WORKFLOW_LIST = WorkList(
    Prefix.WORKFLOW,
    "workflows",
    IdSource("workflows", "workflows.id"),
    _find_tagged("workflows ON workflows.id = tags.resource_id"),
    "workflows.id",
    "workflow",
    _match_workflow,
)
TASK_LIST = WorkList(
    Prefix.TASK,
    "tasks",
    IdSource("tasks", "tasks.id"),
    _find_tagged("tasks ON tasks.id = tags.resource_id"),
    "tasks.id",
    "task",
    _match_task,
)


@dataclass(frozen=True, slots=True)
class WorkListQuery:
    """The reading of one account's list: its statements, and what they are given.

    Attributes:
        rows_sql: reads the rows between two ids, newest first.
        edge_sql: finds the id that so many rows end with; none where all may be read at once.
        given: the values of both, but for the bounds.
        lowest: the least id that may be in it.
        highest: above all that may be in it.
        fits: tells of a row what the database cannot tell; none where it can tell everything.
    """

    rows_sql: str
    edge_sql: str | None
    given: dict[str, object]
    lowest: str
    highest: str
    fits: Callable[[Row], bool] | None = None

    def get_limit(self, limit: int) -> int:
        """Return how many rows of a slice have to be read for so many of them."""
        return limit if self.fits is None else SLICE_ROWS

    def choose(self, rows: list[Row], limit: int) -> list[Row]:
        """Choose the rows of a slice that are in the list, so many at most."""
        return rows if self.fits is None else [row for row in rows if self.fits(row)][:limit]


def make_list_query(
    kind: DatabaseKind, work: WorkList, scope: ReadScope, wanted: WorkFilter, before: str | None
) -> WorkListQuery:
    """Make the query of a list of work.

    Args:
        kind: of the database.
        work: the kind of work.
        scope: whose.
        wanted: the filter.
        before: the id that the page before this one ended with.
    """
    given = get_scope_values(scope)
    given |= {f"tag{n}": tag for n, tag in enumerate(wanted.tags)}
    values = {
        "capability": wanted.capability,
        "provider": wanted.provider,
        "status": wanted.status,
        "since": _format_bound(wanted.since),
        "until": _format_bound(wanted.until),
        "min_cost_usd": wanted.min_cost_usd,
        "max_cost_usd": wanted.max_cost_usd,
        "text": None if wanted.text is None else wanted.text.casefold(),
    }
    fields = tuple(name for name, value in values.items() if value is not None)
    given |= {name: values[name] for name in fields}
    fits = None
    if kind == "postgresql" and wanted.text is not None:
        text = wanted.text.casefold()
        given["text"] = text if _is_plain(text) else ""
        fits = partial(_has_row_text, work.record, text)
    source = work.tagged_ids if wanted.tags and work.tagged_ids else work.ids
    lowest, highest = f"{work.prefix}_", f"{work.prefix}_{_AFTER_ALL_IDS}"
    if wanted.since is not None:
        lowest = make_earliest_id(work.prefix, wanted.since, _ID_MARGIN_MS)
    return WorkListQuery(
        _build_rows(kind, scope.kind, work, source, fields, len(wanted.tags)),
        _build_edge(scope.kind, source) if fields or wanted.tags else None,
        given,
        lowest,
        before or highest,
        fits,
    )


@cache
def _build_rows(
    kind: DatabaseKind,
    scope: ScopeKind,
    work: WorkList,
    source: IdSource,
    fields: tuple[str, ...],
    tags: int,
) -> str:
    """Build the statement that reads the rows between two ids, with their tags and note."""
    # The first tag is what a tagged source starts from.
    looked_for = range(1 if source is work.tagged_ids else 0, tags)
    matching = work.match(JSON_SQL[kind])
    conditions = [
        *(matching[name] for name in fields),
        *(
            f"EXISTS (SELECT 1 FROM tags AS other WHERE {build_account_condition(scope, 'other')}"  # noqa: S608
            f" AND other.tag = :tag{n} AND other.resource_id = {work.annotated})"
            for n in looked_for
        ),
    ]
    # CROSS, so that SQLite starts from the ids and has them in order.
    join = "CROSS JOIN" if kind == "sqlite" else "JOIN"
    joined = f" {join} {source.joined}" if source.joined else ""
    return (
        f"SELECT {name_columns(work.rows)}, {source.key} AS listed_id,"  # noqa: S608 - our names
        " annotations.tags, annotations.note"
        f" FROM {source.table}{joined} LEFT JOIN annotations ON annotations.id = {work.annotated}"
        f" WHERE {' AND '.join([*source.build_conditions(scope), *conditions])}"
        f" ORDER BY {source.key} DESC LIMIT :limit"
    )


@cache
def _build_edge(scope: ScopeKind, source: IdSource) -> str:
    """Build the statement that finds the last id of a slice."""
    return (
        f"SELECT {source.key} AS edge FROM {source.table}"  # noqa: S608 - our names
        f" WHERE {' AND '.join(source.build_conditions(scope))}"
        f" ORDER BY {source.key} DESC LIMIT 1 OFFSET {SLICE_ROWS - 1}"
    )


def _format_bound(moment: datetime | None) -> str | None:
    return None if moment is None else format_rfc3339(moment)


def _has_row_text(kind: str, text: str, row: Row) -> bool:
    return has_text(row["doc"], kind, text)


def has_text(doc: str, kind: str, text: str) -> bool:
    """Tell whether a text, in lower case, stands in the input that a record's document has.

    >>> has_text('{"input": {"objective": "On Tides"}, "output": {"text": "Salt"}}', "run", "tides")
    True
    >>> has_text('{"input": {"objective": "On Tides"}, "output": {"text": "Salt"}}', "run", "salt")
    False
    """
    # JSON has these characters as they are, so most documents need not be parsed.
    if _is_plain(text) and text not in doc.casefold():
        return False
    return any(text in one.casefold() for one in _iter_texts(_INPUTS[kind](from_json(doc))))


@lru_cache(maxsize=8)  # a search asks it of every row
def _is_plain(text: str) -> bool:
    """Tell whether a text stands in a JSON document just as it is, wherever it stands there."""
    return text.isascii() and text.isprintable() and not set(text) & {'"', "\\", "/"}


_INPUTS: Final[dict[str, Callable[[dict[str, Any]], object]]] = {
    "run": lambda record: record.get("input"),
    "agent_run": lambda record: (record.get("agent") or {}).get("input"),
    "workflow": lambda record: [
        record.get("name"),
        [node.get("input") for node in record.get("nodes") or ()],
    ],
    "task": lambda record: record.get("objective"),
}


def _iter_texts(value: object) -> Iterator[str]:
    """Yield every text in a JSON value; the names of members are none."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _iter_texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _iter_texts(one)
