"""The index of the texts in the inputs of runs, workflows and tasks.

Each database has its own full-text index in the table `input_texts`: FTS5 of SQLite, and a GIN
index of `tsvector` in PostgreSQL. Terms are all sequences of three characters of casefolded texts.
A text of one or two characters is looked up as the beginning of terms.

Writers insert the texts in the transaction that inserts a record, and inputs never change, so the
index is right at any moment. Triggers delete the texts with their record. A record is not indexed,
and its column `text_number` is NULL, if an earlier version wrote it or its text has too many terms.
A search reads such records themselves.

https://sqlite.org/fts5.html#the_trigram_tokenizer
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import cache, lru_cache
from typing import Any, Final

from pydantic_core import from_json

from toolkit.store.dialects import DatabaseKind
from toolkit.store.read_connection import ReadConnection
from toolkit.store.writing.statements import build_insert

_INPUTS: Final[dict[str, Callable[[dict[str, Any]], object]]] = {
    "run": lambda record: record.get("input"),
    "agent_run": lambda record: (record.get("agent") or {}).get("input"),
    "workflow": lambda record: [
        record.get("name"),
        [node.get("input") for node in record.get("nodes") or ()],
    ],
    "task": lambda record: record.get("objective"),
}
# The kind of record, as `has_text` takes it, by table.
TEXT_TABLES: Final = {"jobs": "run", "workflows": "workflow", "tasks": "task"}
# More terms would make the index large, and few searches could exclude the record.
MAX_TERMS: Final = 20_000
# A text that more records have is frequent: the newest records fill a page soon.
MAX_CANDIDATES: Final = 5_000
# PostgreSQL's rows of `input_texts` have the ids of records, and no numbers.
POSTGRES_NUMBER: Final = 1
_SIZE: Final = 3  # characters of a term
_PART_SIZE: Final = 20_000  # characters: about a millisecond of work
# Terms of a long text that a search looks up; more of them exclude hardly any more records.
_MAX_SEARCHED_TERMS: Final = 8
_END: Final = "\1" * (_SIZE - 1)  # behind each text, so that a term begins with each character
_SEPARATOR: Final = "\2"  # between the terms that PostgreSQL is given
# PostgreSQL stores no NUL, and SQLite replaces some characters.
_REPLACED: Final = str.maketrans({"\0": "\1", _SEPARATOR: "\1"})
_RESERVED: Final = frozenset("\0\1\2\ufffd\ufffe\uffff")
_LAST_CHARACTER: Final = "\U0010ffff"
_ROWS_AT_ONCE: Final = 1_000
_SQLITE_TABLE: Final = (
    "CREATE VIRTUAL TABLE input_texts USING fts5(id UNINDEXED, terms,"
    " tokenize='trigram case_sensitive 1', detail='none', columnsize=0)"
)
_SQLITE_SCHEMA: Final = (
    _SQLITE_TABLE,
    "CREATE VIRTUAL TABLE input_text_terms USING fts5vocab(input_texts, instance)",
    *(
        f"CREATE TRIGGER delete_{table}_text AFTER DELETE ON {table}"  # noqa: S608 - our names
        " WHEN OLD.text_number IS NOT NULL"
        " BEGIN DELETE FROM input_texts WHERE rowid = OLD.text_number; END"
        for table in TEXT_TABLES
    ),
)
POSTGRES_SCHEMA: Final = (
    'CREATE TABLE input_texts (id text COLLATE "C" PRIMARY KEY, terms tsvector NOT NULL)',
    # Without statistics the server takes every text for rare, and so reads the index.
    "ALTER TABLE input_texts ALTER COLUMN terms SET STATISTICS 0",
    "CREATE INDEX ix_input_texts_terms ON input_texts USING gin (terms)",
)
SQLITE_COLUMNS: Final = ("rowid", "id", "terms")
HAS_INDEX_SQL: Final = "SELECT 1 FROM sqlite_master WHERE name = 'input_texts'"
_LAST_NUMBER_SQL: Final = "SELECT rowid FROM input_texts ORDER BY rowid DESC LIMIT 1"
POSTGRES_INSERT_SQL: Final = (
    "INSERT INTO input_texts (id, terms)"
    " SELECT v.id, array_to_tsvector(string_to_array(v.terms, chr(2)))"
    " FROM unnest(%s::text[], %s::text[]) AS v (id, terms)"
)
_FIND_TERMS_SQL: Final[dict[DatabaseKind, str]] = {
    "sqlite": "SELECT id FROM input_texts WHERE input_texts MATCH :wanted LIMIT :most",
    "postgresql": "SELECT id FROM input_texts WHERE terms @@ CAST(:wanted AS tsquery) LIMIT :most",
}
_FIND_PREFIX_SQL: Final = (
    "SELECT record.id FROM (SELECT DISTINCT doc FROM input_text_terms"
    " WHERE term >= :wanted AND term < :end LIMIT :most) AS found"
    " CROSS JOIN input_texts AS record ON record.rowid = found.doc"
)


def has_text(doc: str, kind: str, text: str) -> bool:
    """Return whether a text, in lower case, stands in the input that a record's document has.

    >>> has_text('{"input": {"objective": "On Tides"}, "output": {"text": "Salt"}}', "run", "tides")
    True
    >>> has_text('{"input": {"objective": "On Tides"}, "output": {"text": "Salt"}}', "run", "salt")
    False
    """
    # JSON has these characters as they are, so most documents need not be parsed.
    if is_plain(text) and text not in doc.casefold():
        return False
    return any(text in candidate for candidate in iter_folded_texts(doc, kind))


def iter_folded_texts(doc: str, kind: str) -> Iterator[str]:
    """Yield each text in the input that a record's document has, casefolded."""
    return (text.casefold() for text in _iter_texts(_INPUTS[kind](from_json(doc))))


