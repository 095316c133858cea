"""The tables; `migrations/versions` makes them, and a test holds the two together.

The triggers that stand beside them are in `accounting`.
"""

from sqlalchemy import (
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
    UniqueConstraint,
    text,
)

metadata = MetaData()


def _id() -> "Column[str]":
    return Column("id", String, primary_key=True)


def _text(name: str, *, optional: bool = False, unique: bool = False) -> "Column[str]":
    return Column(name, String, nullable=optional, unique=unique)


def _doc(name: str = "doc") -> "Column[str]":
    return Column(name, Text, nullable=False)


def _infrastructure(name: str) -> Table:
    """Make a table of managed resources: the record, and the vendor's own id."""
    return Table(
        name,
        metadata,
        _id(),
        _text("account_id"),
        _text("status"),
        _text("vendor_id", optional=True),
        _text("connection_id", optional=True),
        _text("created_at"),
        _doc(),
        _doc("spec"),
        Index(f"ix_{name}_account", "account_id", "id"),
    )


accounts = Table(
    "accounts",
    metadata,
    _id(),
    _text("email", unique=True),
    _text("created_at"),
    _doc(),
    Column("spec", Text, nullable=True),
    Column("operator", Boolean, nullable=False, server_default=text("0")),
)
api_keys = Table(
    "api_keys",
    metadata,
    _id(),
    _text("account_id"),
    _text("digest", unique=True),
    _text("revoked_at", optional=True),
    _text("created_at"),
    _doc(),
    Index("ix_api_keys_account", "account_id", "id"),
)
connections = Table(
    "connections",
    metadata,
    _id(),
    _text("account_id"),
    _text("provider"),
    Column("deleted", Boolean, nullable=False),
    _text("created_at"),
    _doc(),
    _text("health", optional=True),
    Index("ix_connections_account", "account_id", "id"),
)
shares = Table(
    "shares",
    metadata,
    _id(),
    _text("connection_id"),
    _text("shared_with"),
    _text("created_at"),
    Index("ix_shares_with", "shared_with"),
    Index("ix_shares_connection", "connection_id"),
)
jobs = Table(
    "jobs",
    metadata,
    _id(),
    _text("account_id"),
    _text("root_id"),
    _text("run_id", optional=True, unique=True),
    _text("workflow_id", optional=True),
    _text("node_id", optional=True),
    _text("status"),
    _text("capability"),
    _text("provider", optional=True),
    _text("vendor_job_id", optional=True),
    _text("created_at"),
    _doc(),
    Index("ix_jobs_account", "account_id", "id"),
    Index("ix_jobs_workflow", "workflow_id"),
)
workflows = Table(
    "workflows",
    metadata,
    _id(),
    _text("account_id"),
    _text("root_id"),
    _text("task_id", optional=True),
    _text("status"),
    _text("created_at"),
    _doc(),
    _doc("spec"),
    Index("ix_workflows_account", "account_id", "id"),
)
tasks = Table(
    "tasks",
    metadata,
    _id(),
    _text("account_id"),
    _text("status"),
    _text("created_at"),
    _doc(),
    _text("run_id", optional=True),
    Index("ix_tasks_account", "account_id", "id"),
    Index("ix_tasks_run", "account_id", "run_id"),
)
plans = Table(
    "plans",
    metadata,
    _id(),
    _text("account_id"),
    _text("created_at"),
    _doc(),
    Index("ix_plans_account", "account_id", "id"),
)
endpoints = _infrastructure("endpoints")
compute = _infrastructure("compute")
storage = _infrastructure("storage")
templates = _infrastructure("templates")
agents = Table(
    "agents",
    metadata,
    _id(),
    _text("account_id"),
    _text("named", unique=True),
    Column("deleted", Boolean, nullable=False),
    _text("created_at"),
    _doc(),
    Index("ix_agents_account", "account_id", "id"),
)
usage = Table(
    "usage",
    metadata,
    _id(),
    _text("account_id"),
    _text("day"),
    _text("capability"),
    _text("provider", optional=True),
    _text("connection_id", optional=True),
    _text("agent_id", optional=True),
    _text("key_id", optional=True),
    *(
        Column(name, Integer, nullable=False, server_default=text("0"))
        for name in ("jobs", "failed", "cached", "calls", "unpriced", "nano", "latency_ms")
    ),
    Index("ix_usage_account", "account_id", "day"),
    Index("ix_usage_connection", "connection_id", "day"),
)
idempotency = Table(
    "idempotency",
    metadata,
    _id(),
    _text("account_id"),
    _text("fingerprint"),
    Column("status", Integer, nullable=False),
    _doc("body"),
    _text("created_at"),
    Index("ix_idempotency_created", "created_at"),
)
cache = Table("cache", metadata, _id(), _text("account_id"), _text("job_id"), _text("created_at"))
spending = Table(
    "spending", metadata, _id(), _text("key_id"), Column("nano", Integer, nullable=False)
)
reservations = Table(
    "reservations",
    metadata,
    _id(),
    _text("spending_id"),
    _text("owner"),
    Column("nano", Integer, nullable=False),
    _text("created_at"),
    Index("ix_reservations_spending", "spending_id"),
)
stored_bytes = Table(
    "stored_bytes",
    metadata,
    _id(),
    Column("artifacts", Integer, nullable=False),
    Column("records", Integer, nullable=False),
)
artifacts = Table(
    "artifacts",
    metadata,
    _id(),
    _text("account_id"),
    _text("job_id", optional=True),
    _text("sha256"),
    Column("content", LargeBinary, nullable=True),
    Column("deleted", Boolean, nullable=False),
    _text("created_at"),
    _doc(),
    Column("size_bytes", Integer, nullable=True),
    Index("ix_artifacts_account", "account_id", "id"),
    Index("ix_artifacts_files", "sha256", sqlite_where=text("content IS NULL AND deleted = 0")),
    Index("ix_artifacts_held", "account_id", "deleted", "size_bytes"),
)
roots = Table(
    "roots",
    metadata,
    _id(),
    _text("account_id"),
    _text("kind"),
    Column("open", Boolean, nullable=False),
    Column("cancel_requested", Boolean, nullable=False),
    _text("owner", optional=True),
    Column("lease_until", Float, nullable=False),
    Column("fence", Integer, nullable=False),
    _text("created_at"),
    _text("key_id", optional=True),
    _text("agent_id", optional=True),
    Index("ix_roots_account", "account_id", "kind", "id"),
    Index("ix_roots_open", "open", "owner"),
    Index("ix_roots_queue", "account_id", sqlite_where=text("open = 1")),
)
events = Table(
    "events",
    metadata,
    Column("resource_id", String, primary_key=True),
    Column("n", Integer, primary_key=True),
    _text("type"),
    _text("at"),
    _doc("data"),
    _text("job_id", optional=True),
    Column("job_n", Integer, nullable=True),
    UniqueConstraint("job_id", "job_n", name="uq_events_job"),
    sqlite_with_rowid=False,
)
