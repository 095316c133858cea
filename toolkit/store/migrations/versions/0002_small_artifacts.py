"""A column for the bytes of small artifacts, beside their record."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column; the bytes of earlier artifacts stay in their files."""
    op.add_column("artifacts", sa.Column("content", sa.LargeBinary(), nullable=True))
