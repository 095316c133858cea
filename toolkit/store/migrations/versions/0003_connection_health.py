"""How a connection has been doing stands beside it."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make room for it; nothing is known of connections made before."""
    op.add_column("connections", sa.Column("health", sa.String(), nullable=True))
