"""The writer's session of PostgreSQL: how its statements are planned and run."""

from pathlib import Path

import psycopg

from toolkit.store import InsertRow, Store

NOTE_SQL = """
CREATE TABLE noted (jit text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO noted VALUES (current_setting('jit')); RETURN NULL; END $$;
CREATE TRIGGER note AFTER INSERT ON accounts FOR EACH STATEMENT EXECUTE FUNCTION note()
"""


async def test_no_statement_is_compiled(tmp_path: Path, postgres_url: str) -> None:
    """Given a server that compiles what seems dear, then it does not for a row that is written."""
    store = await Store.open(tmp_path, database=postgres_url)
    row = {"id": "acc", "email": "a@x.org", "created_at": "", "doc": "{}"}
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        assert connection.execute("SHOW jit").fetchone() == ("on",)
        connection.execute(NOTE_SQL)
        await store.write([InsertRow("accounts", row)])
        assert connection.execute("SELECT jit FROM noted").fetchall() == [("off",)]
    await store.close()
