"""Readiness of abandoned work: whether this process has the secrets and functions that it needs.

A process that lacks them leaves the work, with `status_detail: "waiting_secret"` or
`"waiting_function"`: there the work would fail for good although it only had to wait (decisions,
"Opening a directory").
"""

import json
import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from toolkit.contract.base import format_rfc3339, now
from toolkit.contract.connections import Connection
from toolkit.contract.errors import ToolkitError
from toolkit.contract.jobs import FINAL_STATUSES, Options
from toolkit.contract.maps import MapRecord
from toolkit.contract.tasks import Task
from toolkit.contract.workflows import FUNCTION_CAPABILITY, WorkflowRecord
from toolkit.engine.context import EngineContext
from toolkit.engine.job_record import JobRecord, read_job
from toolkit.engine.routing.provider_selection import ProviderSelection
from toolkit.functions import FunctionTable
from toolkit.store import AccountScope, AppendEvent, Change, Lease, LeaseLost, Row, UpdateRow

log = logging.getLogger(__name__)

WAITING_SECRET: Final = "waiting_secret"  # noqa: S105 - the name of a state
WAITING_FUNCTION: Final = "waiting_function"
WAITING_DETAILS = frozenset({WAITING_SECRET, WAITING_FUNCTION})
RECHECK_INTERVAL_S = 5.0  # a secret may be set, or a connection made, at any time

ConnectionsByProvider = Mapping[str, Sequence[Connection]]


