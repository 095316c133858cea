"""The store: rows, events, leases and the bytes of artifacts, behind one class."""

from toolkit.store.changes import (
    AddSpending,
    AppendEvent,
    Change,
    Conflict,
    DeleteRow,
    IncrementColumns,
    InsertRow,
    Lease,
    LeaseLost,
    OverLimit,
    PatchDocument,
    ReplaceRow,
    UpdateRow,
)
from toolkit.store.configuration_cache import ConfigurationCache
from toolkit.store.content import Content, FileSection, compute_sha256, iter_chunks
from toolkit.store.leases.heartbeat import Heartbeat
from toolkit.store.read_only import READ_ONLY_ACCOUNT_ID, ReadOnlyStore
from toolkit.store.reader import SHARED_WITH_ALL, Row
from toolkit.store.repository import Repository
from toolkit.store.store import Store

__all__ = [
    "READ_ONLY_ACCOUNT_ID",
    "SHARED_WITH_ALL",
    "AddSpending",
    "AppendEvent",
    "Change",
    "ConfigurationCache",
    "Conflict",
    "Content",
    "DeleteRow",
    "FileSection",
    "Heartbeat",
    "IncrementColumns",
    "InsertRow",
    "Lease",
    "LeaseLost",
    "OverLimit",
    "PatchDocument",
    "ReadOnlyStore",
    "ReplaceRow",
    "Repository",
    "Row",
    "Store",
    "UpdateRow",
    "compute_sha256",
    "iter_chunks",
]
