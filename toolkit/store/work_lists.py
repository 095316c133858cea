"""Lists of runs, workflows and tasks, by a filter: the statements, and the search in texts.

A filtered list is read in slices of so many rows: the edge of a slice is found in an index, and
what is looked at lies above it. So a filter that hardly anything fits does not hold up the loop.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, Final

from pydantic_core import from_json

from toolkit.contract.base import format_rfc3339
from toolkit.contract.ids import Prefix, make_earliest_id
from toolkit.contract.operations.work_queries import WorkFilter

SLICE_ROWS: Final = 500
HAS_TEXT: Final = "has_text"  # the name of the database's function
# An id may be made a while before its record, and never later.
_ID_MARGIN_MS = 600_000
_AFTER_ALL_IDS = "~"  # sorts after whatever an id has


@dataclass(frozen=True, slots=True)
class IdSource:
    """The rows that have the ids of a list, in the order of an index.

    Attributes:
        table: where they are.
        key: the column of the ids.
        owned: the condition that they are the account's.
        joined: the table with the rows of the list, where that is another one, and how it is found.
    """

    table: str
    key: str
    owned: str
    joined: str = ""


@dataclass(frozen=True, eq=False)
class WorkList:
    """One kind of work: where its rows are, and the conditions of a filter.

    Attributes:
        prefix: that of its ids.
        rows: the table of its rows.
        ids: all ids of an account.
        tagged_ids: the ids of those with a tag; none where `ids` are looked through for them.
        annotated: the column of the id that tags and notes are kept by.
        conditions: by field of the filter.
    """

    prefix: Prefix
    rows: str
    ids: IdSource
    tagged_ids: IdSource | None
    annotated: str
    conditions: Mapping[str, str]


def _find_tagged(join: str) -> IdSource:
    owned = "tags.account_id = :account_id AND tags.tag = :tag0"
    return IdSource("tags", "tags.resource_id", owned, join)


def _match_name(column: str) -> str:
    """Build the condition that a capability has a name, or a name and version."""
    any_version = f"substr({column}, 1, length(:capability) + 1) = :capability || '@'"
    return f"({column} = :capability OR {any_version})"


def _match_common(rows: str, kind: str) -> dict[str, str]:
    cost = f"json_extract({rows}.doc, '$.cost_usd')"
    return {
        "status": f"{rows}.status = :status",
        "since": f"{rows}.created_at >= :since",
        "until": f"{rows}.created_at < :until",
        "min_cost_usd": f"{cost} >= :min_cost_usd",
        "max_cost_usd": f"{cost} <= :max_cost_usd",
        "text": f"{HAS_TEXT}({rows}.doc, '{kind}', :text)",
    }


_NODES_OF_WORKFLOW = "SELECT 1 FROM jobs WHERE jobs.workflow_id = workflows.id AND"
_NODES_OF_TASK = (
    "SELECT 1 FROM json_each(tasks.doc, '$.workflow_ids') AS made"
    " JOIN jobs ON jobs.workflow_id = made.value WHERE"
)
# What an earlier workflow did for a fork is not among its own jobs.
_KEPT_NODES = (
    "SELECT 1 FROM json_each(workflows.doc, '$.nodes') AS node"
    " WHERE json_extract(node.value, '$.provider') = :provider"
)
_NAME_OF_NODE = _match_name("json_extract(node.value, '$.capability')")
_NAME_OF_AGENT = _match_name(
    "json_extract(tasks.doc, '$.agent.name') || '@' || json_extract(tasks.doc, '$.agent.version')"
)
# As `to_run` shows the task of an agent's run.
_STATUS_OF_AGENT = (
    "CASE WHEN json_extract(tasks.doc, '$.error.code') = 'CANCELLED' THEN 'cancelled'"
    " WHEN tasks.status IN ('completed', 'failed') THEN tasks.status ELSE 'running' END"
)
RUN_LIST = WorkList(
    Prefix.RUN,
    "jobs",
    IdSource(
        "roots",
        "roots.id",
        "roots.account_id = :account_id AND roots.kind = 'run'",
        "jobs ON jobs.run_id = roots.id",
    ),
    _find_tagged("jobs ON jobs.run_id = tags.resource_id"),
    "jobs.run_id",
    {
        **_match_common("jobs", "run"),
        "capability": _match_name("jobs.capability"),
        "provider": "jobs.provider = :provider",
    },
)
AGENT_RUN_LIST = WorkList(
    Prefix.RUN,
    "tasks",
    IdSource("tasks", "tasks.run_id", "tasks.account_id = :account_id"),
    None,
    "tasks.id",
    {
        **_match_common("tasks", "agent_run"),
        "capability": _NAME_OF_AGENT,
        "provider": "FALSE",  # an agent's run names none
        "status": f"{_STATUS_OF_AGENT} = :status",
    },
)
WORKFLOW_LIST = WorkList(
    Prefix.WORKFLOW,
    "workflows",
    IdSource("workflows", "workflows.id", "workflows.account_id = :account_id"),
    _find_tagged("workflows ON workflows.id = tags.resource_id"),
    "workflows.id",
    {
        **_match_common("workflows", "workflow"),
        "capability": "EXISTS (SELECT 1 FROM json_each(workflows.doc, '$.nodes') AS node"  # noqa: S608
        f" WHERE {_NAME_OF_NODE})",
        "provider": f"(EXISTS ({_NODES_OF_WORKFLOW} jobs.provider = :provider)"
        f" OR EXISTS ({_KEPT_NODES}))",
    },
)
TASK_LIST = WorkList(
    Prefix.TASK,
    "tasks",
    IdSource("tasks", "tasks.id", "tasks.account_id = :account_id"),
    _find_tagged("tasks ON tasks.id = tags.resource_id"),
    "tasks.id",
    {
        **_match_common("tasks", "task"),
        "capability": f"EXISTS ({_NODES_OF_TASK} {_match_name('jobs.capability')})",
        "provider": f"EXISTS ({_NODES_OF_TASK} jobs.provider = :provider)",
    },
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
    """

    rows_sql: str
    edge_sql: str | None
    given: dict[str, object]
    lowest: str
    highest: str


