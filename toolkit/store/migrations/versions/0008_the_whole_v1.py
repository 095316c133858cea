"""Tables of storage, templates, agents and usage; sizes of artifacts, and agents of roots."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Create them, and set the sizes of earlier artifacts."""
    for table in ("storage", "templates"):
        op.create_table(
            table,
            sa.Column("id", sa.String(), primary_key=True),
            sa.Column("account_id", sa.String(), nullable=False),
            sa.Column("status", sa.String(), nullable=False),
            sa.Column("vendor_id", sa.String(), nullable=True),
            sa.Column("connection_id", sa.String(), nullable=True),
            sa.Column("created_at", sa.String(), nullable=False),
            sa.Column("doc", sa.Text(), nullable=False),
            sa.Column("spec", sa.Text(), nullable=False),
        )
        op.create_index(f"ix_{table}_account", table, ["account_id", "id"])
    op.create_table(
        "agents",
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("named", sa.String(), nullable=False, unique=True),
        sa.Column("deleted", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.Column("doc", sa.Text(), nullable=False),
    )
    op.create_index("ix_agents_account", "agents", ["account_id", "id"])
    op.create_table(
        "usage",
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("day", sa.String(), nullable=False),
        sa.Column("capability", sa.String(), nullable=False),
        sa.Column("provider", sa.String(), nullable=True),
        sa.Column("connection_id", sa.String(), nullable=True),
        sa.Column("agent_id", sa.String(), nullable=True),
        *(
            sa.Column(name, sa.Integer(), nullable=False, server_default=sa.text("0"))
            for name in ("jobs", "failed", "cached", "calls", "unpriced", "nano", "latency_ms")
        ),
    )
    op.create_index("ix_usage_account", "usage", ["account_id", "day"])
    op.add_column("accounts", sa.Column("spec", sa.Text(), nullable=True))
    op.add_column("roots", sa.Column("agent_id", sa.String(), nullable=True))
    op.add_column("tasks", sa.Column("run_id", sa.String(), nullable=True))
    op.create_index("ix_tasks_run", "tasks", ["account_id", "run_id"])
    op.add_column("artifacts", sa.Column("size_bytes", sa.Integer(), nullable=True))
    op.execute("UPDATE artifacts SET size_bytes = json_extract(doc, '$.size_bytes')")
    op.create_index("ix_artifacts_held", "artifacts", ["account_id", "deleted", "size_bytes"])
    op.create_index(
        "ix_artifacts_files",
        "artifacts",
        ["sha256"],
        sqlite_where=sa.text("content IS NULL AND deleted = 0"),
    )
    op.create_index("ix_roots_queue", "roots", ["account_id"], sqlite_where=sa.text("open = 1"))
