"""The tables; `migrations/versions` creates them, and a test keeps the two in agreement.

Each table declares the roles of its rows in upkeep (`table_roles`).

Their triggers are in `stored_bytes`, `configuration_version`, `schema` and `text_index`, and those
of PostgreSQL in `postgres/triggers`. `cost_index` has an index of an expression, and `text_index`
the table of texts. A type with a variant here needs the same variant in migrations.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
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
from sqlalchemy.schema import CreateIndex

from toolkit.store.table_roles import TableRoles, get_roles

metadata = MetaData()
# Sorted by bytes everywhere, as ids are; a database's language may sort in another order.
_STRING = String().with_variant(String(collation="C"), "postgresql")
# SQLite's numbers have 64 bits anyway.
_NUMBER = Integer().with_variant(BigInteger(), "postgresql")


def _make_text_column(name: str, *, optional: bool = False, unique: bool = False) -> "Column[str]":
    return Column(name, _STRING, nullable=optional, unique=unique)


def _make_text_columns(*names: str, optional: bool = False) -> "list[Column[str]]":
    return [_make_text_column(name, optional=optional) for name in names]


def _make_table(
    name: str, *parts: "Column[Any] | Index", roles: TableRoles | None = None, **options: Any
) -> Table:
    """Make a table whose rows have an id."""
    info = {} if roles is None else roles.to_info()
    key = Column("id", _STRING, primary_key=True)
    return Table(name, metadata, key, *parts, info=info, **options)


def _make_partial_index(name: str, *columns: str, clause: str, unique: bool = False) -> Index:
    """Make an index of the rows that fit a condition; in it, 0 and 1 stand for truth values.

    `build_index` writes the condition: for `postgresql_where`, SQLAlchemy would import that
    database's dialect in every process.
    """
    return Index(name, *columns, unique=unique, info={"where": clause})


def _make_doc_column(name: str = "doc") -> "Column[str]":
    return Column(name, Text, nullable=False)


def _make_text_number_column() -> "Column[int]":
    """Make the column of the record's number in the index of texts; NULL if it is not in it."""
    return Column("text_number", _NUMBER, nullable=True)


def _make_infrastructure_table(name: str) -> Table:
    """Make a table of managed resources: the record, and the vendor's own id."""
    return _make_table(
        name,
        *_make_text_columns("account_id", "status"),
        *_make_text_columns("vendor_id", "connection_id", optional=True),
        _make_text_column("created_at"),
        _make_doc_column(),
        _make_doc_column("spec"),
        Index(f"ix_{name}_account", "account_id", "id"),
        roles=TableRoles(counted=("doc", "spec"), is_managed=True),
    )


