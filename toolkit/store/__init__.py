"""The store: rows, events, leases and the bytes of artifacts, behind one class."""

from toolkit.store.changes import (
    Change,
    Conflict,
    Count,
    Delete,
    Emit,
    Insert,
    Lease,
    LeaseLost,
    OverLimit,
    Patch,
    Put,
    Spend,
    Update,
)
from toolkit.store.heartbeat import Heartbeat
from toolkit.store.read_only import EVERYONE, ReadOnlyStore
from toolkit.store.reader import ALL_ACCOUNTS, Row
from toolkit.store.sections import Content, FileSection, sha256_of, split
from toolkit.store.store import Store

__all__ = [
    "ALL_ACCOUNTS",
    "EVERYONE",
    "Change",
    "Conflict",
    "Content",
    "Count",
    "Delete",
    "Emit",
    "FileSection",
    "Heartbeat",
    "Insert",
    "Lease",
    "LeaseLost",
    "OverLimit",
    "Patch",
    "Put",
    "ReadOnlyStore",
    "Row",
    "Spend",
    "Store",
    "Update",
    "sha256_of",
    "split",
]
