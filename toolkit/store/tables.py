"""The tables; `migrations/versions` creates them, and a test keeps the two in agreement.

Each table declares the roles of its rows in upkeep (`table_roles`).

Their triggers are in `stored_bytes`, `configuration_version`, `schema` and `text_index`, and those
of PostgreSQL in `postgres/triggers`. `cost_index` has an index of an expression, and `text_index`
the table of texts. A type with a variant here needs the same variant in migrations.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    false,
    text,
)

from toolkit.store.table_roles import TableRoles, get_roles

metadata = MetaData()
# Sorted by bytes everywhere, as ids are; a database's language may sort in another order.
_STRING = String().with_variant(String(collation="C"), "postgresql")
# SQLite's numbers have 64 bits anyway.
_NUMBER = Integer().with_variant(BigInteger(), "postgresql")


def _make_id_column() -> "Column[str]":
    return Column("id", _STRING, primary_key=True)


def _make_text_column(name: str, *, optional: bool = False, unique: bool = False) -> "Column[str]":
    return Column(name, _STRING, nullable=optional, unique=unique)


def _make_partial_index(name: str, *columns: str, clause: str, unique: bool = False) -> Index:
    """Make an index of the rows that fit a condition; in it, 0 and 1 stand for truth values."""
    native = clause.replace("= 0", "= FALSE").replace("= 1", "= TRUE")
    return Index(
        name, *columns, unique=unique, sqlite_where=text(clause), postgresql_where=text(native)
    )


def _make_doc_column(name: str = "doc") -> "Column[str]":
    return Column(name, Text, nullable=False)


def _make_text_number_column() -> "Column[int]":
    """Make the column of the record's number in the index of texts; NULL if it is not in it."""
    return Column("text_number", _NUMBER, nullable=True)


def _make_infrastructure_table(name: str) -> Table:
    """Make a table of managed resources: the record, and the vendor's own id."""
    return Table(
        name,
        metadata,
        _make_id_column(),
        _make_text_column("account_id"),
        _make_text_column("status"),
        _make_text_column("vendor_id", optional=True),
        _make_text_column("connection_id", optional=True),
        _make_text_column("created_at"),
        _make_doc_column(),
        _make_doc_column("spec"),
        Index(f"ix_{name}_account", "account_id", "id"),
        info=TableRoles(counted=("doc", "spec"), is_managed=True).to_info(),
    )


