"""The store: rows, events, leases and the bytes of artifacts, behind one class."""

from toolkit.store.account_scope import AccountScope, AllAccounts, ReadScope
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
    StoreUnavailableError,
    UpdateRow,
)
from toolkit.store.configuration_cache import ConfigurationCache
from toolkit.store.content import Content, FileSection, compute_sha256, iter_chunks
from toolkit.store.leases.outages import Heartbeat
from toolkit.store.limits.limit_store import LimitDocument, LimitStore
from toolkit.store.read_connection import Row
from toolkit.store.read_only import ReadOnlyStore
from toolkit.store.reader import SHARED_WITH_ALL
from toolkit.store.repository import Repository
from toolkit.store.store import Store
from toolkit.store.work_lists import AGENT_RUN_LIST, MAP_LIST, RUN_LIST, TASK_LIST, WORKFLOW_LIST
from toolkit.store.writing.result_room import ROWS_BYTES, ResultSize, RoomHold

__all__ = [
    "AGENT_RUN_LIST",
    "MAP_LIST",
    "ROWS_BYTES",
    "RUN_LIST",
    "SHARED_WITH_ALL",
    "TASK_LIST",
    "WORKFLOW_LIST",
    "AccountScope",
    "AddSpending",
    "AllAccounts",
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
    "LimitDocument",
    "LimitStore",
    "OverLimit",
    "PatchDocument",
    "ReadOnlyStore",
    "ReadScope",
    "ReplaceRow",
    "Repository",
    "ResultSize",
    "RoomHold",
    "Row",
    "Store",
    "StoreUnavailableError",
    "UpdateRow",
    "compute_sha256",
    "iter_chunks",
]
