"""The version after this one: the code at hand with one migration more.

The migration adds what any may add: columns, an index, a table.
"""

from pathlib import Path
from shutil import copytree, ignore_patterns

from tests.support.code_blocks import ROOT
from toolkit.store.schema import HEAD_REVISION, OLDEST_REVISION

LATER = f"{int(HEAD_REVISION) + 1:04}"
# Triggers of SQLite insert whole rows of sums: a migration that adds to them makes those anew.
_MIGRATION = f'''
"""Added by a test."""

import sqlalchemy as sa
from alembic import op

from toolkit.store.tables import metadata

revision, down_revision = "{LATER}", "{HEAD_REVISION}"


def upgrade() -> None:
    """Add a column to each table, an index, and a table."""
    for table in metadata.tables.keys() - {{"stored_bytes"}}:
        op.add_column(table, sa.Column("later", sa.String(), nullable=True))
    op.create_index("ix_roots_later", "roots", ["later"])
    op.create_table("later", sa.Column("id", sa.String(), primary_key=True))
'''


def make_later_version(folder: Path, *, oldest: str = OLDEST_REVISION) -> Path:
    """Make a folder with the package of the version after this one, and return it.

    Args:
        folder: where it is made.
        oldest: the oldest version that may use the tables of the later one.
    """
    copytree(ROOT / "toolkit", folder / "toolkit", ignore=ignore_patterns("*.pyc.*"))
    store = folder / "toolkit" / "store"
    (store / "migrations" / "versions" / f"{LATER}_later.py").write_text(_MIGRATION)
    schema = (store / "schema.py").read_text()
    for name, mine, later in (
        ("HEAD_REVISION", HEAD_REVISION, LATER),
        ("OLDEST_REVISION", OLDEST_REVISION, oldest),
    ):
        said = f'\n{name} = "{mine}"'
        assert schema.count(said) == 1
        schema = schema.replace(said, f'\n{name} = "{later}"')
    (store / "schema.py").write_text(schema)
    return folder