accounts = _make_table(
    "accounts",
    _make_text_column("email", unique=True),
    _make_text_column("created_at"),
    _make_doc_column(),
    Column("spec", Text, nullable=True),
    Column("operator", Boolean, nullable=False, server_default=false()),
    roles=TableRoles(decisive=("doc", "spec", "operator")),
)
api_keys = _make_table(
    "api_keys",
    _make_text_column("account_id"),
    _make_text_column("digest", unique=True),
    _make_text_column("revoked_at", optional=True),
    _make_text_column("created_at"),
    _make_doc_column(),
    Index("ix_api_keys_account", "account_id", "id"),
    roles=TableRoles(counted=("doc",), decisive=("doc", "digest", "account_id")),
)
connections = _make_table(
    "connections",
    *_make_text_columns("account_id", "provider"),
    Column("deleted", Boolean, nullable=False),
    _make_text_column("created_at"),
    _make_doc_column(),
    _make_text_column("health", optional=True),
    Index("ix_connections_account", "account_id", "id"),
    roles=TableRoles(counted=("doc",), decisive=("doc", "provider", "account_id", "deleted")),
)
shares = _make_table(
    "shares",
    *_make_text_columns("connection_id", "shared_with", "created_at"),
    Index("ix_shares_with", "shared_with"),
    Index("ix_shares_connection", "connection_id"),
    roles=TableRoles(decisive=("connection_id", "shared_with")),
)
jobs = _make_table(
    "jobs",
    *_make_text_columns("account_id", "root_id"),
    _make_text_column("run_id", optional=True, unique=True),
    *_make_text_columns("workflow_id", "node_id", optional=True),
    *_make_text_columns("status", "capability"),
    *_make_text_columns("provider", "vendor_job_id", optional=True),
    _make_text_column("created_at"),
    _make_doc_column(),
    Column("ranking", LargeBinary, nullable=True),
    _make_text_number_column(),
    Index("ix_jobs_account", "account_id", "id"),
    _make_partial_index("ix_jobs_workflow", "workflow_id", clause="workflow_id IS NOT NULL"),
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
    roles=TableRoles(counted=("doc",), deleted_with={"id": ("job",)}, owns_rows=True),
)
workflows = _make_table(
    "workflows",
    *_make_text_columns("account_id", "root_id"),
    _make_text_column("task_id", optional=True),
    *_make_text_columns("status", "created_at"),
    _make_doc_column(),
    _make_doc_column("spec"),
    _make_text_number_column(),
    Index("ix_workflows_account", "account_id", "id"),
    Index("ix_workflows_status", "account_id", "status", "id"),
    _make_partial_index("ix_workflows_text", "account_id", "id", clause="text_number IS NULL"),
    roles=TableRoles(counted=("doc", "spec"), deleted_with={"id": ("workflow",)}, owns_rows=True),
)
maps = _make_table(
    "maps",
    *_make_text_columns("account_id", "status"),
    _make_text_column("key", optional=True, unique=True),
    _make_text_column("created_at"),
    _make_doc_column(),
    Index("ix_maps_account", "account_id", "id"),
    Index("ix_maps_status", "account_id", "status", "id"),
    roles=TableRoles(counted=("doc",), deleted_with={"id": ("root",)}, owns_rows=True),
)
# The id of a row is made from its map and its columns (`doc`), so that a map has equal rows once.
# `ended` is the number of its last end, and `nano` the nano-dollars that all its tries cost.
map_rows = _make_table(
    "map_rows",
    *_make_text_columns("account_id", "map_id"),
    Column("n", _NUMBER, nullable=False),
    _make_text_column("status"),
    _make_doc_column(),
    *_make_text_columns("job_id", "batch_id", "reason", optional=True),
    Column("error", Text, nullable=True),
    Column("nano", _NUMBER, nullable=False, server_default=text("0")),
    Column("ended", _NUMBER, nullable=True),
    Index("ix_map_rows_number", "map_id", "n", unique=True),
    _make_partial_index("ix_map_rows_batch", "batch_id", "n", clause="batch_id IS NOT NULL"),
    _make_partial_index("ix_map_rows_ended", "map_id", "ended", clause="ended IS NOT NULL"),
    roles=TableRoles(counted=("doc",), deleted_with={"map_id": ("root",)}),
)
# The batches of maps at vendors. `nano` are the nano-dollars that rows without a result may cost,
# and `vendor_id` is the vendor's id of the batch, once it is known.
map_batches = _make_table(
    "map_batches",
    *_make_text_columns("account_id", "map_id", "connection_id", "status"),
    _make_text_column("vendor_id", optional=True),
    Column("nano", _NUMBER, nullable=False),
    _make_text_column("created_at"),
    _make_doc_column(),
    Index("ix_map_batches_map", "map_id", "id"),
    roles=TableRoles(counted=("doc",), deleted_with={"map_id": ("root",)}),
)
tasks = _make_table(
    "tasks",
    *_make_text_columns("account_id", "status", "created_at"),
    _make_doc_column(),
    _make_text_column("run_id", optional=True),
    _make_text_number_column(),
    Index("ix_tasks_account", "account_id", "id"),
    Index("ix_tasks_status", "account_id", "status", "id"),
    _make_partial_index("ix_tasks_text", "account_id", "id", clause="text_number IS NULL"),
    Index("ix_tasks_run", "account_id", "run_id"),
    roles=TableRoles(counted=("doc",), deleted_with={"id": ("root",)}, owns_rows=True),
)
events = Table(
    "events",
    metadata,
    Column("resource_id", _STRING, primary_key=True),
    Column("n", _NUMBER, primary_key=True),
    *_make_text_columns("type", "at"),
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
annotations = _make_table(
    "annotations",
    _make_text_column("account_id"),
    _make_doc_column("tags"),
    _make_doc_column("note"),
    _make_text_column("created_at"),
    roles=TableRoles(counted=("tags", "note"), deleted_with={"id": ("root", "workflow")}),
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
plans = _make_table(
    "plans",
    *_make_text_columns("account_id", "created_at"),
    _make_doc_column(),
    Index("ix_plans_account", "account_id", "id"),
    roles=TableRoles(counted=("doc",), expires_by=("created_at", "work")),
)
endpoints = _make_infrastructure_table("endpoints")
compute = _make_infrastructure_table("compute")
templates = _make_infrastructure_table("templates")
storage = _make_infrastructure_table("storage")
agents = _make_table(
    "agents",
    _make_text_column("account_id"),
    _make_text_column("named", unique=True),
    Column("deleted", Boolean, nullable=False),
    _make_text_column("created_at"),
    _make_doc_column(),
    Index("ix_agents_account", "account_id", "id"),
    roles=TableRoles(counted=("doc",)),
)
usage = _make_table(
    "usage",
    *_make_text_columns("account_id", "day", "capability"),
    *_make_text_columns("provider", "connection_id", "agent_id", "key_id", optional=True),
    *(
        Column(name, _NUMBER, nullable=False, server_default=text("0"))
        for name in ("jobs", "failed", "cached", "calls", "unpriced", "nano", "latency_ms")
    ),
    Index("ix_usage_account", "account_id", "day"),
    Index("ix_usage_connection", "connection_id", "day"),
)
idempotency = _make_table(
    "idempotency",
    *_make_text_columns("account_id", "fingerprint"),
    Column("status", _NUMBER, nullable=False),
    _make_doc_column("body"),
    _make_text_column("created_at"),
    Index("ix_idempotency_created", "created_at"),
    roles=TableRoles(counted=("body",), expires_by=("created_at", "answer")),
)
cache = _make_table(
    "cache",
    *_make_text_columns("account_id", "job_id", "created_at"),
    roles=TableRoles(deleted_with={"job_id": ("job",)}),
)
seals = _make_table(
    "seals",
    *_make_text_columns("account_id", "created_at"),
    _make_doc_column(),
    roles=TableRoles(expires_by=("created_at", "work")),
)
replies = _make_table(
    "replies",
    _make_text_column("job_id"),
    Column("attempt", _NUMBER, nullable=False),
    Column("content", LargeBinary, nullable=False),
    roles=TableRoles(deleted_with={"job_id": ("job",)}),
)
spending = _make_table(
    "spending",
    _make_text_column("key_id"),
    Column("nano", _NUMBER, nullable=False),
    roles=TableRoles(expires_by=("id", "day"), owns_rows=True),
)
reservations = _make_table(
    "reservations",
    *_make_text_columns("spending_id", "owner"),
    Column("nano", _NUMBER, nullable=False),
    _make_text_column("created_at"),
    Index("ix_reservations_spending", "spending_id"),
    roles=TableRoles(expires_by=("spending_id", "day")),
)
shared_limits = _make_table(
    "shared_limits",
    Column("changed_at", Float, nullable=False),
    _make_doc_column(),
    Index("ix_shared_limits_changed", "changed_at"),
    roles=TableRoles(is_derived=True),
)
stored_bytes = _make_table(
    "stored_bytes",
    Column("artifacts", _NUMBER, nullable=False),
    Column("records", _NUMBER, nullable=False),
    roles=TableRoles(is_derived=True),
)
configuration = _make_table(
    "configuration", Column("version", _NUMBER, nullable=False), roles=TableRoles(is_derived=True)
)
artifacts = _make_table(
    "artifacts",
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
    roles=TableRoles(counted=("doc",), deleted_with={"job_id": ("job",)}),
)
roots = _make_table(
    "roots",
    *_make_text_columns("account_id", "kind"),
    Column("open", Boolean, nullable=False),
    Column("cancel_requested", Boolean, nullable=False),
    _make_text_column("owner", optional=True),
    Column("lease_until", Float, nullable=False),
    Column("fence", _NUMBER, nullable=False),
    _make_text_column("created_at"),
    *_make_text_columns("key_id", "agent_id", optional=True),
    Index("ix_roots_account", "account_id", "kind", "id"),
    _make_partial_index("ix_roots_open", "owner", clause="open = 1"),
    _make_partial_index("ix_roots_queue", "account_id", clause="open = 1"),
    roles=TableRoles(deleted_with={"id": ("root",)}, owns_rows=True),
    sqlite_with_rowid=False,
)


def build_index(index: Index, dialect: Dialect) -> str:
    """Build the statement that creates an index, with the condition of a partial index."""
    statement = str(CreateIndex(index).compile(dialect=dialect))
    clause: str | None = index.info.get("where")
    if clause is None:
        return statement
    if dialect.name == "postgresql":
        clause = clause.replace("= 0", "= FALSE").replace("= 1", "= TRUE")
    return f"{statement} WHERE {clause}"


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