@lru_cache(maxsize=8)  # a search asks it of every row
def is_plain(text: str) -> bool:
    """Return whether JSON spells a text as it is, so that a document can be searched unparsed."""
    return text.isascii() and text.isprintable() and not set(text) & {'"', "\\", "/"}


def _iter_texts(value: object) -> Iterator[str]:
    """Yield every text in a JSON value; the names of members are none."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from _iter_texts(member)
    elif isinstance(value, list):
        for item in value:
            yield from _iter_texts(item)


@cache
def list_sqlite_schema() -> tuple[str, ...]:
    """List the statements that create the index; empty if this SQLite lacks FTS5 with trigrams."""
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute(_SQLITE_TABLE)
        except sqlite3.OperationalError:
            return ()
    return _SQLITE_SCHEMA


def fold_inputs(table: str, rows: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the texts of new rows that are to be indexed, by the ids of the rows."""
    folded = {}
    for row_id, row in rows.items():
        if table == "jobs" and row.get("run_id") is None:
            continue  # the job of a workflow's node is in no list
        try:
            texts = list(iter_folded_texts(row["doc"], TEXT_TABLES[table]))
        except ValueError:
            texts = []  # a document that cannot be read has no text to be found
        text = "".join(f"{item}{_END}" for item in texts).translate(_REPLACED)
        if len(text) <= MAX_TERMS or len(list_terms(text)) <= MAX_TERMS:
            folded[row_id] = text
    return folded


def list_terms(text: str) -> set[str]:
    """List the terms of a text: of "teas", they are "tea" and "eas".

    If there are more than `MAX_TERMS`, the list ends with some of them.
    """
    terms: set[str] = set()
    # Other threads have their turns between two parts, not within one.
    for at in range(0, len(text), _PART_SIZE):
        part = text[at : at + _PART_SIZE + _SIZE - 1]
        terms.update(map("".join, zip(part, part[1:], part[2:], strict=False)))
        if len(terms) > MAX_TERMS:
            break
    return terms


def build_postgres_values(folded: Mapping[str, str]) -> list[list[str]]:
    """Build the values of `POSTGRES_INSERT_SQL`."""
    return [list(folded), [_SEPARATOR.join(list_terms(text)) for text in folded.values()]]


async def find_candidates(connection: ReadConnection, text: str) -> list[str] | None:
    """Find the rows of all accounts and lists that may have a casefolded text, and are indexed.

    Returns:
        their ids, in no order; None if there are too many, or the index cannot find the text.
    """
    terms = [text[at : at + _SIZE] for at in range(max(1, len(text) - _SIZE + 1))]
    terms = list(dict.fromkeys(term for term in terms if term and not _RESERVED & {*term}))
    if not terms or (
        connection.kind == "sqlite" and await connection.fetch_values(HAS_INDEX_SQL, {}) is None
    ):
        return None
    searched_terms = terms[:: max(1, -(-len(terms) // _MAX_SEARCHED_TERMS))]
    is_prefix = len(text) < _SIZE
    statement = _FIND_TERMS_SQL[connection.kind]
    parameters: dict[str, object] = {"most": MAX_CANDIDATES + 1}
    if connection.kind == "postgresql":
        lexemes = " & ".join(map(_quote_lexeme, searched_terms))
        parameters["wanted"] = f"{lexemes}:*" if is_prefix else lexemes
    elif is_prefix:
        statement = _FIND_PREFIX_SQL
        parameters |= {"wanted": text, "end": f"{text}{_LAST_CHARACTER}"}
    else:
        parameters["wanted"] = " AND ".join(map(_quote_phrase, searched_terms))
    rows = await connection.fetch_rows(statement, parameters)
    return None if len(rows) > MAX_CANDIDATES else [row["id"] for row in rows]


def _quote_phrase(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def _quote_lexeme(term: str) -> str:
    return "'" + term.replace("\\", "\\\\").replace("'", "''") + "'"


def number_texts(
    connection: sqlite3.Connection, folded: Mapping[str, str]
) -> list[tuple[int, str, str]]:
    """Number the texts of new rows of SQLite, in the transaction that inserts them.

    Returns:
        the number, the row's id and the text of each.
    """
    (last,) = connection.execute(_LAST_NUMBER_SQL).fetchone() or (0,)
    return [(number, *entry) for number, entry in enumerate(folded.items(), last + 1)]


def index_missing(connection: sqlite3.Connection) -> None:
    """Index the texts of all records of SQLite that are not indexed yet; the caller commits."""
    if connection.execute(HAS_INDEX_SQL).fetchone() is None:
        return
    for table in TEXT_TABLES:
        has_id = " AND run_id IS NOT NULL" if table == "jobs" else ""
        select = (
            f"SELECT id, doc FROM {table} WHERE id > ? AND text_number IS NULL"  # noqa: S608
            f"{has_id} ORDER BY id LIMIT {_ROWS_AT_ONCE}"
        )
        update = f"UPDATE {table} SET text_number = ? WHERE id = ?"  # noqa: S608 - our names
        after = ""
        while documents := connection.execute(select, (after,)).fetchall():
            after = documents[-1][0]
            rows = {key: {"doc": doc, "run_id": key} for key, doc in documents}
            texts = number_texts(connection, fold_inputs(table, rows))
            connection.executemany(build_insert("input_texts", SQLITE_COLUMNS, "", 1), texts)
            connection.executemany(update, [(number, row_id) for number, row_id, _ in texts])
