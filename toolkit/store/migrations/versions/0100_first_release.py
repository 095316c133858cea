"""The tables of 0.1.0, which every database is made with: `toolkit.store.tables`."""

revision = "0100"
down_revision = None


def upgrade() -> None:
    """Change nothing: a database without tables gets the newest at once."""
