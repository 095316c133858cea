"""Indexes for lists by a filter: of status, provider, capability, cost, and texts."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from toolkit.store.text_index import index_missing, list_sqlite_schema

revision = "0015"
down_revision = "0014"

_NUMBER = sa.Integer().with_variant(sa.BigInteger(), "postgresql")
_TABLES = ("jobs", "workflows", "tasks")
_MISSING = "text_number IS NULL"


def upgrade() -> None:
    """Create the indexes, and index the texts of all records."""
    for name in ("status", "provider", "capability"):
        _create_index(f"ix_jobs_{name}", "jobs", name, "run_id", where="run_id IS NOT NULL")
    for table in ("workflows", "tasks"):
        op.create_index(f"ix_{table}_status", table, ["account_id", "status", "id"])
    if op.get_bind().dialect.name == "sqlite":
        _make_sqlite()
    else:
        _make_postgres()
    where = f"run_id IS NOT NULL AND {_MISSING}"
    _create_index("ix_jobs_text", "jobs", "run_id", where=where)
    for table in ("workflows", "tasks"):
        _create_index(f"ix_{table}_text", table, "id", where=_MISSING)


def _create_index(name: str, table: str, *columns: str, where: str) -> None:
    condition = sa.text(where)
    names = ["account_id", *columns]
    op.create_index(name, table, names, sqlite_where=condition, postgresql_where=condition)


def _run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)


def _get_driver_connection() -> Any:
    return op.get_bind().connection.dbapi_connection


_SQLITE_COST = "json_extract(doc, '$.cost_usd')"


def _make_sqlite() -> None:
    _run(
        "CREATE INDEX ix_jobs_cost ON jobs (account_id,"
        f" printf('%.1e', round(min({_SQLITE_COST}, 99000.0), 9)), run_id, {_SQLITE_COST})"
        " WHERE run_id IS NOT NULL"
    )
    for table in _TABLES:
        op.add_column(table, sa.Column("text_number", _NUMBER, nullable=True))
    if not list_sqlite_schema():
        return  # this build of SQLite has no index of texts
    _run(
        "CREATE VIRTUAL TABLE input_texts USING fts5(id UNINDEXED, terms,"
        " tokenize='trigram case_sensitive 1', detail='none', columnsize=0)"
    )
    _run("CREATE VIRTUAL TABLE input_text_terms USING fts5vocab(input_texts, instance)")
    for table in _TABLES:
        _run(
            f"CREATE TRIGGER delete_{table}_text AFTER DELETE ON {table}"  # noqa: S608 - our names
            " WHEN OLD.text_number IS NOT NULL"
            " BEGIN DELETE FROM input_texts WHERE rowid = OLD.text_number; END"
        )
    index_missing(_get_driver_connection(), "sqlite")


_POSTGRES_COST = (
    r"CAST(CAST(replace(doc, '\u0000', '\ufffd') AS jsonb) ->> 'cost_usd' AS double precision)"
)
_HEAD = "LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE"


def _make_postgres() -> None:
    _run(
        f"CREATE FUNCTION get_cost(doc text) RETURNS double precision {_HEAD}"
        f" AS $$ SELECT {_POSTGRES_COST} $$"
    )
    _run(
        f"CREATE FUNCTION get_cost_step(doc text) RETURNS text {_HEAD}"
        " AS $$ SELECT ltrim(to_char(round(CAST("
        f"least({_POSTGRES_COST}, 99000.0) AS numeric), 9), '9.9EEEE')) $$"
    )
    _run(
        'CREATE INDEX ix_jobs_cost ON jobs (account_id, (get_cost_step(doc) COLLATE "C"), run_id,'
        " get_cost(doc)) WHERE run_id IS NOT NULL"
    )
    _run('CREATE TABLE input_texts (id text COLLATE "C" PRIMARY KEY, terms tsvector NOT NULL)')
    _run("ALTER TABLE input_texts ALTER COLUMN terms SET STATISTICS 0")
    for table in _TABLES:
        # A default writes no row, so that hardly any has to be updated.
        _run(f"ALTER TABLE {table} ADD COLUMN text_number bigint DEFAULT 1")
        _run(f"ALTER TABLE {table} ALTER COLUMN text_number DROP DEFAULT")
    index_missing(_get_driver_connection(), "postgresql")
    _run("CREATE INDEX ix_input_texts_terms ON input_texts USING gin (terms)")
    for table in _TABLES:
        _run(
            f"CREATE FUNCTION delete_text_{table}_delete() RETURNS trigger LANGUAGE plpgsql"  # noqa: S608
            " AS $$ BEGIN DELETE FROM input_texts USING old_rows"
            " WHERE input_texts.id = old_rows.id; RETURN NULL; END $$"
        )
        _run(
            f"CREATE TRIGGER delete_text_{table}_delete AFTER DELETE ON {table}"
            " REFERENCING OLD TABLE AS old_rows"
            f" FOR EACH STATEMENT EXECUTE FUNCTION delete_text_{table}_delete()"
        )
