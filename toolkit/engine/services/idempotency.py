"""Idempotency: a repeated request is executed once (decisions, "Idempotency").

The claim of a request's idempotency key is written in the transaction that accepts the requested
work. So after a crash either both are stored or neither is.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from pydantic import BaseModel

from toolkit.contract.base import dump_envelope, format_rfc3339, now
from toolkit.contract.errors import ErrorCode, RequestError, ServiceError
from toolkit.engine.context import EngineContext
from toolkit.engine.request_context import IdempotencyClaim, Outcome, RequestContext
from toolkit.store import Change, Conflict, DeleteRow, InsertRow, Lease, UpdateRow
from toolkit.store.maintenance.prune import IDEMPOTENCY_RETENTION
from toolkit.store.writing.writer import REQUEST_WAIT_S

SWEEP_INTERVAL_S = 900.0


async def commit_accepted(
    core: EngineContext,
    context: RequestContext,
    changes: Sequence[Change],
    record: BaseModel | None,
    *,
    lease: Lease | None = None,
) -> None:
    """Commit the requested changes together with the claim of the request's idempotency key.

    Args:
        context: context of the request, with the claim; without a claim, only the changes are
            written.
        record: accepted record, which is stored with the claim; None without a claim.

    Raises:
        ServiceError: `UNAVAILABLE` if another process has accepted the same request first.
    """
    claim = context.claim
    if claim is None or claim.outcome is not None or record is None:
        await core.store.write(changes, lease=lease, max_wait_s=REQUEST_WAIT_S)
        return
    outcome = Outcome(claim.accepted_code, dump_envelope(record).decode())
    try:
        all_changes = [*changes, _make_insert(claim, outcome)]
        await core.store.write(all_changes, lease=lease, max_wait_s=REQUEST_WAIT_S)
    except Conflict:
        if await core.store.get_row("idempotency", claim.id) is None:
            raise
        claim.is_lost = True
        raise ServiceError(ErrorCode.UNAVAILABLE, "The same request is being answered.") from None
    claim.outcome = outcome


class IdempotencyStore:
    """The store of the outcomes of requests with an idempotency key."""

    def __init__(self, core: EngineContext) -> None:
        self._core = core

    async def sweep_expired(self) -> None:
        """Delete expired outcomes, at intervals, until cancelled."""
        while True:
            with suppress(ServiceError):  # the next interval tries again
                await self._core.store.delete_older_than(
                    "idempotency", format_rfc3339(now() - IDEMPOTENCY_RETENTION)
                )
            await asyncio.sleep(SWEEP_INTERVAL_S)

    async def find(self, claim: IdempotencyClaim) -> Outcome | None:
        """Find the stored outcome of a claim's key; None if there is none or it has expired.

        Raises:
            RequestError: `IDEMPOTENCY_CONFLICT` if the key belongs to another request.
        """
        row = await self._core.store.get_row("idempotency", claim.id)
        if row is None:
            return None
        if str(row["created_at"]) < format_rfc3339(now() - IDEMPOTENCY_RETENTION):
            await self._core.store.write([DeleteRow("idempotency", claim.id)])
            return None
        if row["fingerprint"] != claim.fingerprint:
            raise RequestError(ErrorCode.IDEMPOTENCY_CONFLICT)
        return Outcome(int(row["status"]), str(row["body"]))

    async def save(self, claim: IdempotencyClaim, outcome: Outcome) -> None:
        """Store the outcome of a request that has been served.

        If another process has stored an outcome first, that stays and the claim is marked as lost.
        """
        if claim.outcome == outcome:
            return
        if claim.outcome is not None:
            update = UpdateRow("idempotency", claim.id, _to_columns(outcome))
            await self._core.store.write([update])
            return
        try:
            await self._core.store.write([_make_insert(claim, outcome)])
        except Conflict:
            claim.is_lost = True  # another process was first; here, executing twice does no harm


def _make_insert(claim: IdempotencyClaim, outcome: Outcome) -> InsertRow:
    row: dict[str, object] = {
        "id": claim.id,
        "account_id": claim.account_id,
        "fingerprint": claim.fingerprint,
        "created_at": format_rfc3339(now()),
        **_to_columns(outcome),
    }
    return InsertRow("idempotency", row)


def _to_columns(outcome: Outcome) -> dict[str, object]:
    return {"status": outcome.code, "body": outcome.document}
