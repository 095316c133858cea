"""The next version: the current code with an additional migration.

The migration makes the changes that a migration may make: columns, an index, a table.
"""

from pathlib import Path
from shutil import copytree, ignore_patterns

from tests.support.code_blocks import ROOT
from toolkit.store.schema import HEAD_REVISION, OLDEST_REVISION

LATER = f"{int(HEAD_REVISION) + 1:04}"
# SQLite's triggers insert whole rows of sums, so a migration of these tables must replace them.
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
    """Make a folder with the package of the next version, and return it.

    Args:
        folder: folder for the package.
        oldest: oldest version that may use the tables of the next version.
    """
    copytree(ROOT / "toolkit", folder / "toolkit", ignore=ignore_patterns("*.pyc.*"))
    store = folder / "toolkit" / "store"
    (store / "migrations" / "versions" / f"{LATER}_later.py").write_text(_MIGRATION)
    schema = (store / "schema.py").read_text()
    for name, mine, later in (
        ("HEAD_REVISION", HEAD_REVISION, LATER),
        ("OLDEST_REVISION", OLDEST_REVISION, oldest),
    ):
        assignment = f'\n{name} = "{mine}"'
        assert schema.count(assignment) == 1
        schema = schema.replace(assignment, f'\n{name} = "{later}"')
    (store / "schema.py").write_text(schema)
    return folder