def make_list_query(
    work: WorkList, account_id: str, wanted: WorkFilter, before: str | None
) -> WorkListQuery:
    """Make the query of a list of work.

    Args:
        work: the kind.
        account_id: whose.
        wanted: the filter.
        before: the id that the page before this one ended with.
    """
    given: dict[str, object] = {"account_id": account_id}
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
    source = work.tagged_ids if wanted.tags and work.tagged_ids else work.ids
    lowest, highest = f"{work.prefix}_", f"{work.prefix}_{_AFTER_ALL_IDS}"
    if wanted.since is not None:
        lowest = make_earliest_id(work.prefix, wanted.since, _ID_MARGIN_MS)
    return WorkListQuery(
        _build_rows(work, source, fields, len(wanted.tags)),
        _build_edge(source) if fields or wanted.tags else None,
        given,
        lowest,
        before or highest,
    )


@cache
def _build_rows(work: WorkList, source: IdSource, fields: tuple[str, ...], tags: int) -> str:
    """Build the statement that reads the rows between two ids, with their tags and note."""
    # The first tag is what a tagged source starts from.
    looked_for = range(1 if source is work.tagged_ids else 0, tags)
    conditions = [
        *(work.conditions[name] for name in fields),
        *(
            "EXISTS (SELECT 1 FROM tags AS other WHERE other.account_id = :account_id"  # noqa: S608
            f" AND other.tag = :tag{n} AND other.resource_id = {work.annotated})"
            for n in looked_for
        ),
    ]
    # CROSS, so that the database starts from the ids and has them in order.
    joined = f" CROSS JOIN {source.joined}" if source.joined else ""
    return (
        f"SELECT {work.rows}.*, {source.key} AS listed_id, annotations.tags, annotations.note"  # noqa: S608 - our names
        f" FROM {source.table}{joined} LEFT JOIN annotations ON annotations.id = {work.annotated}"
        f" WHERE {' AND '.join([source.owned, *_bound(source), *conditions])}"
        f" ORDER BY {source.key} DESC LIMIT :limit"
    )


@cache
def _build_edge(source: IdSource) -> str:
    """Build the statement that finds the last id of a slice."""
    return (
        f"SELECT {source.key} AS edge FROM {source.table}"  # noqa: S608 - our names
        f" WHERE {' AND '.join([source.owned, *_bound(source)])}"
        f" ORDER BY {source.key} DESC LIMIT 1 OFFSET {SLICE_ROWS - 1}"
    )


def _bound(source: IdSource) -> tuple[str, str]:
    return f"{source.key} < :before", f"{source.key} >= :edge"


def _format_bound(moment: datetime | None) -> str | None:
    return None if moment is None else format_rfc3339(moment)


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
