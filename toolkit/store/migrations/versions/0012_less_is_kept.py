"""Less is kept: decisions of the router packed beside their job, and events without repetitions.

The events of a job that was asked for alone are those of its run, by the same numbers: they name
the job no longer, and are in no second index.
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

_OWNER_OF_EVENT = (
    "coalesce((SELECT account_id FROM roots WHERE id = {row}.resource_id),"
    " (SELECT account_id FROM workflows WHERE id = {row}.resource_id))"
)
_IS_ALONE = "(resource_id LIKE 'run~_%' ESCAPE '~' OR resource_id = job_id)"


def upgrade() -> None:
    """Add a column for decisions, rebuild the events, and drop an index that nothing reads."""
    op.add_column("jobs", sa.Column("ranking", sa.LargeBinary(), nullable=True))
    op.drop_index("ix_artifacts_held", "artifacts")
    op.execute("ALTER TABLE events RENAME TO earlier_events")
    op.create_table(
        "events",
        sa.Column("resource_id", sa.String(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("at", sa.String(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("job_id", sa.String(), nullable=True),
        sa.Column("job_n", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("resource_id", "n"),
        sqlite_with_rowid=False,
    )
    op.execute(
        "INSERT INTO events SELECT resource_id, n, type, at, data,"  # noqa: S608 - our names
        f" CASE WHEN {_IS_ALONE} THEN NULL ELSE job_id END,"
        f" CASE WHEN {_IS_ALONE} THEN NULL ELSE job_n END FROM earlier_events"
    )
    op.execute("DROP TABLE earlier_events")
    op.create_index(
        "ix_events_job",
        "events",
        ["job_id", "job_n"],
        unique=True,
        sqlite_where=sa.text("job_id IS NOT NULL"),
    )
    for verb, row, sign in (("insert", "NEW", ""), ("delete", "OLD", "-")):
        owner = _OWNER_OF_EVENT.format(row=row)
        size = f"{sign}(100 + length(CAST({row}.data AS BLOB)))"
        statement = (
            f"CREATE TRIGGER count_events_{verb} AFTER {verb.upper()} ON events BEGIN"  # noqa: S608
            f" INSERT INTO stored_bytes SELECT account, 0, {size}"
            f" FROM (SELECT {owner} AS account) WHERE account IS NOT NULL"
            " ON CONFLICT (id) DO UPDATE SET artifacts = artifacts + excluded.artifacts,"
            " records = records + excluded.records; END"
        )
        op.execute(statement)
