"""The store: rows, events, leases and artifacts' bytes, behind one class."""

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
    Put,
    Spend,
    Update,
)
from toolkit.store.reader import Row
from toolkit.store.store import Store

__all__ = [
    "Change",
    "Conflict",
    "Count",
    "Delete",
    "Emit",
    "Insert",
    "Lease",
    "LeaseLost",
    "OverLimit",
    "Put",
    "Row",
    "Spend",
    "Store",
    "Update",
]
