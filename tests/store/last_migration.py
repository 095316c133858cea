"""The last migration undone, so that tests have a database of the version before it."""

from toolkit.store.dialects import DatabaseKind
from toolkit.store.text_index import TEXT_TABLES

BEFORE = "0014"
_INDEXES = (
    "ix_jobs_status", "ix_jobs_provider", "ix_jobs_capability", "ix_jobs_cost",
    "ix_workflows_status", "ix_tasks_status", *(f"ix_{table}_text" for table in TEXT_TABLES),
)  # fmt: skip


def list_undoing(kind: DatabaseKind) -> list[str]:
    """List the statements that undo it."""
    if kind == "sqlite":
        others = [f"DROP TRIGGER delete_{table}_text" for table in TEXT_TABLES]
        others.append("DROP TABLE input_text_terms")
    else:
        others = [f"DROP FUNCTION delete_text_{table}_delete CASCADE" for table in TEXT_TABLES]
    functions = ["DROP FUNCTION get_cost, get_cost_step"] if kind == "postgresql" else []
    return [
        *others,
        *(f"DROP INDEX {name}" for name in _INDEXES),
        *functions,
        "DROP TABLE input_texts",
        *(f"ALTER TABLE {table} DROP COLUMN text_number" for table in TEXT_TABLES),
        f"UPDATE alembic_version SET version_num = '{BEFORE}'",
    ]
