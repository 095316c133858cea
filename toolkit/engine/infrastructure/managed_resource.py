"""Managed resources at a GPU cloud: recorded before the vendor is called, never orphaned.

A record is written before the vendor is asked to create or delete the resource. It names the
process that asks, and the resource's name at the vendor contains the record's id. So work that a
crash, a lost reply or a cancelled call leaves unfinished is *reconciled* later: the vendor's list
shows whether the resource exists. Two rules distinguish unfinished work from calls in flight:

- *Owner*: the process that asked reconciles the record once it no longer waits for the reply. If
  its lock file shows that it has ended, another process may. The process that takes over first
  writes its own id into the record, by compare and swap, so that only one process does.
- *Age*: a resource counts as missing only after twice the maximum duration of a call: until then,
  the vendor may still execute the dead process's request. It counts as present as soon as it is
  listed. Deleting a resource that may be gone needs no wait.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar

from toolkit.contract.base import ErrorInfo, format_rfc3339, now
from toolkit.contract.connections import Connection
from toolkit.contract.endpoints import Infrastructure, InfrastructureStatus
from toolkit.contract.errors import ErrorCode, RequestError, ToolkitError
from toolkit.engine.request_context import RequestContext
from toolkit.engine.services.idempotency import commit_accepted
from toolkit.engine.services.record_reader import RecordReader
from toolkit.engine.transport.answers import OutcomeUnknownError
from toolkit.plugins import Operation, ProviderError, Vendor
from toolkit.plugins.infrastructure import (
    ResourceDeletion,
    ResourceKind,
    ResourceQuery,
    ResourceState,
)
from toolkit.store import AccountScope, Row

log = logging.getLogger(__name__)

K = TypeVar("K", bound=Infrastructure)
S = TypeVar("S", bound=ResourceState)

UNCONFIRMED = "unconfirmed"  # the status detail of a resource that may or may not exist
MAX_CALL_S = 3600.0  # an older call is not in flight any more, even if no lock file shows it
MAX_NAME_CHARS = 160  # the part of our name in the vendor's, which also contains the id


class ManagedResource(RecordReader[K], Generic[K, S]):
    """A kind of infrastructure that an account creates, reads and deletes.

    Attributes:
        table: table of its records.
        creation: operation that creates a resource; vendors with a flow for it offer the kind.
        resource: the kind's name in the operations that list and delete resources.
        used_as: field by which endpoints and pods name a resource that they use; empty if none do.
    """

    table: ClassVar[str]
    creation: ClassVar[type[Operation[Any]]]
    resource: ClassVar[ResourceKind]
    used_as: ClassVar[str] = ""

    async def delete(self, context: RequestContext, record_id: str) -> K:
        """Have the vendor destroy a resource; return its last state.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` if it is in use, is still being created, or the
                vendor did not delete it; `CREDENTIALS_MISSING` if its vendor is not connected.
        """
        row = await self._records.get_row(context.scope, record_id)
        record = self._records.read(row)
        if self.used_as:
            await self._check_unused(context.account_id, record_id)
        if row["vendor_id"] is not None:
            await self._destroy(row, record)
        elif record.status == "creating":
            raise RequestError(
                ErrorCode.CONFLICT,
                "The vendor is still creating it: delete it once its status is ready or failed.",
            )
        record.deleted = True
        await self._save(record, "deleted")
        return record

    async def reconcile(self) -> bool:
        """Reconcile half-created and half-deleted resources, if their state is known now.

        Returns:
            whether some of them must be reconciled later.
        """
        later = False
        lists: dict[str, Sequence[S]] = {}
        for record_id in await self._list_abandoned():
            row = await self._core.store.get_row(self.table, record_id)
            if row is None or not self.is_abandoned(row):
                continue  # another process was first
            self._core.in_flight.add(record_id)
            try:
                later |= not (await self.take_over(row) and await self._reconcile_row(row, lists))
            except (ProviderError, ToolkitError) as fault:
                log.info("%s is reconciled later: %s", record_id, fault)
                later = True
            finally:
                self._core.in_flight.discard(record_id)
        return later

    async def _create_at_vendor(
        self,
        context: RequestContext,
        record: K,
        creation: Operation[S],
        own_ids: Mapping[str, str] = {},
    ) -> None:
        """Write a record, then have the vendor create the resource.

        Args:
            record: record of the resource; its status and error report the outcome of the call.
            own_ids: our ids of the resources that the request names by the vendor's ids.

        Raises:
            RequestError: `CREDENTIALS_MISSING`.
        """
        vendor, connection = await self._core.directory.find_cloud(
            context.scope, self.creation.kind
        )
        await self._core.quotas.check_storage(context.account_id, 1)
        inserted = self._records.make_insert(
            context.account_id,
            record,
            status=record.status,
            vendor_id=None,
            connection_id=connection.id,
            spec=self._make_spec({"key_id": context.key_id}),
        )
        self._core.in_flight.add(record.id)
        try:
            await commit_accepted(self._core, context, [inserted], record)
            try:
                state = await self._core.ask_vendor(vendor, connection, creation)
            except (ProviderError, ToolkitError) as error:
                await self._record_failure(record, error, own_ids)
            else:
                await self._record_state(record, state)
        finally:
            self._core.in_flight.discard(record.id)

    async def _record_failure(
        self, record: K, error: ProviderError | ToolkitError, own_ids: Mapping[str, str]
    ) -> None:
        if not _changed_nothing(error):
            record.status_detail = UNCONFIRMED
            await self._save(record, "creating")
            return
        message = error.message
        for vendor_id, own_id in own_ids.items():
            message = message.replace(vendor_id, own_id)
        record.error = ErrorInfo(code=error.code.name, message=message)
        await self._save(record, "failed")

    async def _destroy(self, row: Row, record: K) -> None:
        """Ask the vendor to destroy a resource; retry later unless it certainly refused.

        Raises:
            RequestError: `CONFLICT` if the vendor did not delete it.
        """
        place, vendor_id, status = await self._find_place(row), str(row["vendor_id"]), record.status
        self._core.in_flight.add(record.id)
        try:
            spec = self._make_spec(json.loads(row["spec"]))
            await self._save(record, "deleting", spec=spec)
            try:
                deletion = ResourceDeletion(resource=self.resource, vendor_id=vendor_id)
                await self._core.ask_vendor(*place, deletion)
            except (ProviderError, ToolkitError) as error:
                message = f"The vendor did not delete it: {error.message}"
                if _changed_nothing(error):
                    await self._save(record, status)
                else:
                    message += " The deletion is retried until it succeeds."
                message = message.replace(vendor_id, record.id)
                raise RequestError(ErrorCode.CONFLICT, message) from None
        finally:
            self._core.in_flight.discard(record.id)

    async def _list_abandoned(self) -> Sequence[str]:
        """List the ids of unfinished resources that no process is working on."""
        rows = await self._core.store.find_rows(self.table, status="creating")
        rows += await self._core.store.find_rows(self.table, status="deleting")
        return [str(row["id"]) for row in rows if self.is_abandoned(row)]

    def is_abandoned(self, row: Row) -> bool:
        """Check whether a resource is unfinished and no process is working on it."""
        is_creating = row["status"] == "creating" and row["vendor_id"] is None
        if not is_creating and row["status"] != "deleting":
            return False
        spec = json.loads(row["spec"])
        if spec["sandbox"] != self._core.settings.sandbox:
            return False
        if spec["owner"] == self._core.store.owner:
            return row["id"] not in self._core.in_flight
        return self._core.store.is_stale_owner(spec["owner"]) or _compute_age_s(row) > MAX_CALL_S

    async def take_over(self, row: Row) -> bool:
        """Claim a record for this process to reconcile; return False if another was first."""
        spec = json.loads(row["spec"])
        if spec["owner"] == self._core.store.owner:
            return True
        new = self._make_spec(spec, at=spec["at"])
        return await self._core.store.replace_spec(self.table, str(row["id"]), row["spec"], new)

    async def _reconcile_row(self, row: Row, lists: dict[str, Sequence[S]]) -> bool:
        """Reconcile one resource; return whether that was possible."""
        vendor, connection = await self._find_place(row)
        record, vendor_id, state = self._records.read(row), row["vendor_id"], None
        if vendor_id is None:
            if connection.id not in lists:
                query = ResourceQuery(resource=self.resource)
                reply = await self._core.ask_vendor(vendor, connection, query)
                lists[connection.id] = reply.items
            state = next(
                (candidate for candidate in lists[connection.id] if row["id"] in candidate.name),
                None,
            )
            grace_s = 2 * (self._core.get_timeouts(vendor.id).total_s or 0.0)
            if state is None and _compute_age_s(row) < grace_s:
                return False
        if row["status"] == "deleting":
            target_id = vendor_id or (state and state.vendor_id)
            if target_id:
                deletion = ResourceDeletion(resource=self.resource, vendor_id=str(target_id))
                await self._core.ask_vendor(vendor, connection, deletion)
        if not await self._is_unchanged(row):
            return False  # it was changed meanwhile
        if row["status"] == "deleting":
            record.deleted = True
            await self._save(record, "deleted")
        elif state is not None:
            await self._record_state(record, state)
        else:
            record.error = ErrorInfo(
                code=ErrorCode.PROVIDER_UNAVAILABLE.name,
                message="The request was interrupted and nothing was created: create it again.",
            )
            await self._save(record, "failed")
        log.info("%s is reconciled: %s", record.id, record.status)
        return True

    async def _check_unused(self, account_id: str, record_id: str) -> None:
        """Refuse to delete a resource that an existing endpoint or pod of an account uses.

        Raises:
            RequestError: `CONFLICT`, which names the resource that uses it.
        """
        for table in ("endpoints", "compute"):
            for row in await self._core.store.find_owned_rows(table, AccountScope(account_id)):
                never_made = row["status"] == "failed" and row["vendor_id"] is None
                if row["status"] == "deleted" or never_made:
                    continue
                if json.loads(row["doc"]).get(self.used_as) == record_id:
                    raise RequestError(
                        ErrorCode.CONFLICT, f"`{row['id']}` uses it: delete that resource first."
                    )

    async def _record_state(self, record: K, state: S) -> None:
        """Record that the vendor has created the resource."""
        await self._save(record, "ready", vendor_id=state.vendor_id)

    async def _save(self, record: K, status: InfrastructureStatus, **columns: object) -> None:
        """Save a record with its new status."""
        if status not in ("creating", "deleting"):
            record.status_detail = None
        record.status = status
        if status == "deleted":
            record.deleted_at = now()
        saved = self._records.make_update(record, status=status, **columns)
        await self._core.store.write([saved])

    async def _is_unchanged(self, row: Row) -> bool:
        """Check whether a record is unchanged since it was read: it may have been deleted."""
        current = await self._core.store.get_row(self.table, str(row["id"]), "doc")
        return current is not None and bool(current["doc"] == row["doc"])

    def _make_spec(self, notes: Mapping[str, object], at: str | None = None) -> str:
        """Return the engine's notes on a record: calling process, time, and cloud."""
        engine_notes = {"owner": self._core.store.owner, "sandbox": self._core.settings.sandbox}
        return json.dumps({**notes, "at": at or format_rfc3339(now()), **engine_notes})

    async def _find_place(self, row: Row) -> tuple[Vendor, Connection]:
        """Find a resource's vendor and connection; if that was deleted, one with an equal pointer.

        Another key may belong to another account at the vendor, which does not have the resource.

        Raises:
            RequestError: `CREDENTIALS_MISSING`.
        """
        connection = await self._core.directory.find_renter(row)
        vendor = self._core.registry.vendors.get(connection.provider)
        if vendor is not None and self.creation.kind in vendor.infrastructure:
            return vendor, connection
        raise RequestError(
            ErrorCode.CREDENTIALS_MISSING,
            "The connection that created this resource is gone: connect its vendor again with the"
            " same secret_ref.",
        )


def make_vendor_name(record: Infrastructure) -> str:
    """Return a resource's name at the vendor: its own name, and its id to recognise it by."""
    return f"{record.name[:MAX_NAME_CHARS]}-{record.id}"


def _changed_nothing(error: ProviderError | ToolkitError) -> bool:
    """Check whether a failed request has certainly changed nothing at the vendor."""
    if isinstance(error, ToolkitError):
        return True  # it was not sent
    if isinstance(error, OutcomeUnknownError) or error.code is ErrorCode.PROVIDER_BAD_RESPONSE:
        return False
    return error.status is None or (400 <= error.status < 500 and error.status != 408)


def _compute_age_s(row: Row) -> float:
    """Return the seconds since a process last asked the vendor to create or delete the resource."""
    call_time = json.loads(row["spec"])["at"]
    return (now() - datetime.fromisoformat(call_time)).total_seconds()
