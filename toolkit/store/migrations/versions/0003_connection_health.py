"""A column for a connection's health."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the column; nothing is known of the health of earlier connections."""
    op.add_column("connections", sa.Column("health", sa.String(), nullable=True))
