"""Managed resources at a GPU cloud: recorded before the vendor is called, never orphaned.

A record is written before the vendor is asked to create or delete the resource, with the process
that asks; the resource's name at the vendor contains the record's id. So whatever a crash, a lost
reply or a cancelled call leaves unfinished is *reconciled* later: the vendor's list tells whether
the resource exists. Two rules distinguish that from what is still in flight:

- *Owner*: a record is reconciled by the process that asked, once it no longer waits for the reply,
  or by another one when that process has gone (its lock file tells). The process that takes it
  over first writes its own id there, by compare and swap, so that only one does.
- *Age*: a resource counts as missing only after twice the time that a call may take, as the vendor
  may still be working on what the dead process asked for. It counts as present as soon as it is
  listed, and deleting what may be gone needs no wait at all.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime

from toolkit.contract.base import ErrorInfo, format_rfc3339, now
from toolkit.contract.errors import ErrorCode, RequestError, ToolkitError
from toolkit.engine.infrastructure.resource_type import K, ResourceType, S
from toolkit.engine.request_context import RequestContext
from toolkit.engine.services.idempotency import commit_accepted
from toolkit.engine.transport.answers import OutcomeUnknownError
from toolkit.plugins import Operation, ProviderError
from toolkit.store import Change, Row

log = logging.getLogger(__name__)

UNCONFIRMED = "unconfirmed"  # the status detail of a resource that may or may not exist
MAX_CALL_S = 3600.0  # an older call is not in flight any more, where no lock file tells


class ManagedResource(ResourceType[K, S]):
    """A kind of infrastructure that an account creates, reads and deletes."""

    async def get(self, context: RequestContext, record_id: str) -> K:
        """Return one record.

        Raises:
            RequestError: `NOT_FOUND`, for one that was deleted too.
        """
        return await self._records.get(context.scope, record_id)

    async def list(self, context: RequestContext, limit: int, before: str | None) -> list[K]:
        """List a page of records, newest first."""
        found: list[K] = []
        while len(found) < limit:
            page = await self._records.list(context.scope, limit, before)
            found += [record for record in page if self._is_listed(record)]
            if len(page) < limit:
                break
            before = page[-1].id
        return found[:limit]

    async def count(self, context: RequestContext) -> int | None:
        """Count the records of a list; None if there are too many."""
        return await self._records.count(context.scope)

    async def delete(self, context: RequestContext, record_id: str) -> K:
        """Have the vendor destroy a resource; return its last state.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` when it is in use, still being created, or the
                vendor did not delete it; `CREDENTIALS_MISSING` when its vendor is not connected.
        """
        row = await self._records.get_row(context.scope, record_id)
        record = self._records.read(row)
        await self._check_deletable(context.account_id, record)
        if row["vendor_id"] is not None:
            await self._destroy(row, record)
        elif record.status == "creating":
            raise RequestError(
                ErrorCode.CONFLICT, "It is still being made: delete it once it is ready or failed."
            )
        record.deleted = True
        await self._save(record, "deleted")
        return record

    async def reconcile(self) -> bool:
        """Reconcile what was left half created or half deleted, as far as is known now.

        Returns:
            whether some of it has to be reconciled later.
        """
        later = False
        lists: dict[str, Sequence[S]] = {}
        for record_id in await self._list_abandoned():
            row = await self._core.store.get_row(self.table, record_id)
            if row is None or not self.is_abandoned(row):
                continue  # another process was quicker
            self._core.in_flight.add(record_id)
            try:
                later |= not (await self.take_over(row) and await self._reconcile_row(row, lists))
            except (ProviderError, ToolkitError) as fault:
                log.info("%s is settled later: %s", record_id, fault)
                later = True
            finally:
                self._core.in_flight.discard(record_id)
        return later

    async def _create_at_vendor(
        self,
        context: RequestContext,
        record: K,
        creation: Operation[S],
        *,
        along: Sequence[Change] = (),
        named: Mapping[str, str] = {},
    ) -> None:
        """Write a record, then have the vendor create the resource.

        Args:
            context: who asks.
            record: its record; the status and error tell how the call went.
            creation: the operation that creates it.
            along: changes written together with the record.
            named: our ids of what the request names by the vendor's.

        Raises:
            RequestError: `CREDENTIALS_MISSING`.
        """
        vendor, connection = await self._core.find_cloud(context.scope, self.creation.kind)
        await self._core.quotas.check_storage(context.account_id, 1)
        inserted = self._make_insert(context.account_id, record, connection, key_id=context.key_id)
        self._core.in_flight.add(record.id)
        try:
            await commit_accepted(self._core, context, [inserted, *along], record)
            try:
                state = await self._core.ask_vendor(vendor, connection, creation)
            except (ProviderError, ToolkitError) as error:
                await self._record_failure(record, error, named)
            else:
                await self._record_state(record, state)
        finally:
            self._core.in_flight.discard(record.id)

    async def _record_failure(
        self, record: K, error: ProviderError | ToolkitError, named: Mapping[str, str]
    ) -> None:
        if not _changed_nothing(error):
            record.status_detail = UNCONFIRMED
            await self._save(record, "creating")
            return
        message = error.message
        for theirs, ours in named.items():
            message = message.replace(theirs, ours)
        record.error = ErrorInfo(code=error.code.name, message=message)
        await self._save(record, "failed")

    async def _destroy(self, row: Row, record: K) -> None:
        """Ask the vendor to destroy a resource; retry later unless it certainly refused."""
        place, vendor_id, before = await self._find_place(row), str(row["vendor_id"]), record.status
        self._core.in_flight.add(record.id)
        try:
            spec = {**json.loads(row["spec"]), "at": format_rfc3339(now())}
            await self._save(record, "deleting", spec=self._make_spec(spec))
            try:
                await self._core.ask_vendor(*place, await self._make_deletion(record, vendor_id))
            except (ProviderError, ToolkitError) as error:
                message = f"The vendor did not delete it: {error.message}"
                if _changed_nothing(error):
                    await self._save(record, before)
                else:
                    message += " It is tried again until it is gone."
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
        """Tell whether a resource is unfinished and no process is working on it."""
        begun = row["status"] == "creating" and row["vendor_id"] is None
        if not begun and row["status"] != "deleting":
            return False
        spec = json.loads(row["spec"])
        # Names of resources that earlier versions made contain no id: they are left to `doctor`.
        if "owner" not in spec or spec["sandbox"] != self._core.settings.sandbox:
            return False
        if spec["owner"] == self._core.store.owner:
            return row["id"] not in self._core.in_flight
        return self._core.store.is_stale_owner(spec["owner"]) or _compute_age_s(row) > MAX_CALL_S

    async def take_over(self, row: Row) -> bool:
        """Take a record over for this process to reconcile, unless another one was quicker."""
        spec = json.loads(row["spec"])
        if spec["owner"] == self._core.store.owner:
            return True
        new = self._make_spec(spec)
        return await self._core.store.replace_spec(self.table, str(row["id"]), row["spec"], new)

    async def _reconcile_row(self, row: Row, lists: dict[str, Sequence[S]]) -> bool:
        """Reconcile one resource; return whether that was possible."""
        vendor, connection = await self._find_place(row)
        record, vendor_id, state = self._records.read(row), row["vendor_id"], None
        if vendor_id is None:
            if connection.id not in lists:
                listed = await self._core.ask_vendor(vendor, connection, self.listing)
                lists[connection.id] = listed.items
            reference = self._get_reference(row)
            state = next((one for one in lists[connection.id] if reference in one.name), None)
            grace_s = 2 * (self._core.get_timeouts(vendor.id).total_s or 0.0)
            if state is None and _compute_age_s(row) < grace_s:
                return False
        if row["status"] == "deleting":
            there = vendor_id or (state and state.vendor_id)
            if there:
                deletion = await self._make_deletion(record, str(there))
                await self._core.ask_vendor(vendor, connection, deletion)
        if not await self._is_unchanged(row):
            return False  # somebody changed it meanwhile
        if row["status"] == "deleting":
            record.deleted = True
            await self._save(record, "deleted")
        elif state is not None:
            await self._record_state(record, state)
        else:
            record.error = ErrorInfo(
                code=ErrorCode.PROVIDER_UNAVAILABLE.name,
                message="The request was cut off and nothing was made: create it again.",
            )
            await self._save(record, "failed")
        log.info("%s is settled: %s", record.id, record.status)
        return True


def _changed_nothing(error: ProviderError | ToolkitError) -> bool:
    """Tell whether a failed request has certainly changed nothing at the vendor."""
    if isinstance(error, ToolkitError):
        return True  # it was not sent
    if isinstance(error, OutcomeUnknownError) or error.code is ErrorCode.PROVIDER_BAD_RESPONSE:
        return False
    return error.status is None or (400 <= error.status < 500 and error.status != 408)


def _compute_age_s(row: Row) -> float:
    """Return the seconds since the vendor was to be called."""
    asked_at = json.loads(row["spec"])["at"]
    return (now() - datetime.fromisoformat(asked_at)).total_seconds()