class Readiness:
    """The check of work items before they are resumed; it records the reasons why they wait."""

    def __init__(self, core: EngineContext) -> None:
        self._core = core
        # When a work item, or a connection, is next checked; and the last result.
        self._waiting: dict[str, tuple[float, str]] = {}
        self._functions_version = 0
        self._resolved: dict[str, tuple[float, bool]] = {}
        self._noted: set[str] = set()

    async def is_ready(self, work_item: Row) -> bool:
        """Check whether a work item can be resumed here; always True if it is to be cancelled."""
        root_id = str(work_item["id"])
        if work_item["cancel_requested"]:
            return True
        self._forget_waits_for_functions()
        if self._waiting.get(root_id, (0.0, ""))[0] > time.monotonic():
            return False
        if missing := await self._find_missing_functions(work_item):
            self._waiting[root_id] = time.monotonic() + RECHECK_INTERVAL_S, WAITING_FUNCTION
            if root_id not in self._noted:
                _warn_of_missing(root_id, missing, self._core.functions)
            return False
        pool = await self._core.directory.list_connections(
            AccountScope(str(work_item["account_id"]))
        )
        try:
            needs = await self._find_usable(work_item, pool)
        except ValueError:  # an unreadable record: the process that runs it reports the fault
            return True
        for connections in needs:
            if connections and not any(
                [await self._resolves(connection) for connection in connections]
            ):
                self._waiting[root_id] = time.monotonic() + RECHECK_INTERVAL_S, WAITING_SECRET
                return False
        self._waiting.pop(root_id, None)
        self._noted.discard(root_id)
        return True

    @property
    def has_unnoted(self) -> bool:
        """True if a work item had to wait at its last check, and its record may not say so."""
        return not self._noted.issuperset(self._waiting)

    async def needs_notice(self, work_item: Row) -> bool:
        """Check whether a work item must wait, and its record may not say so yet."""
        return work_item["id"] in self._waiting and work_item["id"] not in self._noted

    async def record_status(self, lease: Lease, *, waiting: bool) -> None:
        """Record that a work item waits and the reason, or that it no longer waits."""
        detail = None
        if waiting:
            self._noted.add(lease.root_id)
            detail = self._waiting.get(lease.root_id, (0.0, WAITING_SECRET))[1]
        with suppress(LeaseLost):
            await self._core.store.write(await self._make_changes(lease, detail), lease=lease)

    def _forget_waits_for_functions(self) -> None:
        """Recheck work that waits for a function at once if a function has been added."""
        table = self._core.functions
        if table is not None and table.version != self._functions_version:
            self._functions_version = table.version
            for root_id, (_, detail) in list(self._waiting.items()):
                if detail == WAITING_FUNCTION:
                    self._waiting[root_id] = 0.0, detail

    async def _find_missing_functions(self, work_item: Row) -> list[str]:
        """Find the functions that a workflow is yet to call and this process does not have.

        Empty for other kinds of work.
        """
        row = None
        if work_item["kind"] == "workflow":
            row = await self._core.store.get_row("workflows", str(work_item["id"]))
        if row is None or f'"{FUNCTION_CAPABILITY}"' not in str(row["doc"]):
            return []
        try:
            workflow = WorkflowRecord.model_validate_json(str(row["doc"]))
        except ValueError:  # an unreadable record: the process that runs it reports the fault
            return []
        finished_ids = set(json.loads(str(row["spec"]))["kept"])
        for job in await self._core.store.find_rows("jobs", workflow_id=workflow.id):
            if job["status"] in FINAL_STATUSES:
                finished_ids.add(str(job["node_id"]))
        calls = [
            node.input
            for node in workflow.nodes
            if node.capability == FUNCTION_CAPABILITY and node.id not in finished_ids
        ]
        if not calls:
            return []
        from toolkit.functions.node_capability import find_missing_function

        missing = (find_missing_function(call, self._core.functions) for call in calls)
        return list(dict.fromkeys(name for name in missing if name is not None))

    async def _find_usable(
        self, work_item: Row, pool: ConnectionsByProvider
    ) -> Iterable[Collection[Connection]]:
        """Find, for each unfinished job, the connections of which one must have its secret.

        A job without any such connection does not wait.
        """
        root_id, kind = str(work_item["id"]), work_item["kind"]
        if kind in ("run", "job"):
            by_id = {"run_id" if kind == "run" else "id": root_id}
            rows = await self._core.store.find_rows("jobs", **by_id)
            return [self._find_for_job(row, pool) for row in rows]
        if kind == "workflow":
            return await self._find_for_workflow(root_id, pool)
        if kind == "map":
            row = await self._core.store.get_row("maps", root_id)
            if row is None:
                return []
            record = self._core.records.maps.read(row)
            return [self._find_for_capability(record.capability, record.options, pool)]
        row = await self._core.store.get_row("tasks", root_id)
        workflow_id = None if row is None else json.loads(str(row["doc"])).get("workflow_id")
        if workflow_id is None:  # not planned yet, so its needs are unknown: any connection will do
            return [[connection for connections in pool.values() for connection in connections]]
        return await self._find_for_workflow(str(workflow_id), pool)

    async def _find_for_workflow(
        self, workflow_id: str, pool: ConnectionsByProvider
    ) -> Iterable[Collection[Connection]]:
        row = await self._core.store.get_row("workflows", workflow_id)
        if row is None:
            return []
        spec = json.loads(str(row["spec"]))
        rows = await self._core.store.find_rows("jobs", workflow_id=workflow_id)
        jobs = {str(job["node_id"]): job for job in rows}
        candidates: list[Collection[Connection]] = []
        for node in WorkflowRecord.model_validate_json(str(row["doc"])).nodes:
            if node.id in spec["kept"]:
                continue
            if node.id in jobs:
                candidates.append(self._find_for_job(jobs[node.id], pool))
            else:
                options = Options(**spec["options"].get(node.id, {}))
                candidates.append(self._find_for_capability(node.capability, options, pool))
        return candidates

    def _find_for_job(self, row: Row, pool: ConnectionsByProvider) -> Collection[Connection]:
        job = read_job(row)
        if job.status in FINAL_STATUSES:
            return []
        if row["vendor_job_id"] is not None:  # resume it at the vendor that is working on it
            return [
                connection
                for connections in pool.values()
                for connection in connections
                if connection.id == job.connection_id
            ]
        return self._find_for_capability(job.capability, job.options, pool)

    def _find_for_capability(
        self, capability: str, options: Options, pool: ConnectionsByProvider
    ) -> Collection[Connection]:
        try:
            vendors = self._core.registry.find_vendors(self._core.registry.require(capability))
        except ToolkitError:
            return []  # not known here any more, which is reported when it is run
        usable = [connection for vendor in vendors for connection in pool.get(vendor.id, [])]
        return list(filter(ProviderSelection.of(options).admits_connection, usable))

    async def _resolves(self, connection: Connection) -> bool:
        expires_at, is_resolved = self._resolved.get(connection.id, (0.0, False))
        if expires_at < time.monotonic():
            try:
                is_resolved = bool(await self._core.resolve_secret(connection))
            except ToolkitError:
                is_resolved = False
            self._resolved[connection.id] = time.monotonic() + RECHECK_INTERVAL_S, is_resolved
        return is_resolved

    async def _make_changes(self, lease: Lease, detail: str | None) -> list[Change]:
        """Return the changes that set or clear the reason for waiting in a work item's records.

        Each changed record gets an event; a record that is right already is left alone.
        """
        root_id, records = lease.root_id, self._core.records
        table = "jobs" if lease.kind in ("run", "job") else f"{lease.kind}s"
        by_id = {"run_id" if lease.kind == "run" else "id": root_id}
        changes: list[Change] = []
        for row in await self._core.store.find_rows(table, **by_id):
            record: JobRecord | MapRecord | WorkflowRecord | Task
            if table == "jobs":
                record = read_job(row)
            elif table == "maps":
                record = records.maps.read(row)
            else:
                record = (records.workflows if table == "workflows" else records.tasks).read(row)
            stored_detail = record.status_detail
            if stored_detail == detail or (detail is None and stored_detail not in WAITING_DETAILS):
                continue
            record.status_detail = detail
            serialize = record.to_json if isinstance(record, JobRecord) else record.model_dump_json
            changes.append(UpdateRow(table, record.id, {"doc": serialize()}))
            data: dict[str, Any] = {"id": root_id}
            data |= {"job_id": record.id} if table == "jobs" else {}
            data |= {} if detail is None else {"status_detail": detail}
            at, job_id = format_rfc3339(now()), record.id if table == "jobs" else None
            changes.append(AppendEvent(root_id, f"{lease.kind}.{row['status']}", data, at, job_id))
        return changes


def _warn_of_missing(root_id: str, names: Sequence[str], table: FunctionTable | None) -> None:
    """Log which functions a workflow waits for, unless this process offers no functions at all."""
    if table is None:
        return
    from toolkit.functions.node_capability import explain_missing

    log.warning("%s waits: %s", root_id, explain_missing(names, table))
