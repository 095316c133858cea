"""Connections that an operator's account shares, and which accounts are an operator's."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Create them; the account of a directory's own notebooks is an operator's."""
    op.create_table(
        "shares",
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("connection_id", sa.String(), nullable=False),
        sa.Column("shared_with", sa.String(), nullable=False),
        sa.Column("created_at", sa.String(), nullable=False),
    )
    op.create_index("ix_shares_with", "shares", ["shared_with"])
    op.create_index("ix_shares_connection", "shares", ["connection_id"])
    op.create_index("ix_usage_connection", "usage", ["connection_id", "day"])
    # An earlier version that has the directory open yet makes accounts without it.
    op.add_column(
        "accounts",
        sa.Column("operator", sa.Boolean(), nullable=False, server_default=sa.text("0")),
    )
    op.execute("UPDATE accounts SET operator = 1 WHERE email = 'notebook@localhost.localdomain'")