accounts = Table(
    "accounts",
    metadata,
    _make_id_column(),
    _make_text_column("email", unique=True),
    _make_text_column("created_at"),
    _make_doc_column(),
    Column("spec", Text, nullable=True),
    Column("operator", Boolean, nullable=False, server_default=false()),
    info=TableRoles(decisive=("doc", "spec", "operator")).to_info(),
)
api_keys = Table(
    "api_keys",
    metadata,
    _make_id_column(),
    _make_text_column("account_id"),
    _make_text_column("digest", unique=True),
    _make_text_column("revoked_at", optional=True),
    _make_text_column("created_at"),
    _make_doc_column(),
    Index("ix_api_keys_account", "account_id", "id"),
    info=TableRoles(counted=("doc",), decisive=("doc", "digest", "account_id")).to_info(),
)
connections = Table(
    "connections",
    metadata,
    _make_id_column(),
    _make_text_column("account_id"),
    _make_text_column("provider"),
    Column("deleted", Boolean, nullable=False),
    _make_text_column("created_at"),
    _make_doc_column(),
    _make_text_column("health", optional=True),
    Index("ix_connections_account", "account_id", "id"),
    info=TableRoles(
        counted=("doc",), decisive=("doc", "provider", "account_id", "deleted")
    ).to_info(),
)
shares = Table(
    "shares",
    metadata,
    _make_id_column(),
    _make_text_column("connection_id"),
    _make_text_column("shared_with"),
    _make_text_column("created_at"),
    Index("ix_shares_with", "shared_with"),
    Index("ix_shares_connection", "connection_id"),
    info=TableRoles(decisive=("connection_id", "shared_with")).to_info(),
)
jobs = Table(
    "jobs",
    metadata,
    _make_id_column(),
    _make_text_column("account_id"),
    _make_text_column("root_id"),
    _make_text_column("run_id", optional=True, unique=True),
    _make_text_column("workflow_id", optional=True),
    _make_text_column("node_id", optional=True),
    _make_text_column("status"),
    _make_text_column("capability"),
    _make_text_column("provider", optional=True),
    _make_text_column("vendor_job_id", optional=True),
    _make_text_column("created_at"),
    _make_doc_column(),
    Column("ranking", LargeBinary, nullable=True),
    _make_text_number_column(),
    Index("ix_jobs_account", "account_id", "id"),
    Index("ix_jobs_workflow", "workflow_id"),
    # Lists of runs by a filter, newest first; the jobs of workflows are not in them.
    *(
        _make_partial_index(
            f"ix_jobs_{name}", "account_id", name, "run_id", clause="run_id IS NOT NULL"
        )
        for name in ("status", "provider", "capability")
    ),
    _make_partial_index(
        "ix_jobs_text", "account_id", "run_id", clause="run_id IS NOT NULL AND text_number IS NULL"
    ),
    info=TableRoles(counted=("doc",), deleted_with={"id": ("job",)}, owns_rows=True).to_info(),
)
workflows = Table(
    "workflows",
    metadata,
    _make_id_column(),
    _make_text_column("account_id"),
    _make_text_column("root_id"),
    _make_text_column("task_id", optional=True),
    _make_text_column("status"),
    _make_text_column("created_at"),
    _make_doc_column(),
    _make_doc_column("spec"),
    _make_text_number_column(),
    Index("ix_workflows_account", "account_id", "id"),
    Index("ix_workflows_status", "account_id", "status", "id"),
    _make_partial_index("ix_workflows_text", "account_id", "id", clause="text_number IS NULL"),
    info=TableRoles(
        counted=("doc", "spec"), deleted_with={"id": ("workflow",)}, owns_rows=True
    ).to_info(),
)
tasks = Table(
    "tasks",
    metadata,
    _make_id_column(),
    _make_text_column("account_id"),
    _make_text_column("status"),
    _make_text_column("created_at"),
    _make_doc_column(),
    _make_text_column("run_id", optional=True),
    _make_text_number_column(),
    Index("ix_tasks_account", "account_id", "id"),
    Index("ix_tasks_status", "account_id", "status", "id"),
    _make_partial_index("ix_tasks_text", "account_id", "id", clause="text_number IS NULL"),
    Index("ix_tasks_run", "account_id", "run_id"),
    info=TableRoles(counted=("doc",), deleted_with={"id": ("root",)}, owns_rows=True).to_info(),
)
events = Table(
    "events",
    metadata,
    Column("resource_id", _STRING, primary_key=True),
    Column("n", _NUMBER, primary_key=True),
    _make_text_column("type"),
    _make_text_column("at"),
    _make_doc_column("data"),
    _make_text_column("job_id", optional=True),
    Column("job_n", _NUMBER, nullable=True),
    _make_partial_index(
        "ix_events_job", "job_id", "job_n", clause="job_id IS NOT NULL", unique=True
    ),
    sqlite_with_rowid=False,
    info=TableRoles(
        deleted_with={"resource_id": ("root", "workflow"), "job_id": ("job",)}
    ).to_info(),
)
annotations = Table(
    "annotations",
    metadata,
    _make_id_column(),
    _make_text_column("account_id"),
    _make_doc_column("tags"),
    _make_doc_column("note"),
    _make_text_column("created_at"),
    info=TableRoles(counted=("tags", "note"), deleted_with={"id": ("root", "workflow")}).to_info(),
)
tags = Table(
    "tags",
    metadata,
    Column("account_id", _STRING, primary_key=True),
    Column("tag", _STRING, primary_key=True),
    Column("resource_id", _STRING, primary_key=True),
    sqlite_with_rowid=False,
    info=TableRoles(is_derived=True).to_info(),
)
plans = Table(
    "plans",
    metadata,
    _make_id_column(),
    _make_text_column("account_id"),
    _make_text_column("created_at"),
    _make_doc_column(),
    Index("ix_plans_account", "account_id", "id"),
    info=TableRoles(counted=("doc",), expires_by=("created_at", "work")).to_info(),
)
endpoints = _make_infrastructure_table("endpoints")
compute = _make_infrastructure_table("compute")
templates = _make_infrastructure_table("templates")
storage = _make_infrastructure_table("storage")
agents = Table(
    "agents",
    metadata,
    _make_id_column(),
    _make_text_column("account_id"),
    _make_text_column("named", unique=True),
    Column("deleted", Boolean, nullable=False),
    _make_text_column("created_at"),
    _make_doc_column(),
    Index("ix_agents_account", "account_id", "id"),
    info=TableRoles(counted=("doc",)).to_info(),
)
usage = Table(
    "usage",
    metadata,
    _make_id_column(),
    _make_text_column("account_id"),
    _make_text_column("day"),
    _make_text_column("capability"),
    _make_text_column("provider", optional=True),
    _make_text_column("connection_id", optional=True),
    _make_text_column("agent_id", optional=True),
    _make_text_column("key_id", optional=True),
    *(
        Column(name, _NUMBER, nullable=False, server_default=text("0"))
        for name in ("jobs", "failed", "cached", "calls", "unpriced", "nano", "latency_ms")
    ),
    Index("ix_usage_account", "account_id", "day"),
    Index("ix_usage_connection", "connection_id", "day"),
)
idempotency = Table(
    "idempotency",
    metadata,
    _make_id_column(),
    _make_text_column("account_id"),
    _make_text_column("fingerprint"),
    Column("status", _NUMBER, nullable=False),
    _make_doc_column("body"),
    _make_text_column("created_at"),
    Index("ix_idempotency_created", "created_at"),
    info=TableRoles(counted=("body",), expires_by=("created_at", "answer")).to_info(),
)
cache = Table(
    "cache",
    metadata,
    _make_id_column(),
    _make_text_column("account_id"),
    _make_text_column("job_id"),
    _make_text_column("created_at"),
    info=TableRoles(deleted_with={"job_id": ("job",)}).to_info(),
)
spending = Table(
    "spending",
    metadata,
    _make_id_column(),
    _make_text_column("key_id"),
    Column("nano", _NUMBER, nullable=False),
    info=TableRoles(expires_by=("id", "day"), owns_rows=True).to_info(),
)
reservations = Table(
    "reservations",
    metadata,
    _make_id_column(),
    _make_text_column("spending_id"),
    _make_text_column("owner"),
    Column("nano", _NUMBER, nullable=False),
    _make_text_column("created_at"),
    Index("ix_reservations_spending", "spending_id"),
    info=TableRoles(expires_by=("spending_id", "day")).to_info(),
)
shared_limits = Table(
    "shared_limits",
    metadata,
    _make_id_column(),
    Column("changed_at", Float, nullable=False),
    _make_doc_column(),
    Index("ix_shared_limits_changed", "changed_at"),
    info=TableRoles(is_derived=True).to_info(),
)
stored_bytes = Table(
    "stored_bytes",
    metadata,
    _make_id_column(),
    Column("artifacts", _NUMBER, nullable=False),
    Column("records", _NUMBER, nullable=False),
    info=TableRoles(is_derived=True).to_info(),
)
configuration = Table(
    "configuration",
    metadata,
    _make_id_column(),
    Column("version", _NUMBER, nullable=False),
    info=TableRoles(is_derived=True).to_info(),
)
artifacts = Table(
    "artifacts",
    metadata,
    _make_id_column(),
    _make_text_column("account_id"),
    _make_text_column("job_id", optional=True),
    _make_text_column("sha256"),
    Column("content", LargeBinary, nullable=True),
    Column("deleted", Boolean, nullable=False),
    _make_text_column("created_at"),
    _make_doc_column(),
    Column("size_bytes", _NUMBER, nullable=True),
    Index("ix_artifacts_account", "account_id", "id"),
    _make_partial_index("ix_artifacts_files", "sha256", clause="content IS NULL AND deleted = 0"),
    info=TableRoles(counted=("doc",), deleted_with={"job_id": ("job",)}).to_info(),
)
roots = Table(
    "roots",
    metadata,
    _make_id_column(),
    _make_text_column("account_id"),
    _make_text_column("kind"),
    Column("open", Boolean, nullable=False),
    Column("cancel_requested", Boolean, nullable=False),
    _make_text_column("owner", optional=True),
    Column("lease_until", Float, nullable=False),
    Column("fence", _NUMBER, nullable=False),
    _make_text_column("created_at"),
    _make_text_column("key_id", optional=True),
    _make_text_column("agent_id", optional=True),
    Index("ix_roots_account", "account_id", "kind", "id"),
    Index("ix_roots_open", "open", "owner"),
    _make_partial_index("ix_roots_queue", "account_id", clause="open = 1"),
    info=TableRoles(deleted_with={"id": ("root",)}, owns_rows=True).to_info(),
)


def name_columns(table: str) -> str:
    """Name the columns of a table, as statements written by hand have them.

    Never `*`: a later version may add columns to a table while statements are prepared.

    >>> name_columns("configuration")
    'configuration.id, configuration.version'
    """
    return ", ".join(f"{table}.{column.name}" for column in metadata.tables[table].columns)


def list_original_tables() -> list[Table]:
    """List the tables whose rows are not derived from other rows."""
    return [table for table in metadata.sorted_tables if not get_roles(table).is_derived]


def list_pruned_tables() -> list[Table]:
    """List the tables with rows that are pruned with their owners, in the order of deletion."""
    return [table for table in _sort_owners_last() if get_roles(table).deleted_with]


def list_expiring_tables() -> list[Table]:
    """List the tables whose rows are pruned by their own age, tables of owners last."""
    return [table for table in _sort_owners_last() if get_roles(table).expires_by]


def _sort_owners_last() -> list[Table]:
    return sorted(metadata.tables.values(), key=lambda table: get_roles(table).owns_rows)
