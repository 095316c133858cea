"""Each key's spending by day, and the key that work was asked for with."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Create the table and the column; earlier work counts against no key."""
    op.create_table(
        "spending",
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("nano", sa.Integer(), nullable=False),
    )
    op.add_column("roots", sa.Column("key_id", sa.String(), nullable=True))
