"""PostgreSQL's triggers, which maintain the same data as SQLite's triggers: sums of bytes, the
configuration's version, the index of tags, and the index of texts.

They run once for each statement, with all of its rows, so that rows of one account add to its sums
once. They lock the sums in the order of the accounts' ids, as the writer does, so that two engines
cannot deadlock.
"""

from collections.abc import Iterator
from typing import Final, Literal

from toolkit.store.configuration_version import COLUMN_WITH_LAST_USE, DECISIVE_COLUMNS, RAISE_SQL
from toolkit.store.stored_bytes import (
    COUNTED_COLUMNS,
    EVENT_ACCOUNT_SQL,
    build_artifact_size,
    build_event_size,
    build_record_size,
)
from toolkit.store.text_index import TEXT_TABLES

Verb = Literal["insert", "update", "delete"]
VERBS: Final[tuple[Verb, ...]] = ("insert", "update", "delete")
# PostgreSQL rejects NUL, which JSON may hold; these values are only compared and searched.
READ_JSON_SQL: Final = r"""
CREATE FUNCTION read_json(doc text) RETURNS jsonb LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$ SELECT CAST(replace(doc, '\u0000', '\ufffd') AS jsonb) $$
"""
_TABLES: Final[dict[Verb, str]] = {
    "insert": "NEW TABLE AS new_rows",
    "update": "OLD TABLE AS old_rows NEW TABLE AS new_rows",
    "delete": "OLD TABLE AS old_rows",
}
_ADD_TAGS: Final = (
    "INSERT INTO tags (account_id, tag, resource_id)"
    " SELECT account_id, tag, new_rows.id FROM new_rows,"
    " jsonb_array_elements_text(read_json(new_rows.tags)) AS tag"
    " ORDER BY 1, 2, 3 ON CONFLICT DO NOTHING;"
)
_REMOVE_TAGS: Final = (
    "DELETE FROM tags USING old_rows WHERE tags.account_id = old_rows.account_id"
    " AND tags.resource_id = old_rows.id;"
)
_DELETE_TEXTS: Final = "DELETE FROM input_texts USING old_rows WHERE input_texts.id = old_rows.id;"
_TAG_BODIES: Final[dict[Verb, str]] = {
    "insert": _ADD_TAGS,
    "update": f"{_REMOVE_TAGS} {_ADD_TAGS}",
    "delete": _REMOVE_TAGS,
}


def _build_trigger(name: str, table: str, verb: Verb, body: str) -> Iterator[str]:
    """Build the statements that make a trigger: its function, and the trigger itself."""
    function = f"{name}_{table}_{verb}"
    yield (
        f"CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql"
        f" AS $$ BEGIN {body} RETURN NULL; END $$"
    )
    yield (
        f"CREATE TRIGGER {function} AFTER {verb.upper()} ON {table} REFERENCING {_TABLES[verb]}"
        f" FOR EACH STATEMENT EXECUTE FUNCTION {function}()"
    )


def _build_count(table: str, verb: Verb) -> str:
    """Build the statement that adds a statement's changes to the sums of its accounts."""
    parts = []
    for rows, sign in (("new_rows", ""), ("old_rows", "-")):
        if rows not in _TABLES[verb]:
            continue
        if table == "events":
            account = EVENT_ACCOUNT_SQL.format(row=rows)
            sizes = "0", build_event_size(rows, "postgresql")
        else:
            account = "account_id"
            sizes = build_artifact_size(table, rows), build_record_size(table, rows, "postgresql")
        artifacts, records = (f"{sign}({size})" for size in sizes)
        parts.append(
            f"SELECT {account} AS account, {artifacts} AS artifacts, {records} AS records"  # noqa: S608
            f" FROM {rows}"
        )
    return (
        "INSERT INTO stored_bytes AS kept (id, artifacts, records)"  # noqa: S608 - our names
        " SELECT account, sum(changed.artifacts), sum(changed.records)"
        f" FROM ({' UNION ALL '.join(parts)}) AS changed WHERE account IS NOT NULL"
        " GROUP BY account HAVING sum(changed.artifacts) <> 0 OR sum(changed.records) <> 0"
        " ORDER BY account"
        " ON CONFLICT (id) DO UPDATE SET artifacts = kept.artifacts + excluded.artifacts,"
        " records = kept.records + excluded.records;"
    )


def _build_difference(table: str, column: str) -> str:
    """Build the condition that an update changes a column; a key's last use does not count."""
    old, new = f"old_rows.{column}", f"new_rows.{column}"
    if (table, column) == COLUMN_WITH_LAST_USE:
        old, new = (f"read_json({value}) - 'last_used_at'" for value in (old, new))
    return f"{old} IS DISTINCT FROM {new}"


def _build_raise(table: str, columns: tuple[str, ...], verb: Verb) -> str:
    """Build the statement that increments the configuration's version if some of it has changed."""
    rows = "old_rows" if verb == "delete" else "new_rows"
    if verb == "update":
        changed = " OR ".join(_build_difference(table, name) for name in columns)
        rows = f"old_rows JOIN new_rows ON new_rows.id = old_rows.id WHERE {changed}"
    return f"IF EXISTS (SELECT 1 FROM {rows}) THEN {RAISE_SQL} END IF;"  # noqa: S608 - our names


def build_triggers() -> Iterator[str]:
    """Build the statements that make all triggers, and the function that they read JSON by."""
    yield READ_JSON_SQL
    for table in COUNTED_COLUMNS:
        for verb in VERBS:
            yield from _build_trigger("count", table, verb, _build_count(table, verb))
    for verb in ("insert", "delete"):
        yield from _build_trigger("count", "events", verb, _build_count("events", verb))
    for table, columns in DECISIVE_COLUMNS.items():
        for verb in VERBS:
            body = _build_raise(table, columns, verb)
            yield from _build_trigger("configure", table, verb, body)
    for verb, body in _TAG_BODIES.items():
        yield from _build_trigger("index_tags", "annotations", verb, body)
    for table in TEXT_TABLES:
        yield from _build_trigger("delete_text", table, "delete", _DELETE_TEXTS)
