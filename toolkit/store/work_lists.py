"""Lists of runs, maps, workflows and tasks, by a filter: their conditions, and the statements.

A filtered list is read in batches of ids, newest first, from an index that fits the filter
(`list_search`). The rows of a batch are then checked by all conditions of the filter.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from typing import Final

from toolkit.contract.base import format_rfc3339
from toolkit.contract.ids import Prefix, make_earliest_id
from toolkit.contract.operations.work_queries import WorkFilter
from toolkit.store.account_scope import (
    ReadScope,
    ScopeKind,
    build_account_condition,
    get_scope_values,
)
from toolkit.store.dialects import DatabaseKind, JsonSql, list_given_ids
from toolkit.store.read_connection import Row
from toolkit.store.tables import name_columns
from toolkit.store.text_index import has_text, is_plain

SLICE_ROWS: Final = 500
# An id may be made a while before its record, and never later.
_ID_MARGIN_MS = 600_000
_AFTER_ALL_IDS = "~"  # sorts after every character of an id


@dataclass(frozen=True, slots=True)
class IdSource:
    """The rows that have all ids of a list, in the order of an index.

    Attributes:
        key: the column of the ids.
        condition: a further condition on rows of the table, in addition to the scope.
    """

    table: str
    key: str
    condition: str = "TRUE"


@dataclass(frozen=True, slots=True)
class IndexedField:
    """A field of the filter with an index of accounts, values and ids, in this order.

    Attributes:
        column: the indexed column of values; None if the index has the step of the cost.
        key: the column of the ids.
    """

    name: str
    table: str
    column: str | None
    key: str


@dataclass(frozen=True, eq=False)
class WorkList:
    """One kind of work: where its rows are, and the conditions of a filter.

    Attributes:
        key: the column of the ids in that table.
        ids: all ids of an account.
        indexed: fields that have an index, in the order of how many records they exclude.
        annotated: the column of the id that tags and notes are kept by.
        record: kind of record, as `has_text` takes it.
        match: builds the conditions, by field of the filter, in a database's SQL.
        columns: fields of the filter whose conditions read columns, not documents.
        has_text_index: whether the texts of its inputs are indexed, as the list `record`.
    """

    prefix: Prefix
    rows: str
    key: str
    ids: IdSource
    indexed: tuple[IndexedField, ...]
    annotated: str
    record: str
    match: Callable[[JsonSql], Mapping[str, str]]
    columns: frozenset[str]
    has_text_index: bool = True


def _match_name(column: str) -> str:
    """Build the condition that a capability has the given name in any version, or name@version."""
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
    name, version = (sql.get_text(task, "agent", member) for member in ("name", "version"))
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


def _match_map(sql: JsonSql) -> dict[str, str]:
    rows = "FROM map_rows WHERE map_rows.map_id = maps.id"
    spent = f"(SELECT COALESCE(sum(map_rows.nano), 0) / 1000000000.0 {rows})"
    served = "SELECT 1 FROM jobs WHERE jobs.id = map_rows.job_id AND jobs.provider = :provider"
    return {
        **_match_common(sql, "maps", "run"),  # a map has its input as a run does
        "capability": _match_name(sql.get_text(sql.read("maps.doc"), "capability")),
        "provider": f"EXISTS (SELECT 1 {rows} AND EXISTS ({served}))",
        "min_cost_usd": f"{spent} >= :min_cost_usd",
        "max_cost_usd": f"{spent} <= :max_cost_usd",
    }


def _match_workflow(sql: JsonSql) -> dict[str, str]:
    items = sql.list_items(sql.read("workflows.doc"), "nodes", "node")
    nodes = f"SELECT 1 FROM {items} WHERE"  # noqa: S608 - our names
    name = _match_name(sql.get_text("node.value", "capability"))
    # Work that an earlier workflow did for a fork is not among its own jobs.
    fork = f"{nodes} {sql.get_text('node.value', 'provider')} = :provider"
    return {
        **_match_common(sql, "workflows", "workflow"),
        "capability": f"EXISTS ({nodes} {name})",
        "provider": f"(EXISTS ({_NODES_OF_WORKFLOW} jobs.provider = :provider) OR EXISTS ({fork}))",
    }


def _match_task(sql: JsonSql) -> dict[str, str]:
    ids = sql.list_items(sql.read("tasks.doc"), "workflow_ids", "made")
    nodes = f"SELECT 1 FROM {ids} JOIN jobs ON jobs.workflow_id = {sql.get_item('made')} WHERE"  # noqa: S608
    return {
        **_match_common(sql, "tasks", "task"),
        "capability": f"EXISTS ({nodes} {_match_name('jobs.capability')})",
        "provider": f"EXISTS ({nodes} jobs.provider = :provider)",
    }


_TIMES: Final = frozenset({"since", "until"})
_TAG: Final = IndexedField("tag", "tags", "tag", "resource_id")
RUN_LIST = WorkList(
    Prefix.RUN,
    "jobs",
    "jobs.run_id",
    IdSource("roots", "roots.id", "roots.kind = 'run'"),
    (
        _TAG,
        IndexedField("provider", "jobs", "provider", "run_id"),
        IndexedField("cost", "jobs", None, "run_id"),
        IndexedField("capability", "jobs", "capability", "run_id"),
        IndexedField("status", "jobs", "status", "run_id"),
    ),
    "jobs.run_id",
    "run",
    _match_run,
    _TIMES | {"status", "capability", "provider"},
)
AGENT_RUN_LIST = WorkList(
    Prefix.RUN,
    "tasks",
    "tasks.run_id",
    IdSource("tasks", "tasks.run_id"),
    (),
    "tasks.id",
    "agent_run",
    _match_agent_run,
    _TIMES,
    has_text_index=False,
)
MAP_LIST = WorkList(
    Prefix.MAP,
    "maps",
    "maps.id",
    IdSource("maps", "maps.id"),
    (_TAG, IndexedField("status", "maps", "status", "id")),
    "maps.id",
    "run",
    _match_map,
    _TIMES | {"status"},
    has_text_index=False,
)
WORKFLOW_LIST = WorkList(
    Prefix.WORKFLOW,
    "workflows",
    "workflows.id",
    IdSource("workflows", "workflows.id"),
    (_TAG, IndexedField("status", "workflows", "status", "id")),
    "workflows.id",
    "workflow",
    _match_workflow,
    _TIMES | {"status"},
)
TASK_LIST = WorkList(
    Prefix.TASK,
    "tasks",
    "tasks.id",
    IdSource("tasks", "tasks.id"),
    (_TAG, IndexedField("status", "tasks", "status", "id")),
    "tasks.id",
    "task",
    _match_task,
    _TIMES | {"status"},
)


@dataclass(frozen=True, slots=True)
class WorkListQuery:
    """The statements and values that read one list of work.

    Attributes:
        rows_sql: reads the rows with some ids, newest first; all rows if there is no filter.
        count_sql: counts the rows with some ids.
        parameters: values of the filter and of the scope.
        lowest: the least id that may be in it.
        highest: above all that may be in it.
        reads_documents: True if a condition reads the document of a row.
        fits: the check of a row that the database cannot make; None if there is none.
    """

    rows_sql: str
    count_sql: str
    parameters: dict[str, object]
    lowest: str
    highest: str
    reads_documents: bool
    fits: Callable[[Row], bool] | None = None

    def get_limit(self, limit: int) -> int:
        """Return how many rows of a batch must be read to find `limit` rows that fit."""
        return limit if self.fits is None else SLICE_ROWS

    def choose(self, rows: list[Row], limit: int) -> list[Row]:
        """Choose the rows of a batch that fit the filter, at most `limit`."""
        return rows if self.fits is None else [row for row in rows if self.fits(row)][:limit]


def make_list_query(
    kind: DatabaseKind, work: WorkList, scope: ReadScope, filters: WorkFilter, before: str | None
) -> WorkListQuery:
    """Make the query of a list of work.

    Args:
        before: last id of the previous page.
    """
    parameters = get_scope_values(scope)
    parameters |= {f"tag{n}": tag for n, tag in enumerate(filters.tags)}
    values = {
        "capability": filters.capability,
        "provider": filters.provider,
        "status": filters.status,
        "since": _format_bound(filters.since),
        "until": _format_bound(filters.until),
        "min_cost_usd": filters.min_cost_usd,
        "max_cost_usd": filters.max_cost_usd,
        "text": None if filters.text is None else filters.text.casefold(),
    }
    fields = tuple(name for name, value in values.items() if value is not None)
    parameters |= {name: values[name] for name in fields}
    fits = None
    if kind == "postgresql" and filters.text is not None:
        text = filters.text.casefold()
        parameters["text"] = text if is_plain(text) else ""
        fits = partial(_has_row_text, work.record, text)
    lowest, highest = f"{work.prefix}_", before or f"{work.prefix}_{_AFTER_ALL_IDS}"
    if filters.since is not None:
        lowest = make_earliest_id(work.prefix, filters.since, _ID_MARGIN_MS)
    if filters.until is not None:
        highest = min(highest, make_earliest_id(work.prefix, filters.until))
    rows_sql = _build_rows(kind, scope.kind, work, fields, len(filters.tags))
    count_sql = _build_count(kind, scope.kind, work, fields, len(filters.tags))
    reads_documents = not work.columns.issuperset(fields)
    return WorkListQuery(rows_sql, count_sql, parameters, lowest, highest, reads_documents, fits)


@cache
def _build_rows(
    kind: DatabaseKind, scope: ScopeKind, work: WorkList, fields: tuple[str, ...], tags: int
) -> str:
    """Build the statement that reads the rows with some ids, with their tags and note."""
    source = list_given_ids(kind) if fields or tags else f"({build_ids(scope, work)}) AS wanted"
    return (
        f"SELECT {name_columns(work.rows)}, {work.key} AS listed_id,"  # noqa: S608 - our names
        " annotations.tags, annotations.note"
        f" FROM {_join_rows(kind, work, source)}"
        f" LEFT JOIN annotations ON annotations.id = {work.annotated}"
        f" WHERE {_build_conditions(kind, scope, work, fields, tags)}"
        f" ORDER BY {work.key} DESC LIMIT :limit"
    )


@cache
def _build_count(
    kind: DatabaseKind, scope: ScopeKind, work: WorkList, fields: tuple[str, ...], tags: int
) -> str:
    """Build the statement that counts the rows with some ids."""
    return (
        f"SELECT count(*) AS n FROM {_join_rows(kind, work, list_given_ids(kind))}"  # noqa: S608
        f" WHERE {_build_conditions(kind, scope, work, fields, tags)}"
    )


def _join_rows(kind: DatabaseKind, work: WorkList, source: str) -> str:
    # CROSS, so that SQLite starts from the ids.
    join = "CROSS JOIN" if kind == "sqlite" else "JOIN"
    return f"{source} {join} {work.rows} ON {work.key} = wanted.value"


def _build_conditions(
    kind: DatabaseKind, scope: ScopeKind, work: WorkList, fields: tuple[str, ...], tags: int
) -> str:
    """Build the conditions of a filter on a row."""
    matching = work.match(JsonSql(kind))
    conditions = [
        build_account_condition(scope, work.rows),
        *(matching[name] for name in fields),
        *(
            f"EXISTS (SELECT 1 FROM tags AS other WHERE {build_account_condition(scope, 'other')}"  # noqa: S608
            f" AND other.tag = :tag{n} AND other.resource_id = {work.annotated})"
            for n in range(tags)
        ),
    ]
    return " AND ".join(conditions)


def _build_range(key: str) -> str:
    """Build the condition that ids are between two bounds, and the order of a list."""
    return f"{key} >= :lowest AND {key} < :before ORDER BY {key} DESC"


@cache
def build_ids(scope: ScopeKind, work: WorkList) -> str:
    """Build the statement that reads the ids of a list between two bounds, newest first."""
    source = work.ids
    return (
        f"SELECT {source.key} AS value FROM {source.table}"  # noqa: S608 - our names
        f" WHERE {build_account_condition(scope, source.table)} AND {source.condition}"
        f" AND {_build_range(source.key)} LIMIT :limit"
    )


@cache
def build_id_count(scope: ScopeKind, work: WorkList) -> str:
    """Build the statement that counts the ids of a list between two bounds, up to `limit`."""
    source = work.ids
    return (
        "SELECT count(*) AS n FROM ("  # noqa: S608 - our names
        f"SELECT 1 FROM {source.table}"
        f" WHERE {build_account_condition(scope, source.table)} AND {source.condition}"
        f" AND {source.key} >= :lowest AND {source.key} < :before LIMIT :limit) AS found"
    )


@cache
def build_unindexed_ids(kind: DatabaseKind, scope: ScopeKind, work: WorkList) -> str:
    """Build the statement that reads the ids of records whose texts are not indexed."""
    # Without it, SQLite would read the rows of all accounts in the order of their ids.
    hint = f" INDEXED BY ix_{work.rows}_text" if kind == "sqlite" else ""
    return (
        f"SELECT {work.key} AS value FROM {work.rows}{hint}"  # noqa: S608 - our names
        f" WHERE {build_account_condition(scope, work.rows)} AND {work.rows}.text_number IS NULL"
        f" AND {_build_range(work.key)} LIMIT :limit"
    )


@cache
def build_candidate_ids(kind: DatabaseKind, scope: ScopeKind, work: WorkList) -> str:
    """Build the statement that reads the ids of given rows that are in a list, newest first."""
    # As an array, because PostgreSQL would read all rows of the account for a join.
    ids = f"(SELECT wanted.value FROM {list_given_ids(kind)})"  # noqa: S608 - our names
    membership = f"IN {ids}" if kind == "sqlite" else f"= ANY(ARRAY{ids})"
    return (
        f"SELECT {work.key} AS value FROM {work.rows}"  # noqa: S608 - our names
        f" WHERE {work.rows}.id {membership} AND {build_account_condition(scope, work.rows)}"
        f" AND {_build_range(work.key)}"
    )


def _format_bound(moment: datetime | None) -> str | None:
    return None if moment is None else format_rfc3339(moment)


def _has_row_text(kind: str, text: str, row: Row) -> bool:
    return has_text(row["doc"], kind, text)
