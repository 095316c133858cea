"""Limits that the engines of a deployment share."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

_STRING = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "shared_limits",
        sa.Column("id", _STRING, primary_key=True),
        sa.Column("changed_at", sa.Float(), nullable=False),
        sa.Column("doc", sa.Text(), nullable=False),
    )
    op.create_index("ix_shared_limits_changed", "shared_limits", ["changed_at"])
