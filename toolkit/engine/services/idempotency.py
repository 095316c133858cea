"""Idempotency: a request that is sent again is carried out once (decisions, "Idempotency").

The claim of a request's idempotency key is written in the very transaction that accepts what the
request asks for: after a crash either both are there or neither is.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from pydantic import BaseModel

from toolkit.contract.base import format_rfc3339, now
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.engine.context import EngineContext
from toolkit.engine.request_context import IdempotencyClaim, RequestContext
from toolkit.store import Change, Conflict, DeleteRow, Lease, UpdateRow
from toolkit.store.maintenance.prune import IDEMPOTENCY_RETENTION
from toolkit.store.writing.writer import REQUEST_WAIT_S

SWEEP_INTERVAL_S = 900.0


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """The response that a request got: its HTTP status and body."""

    fingerprint: str
    status: int
    body: str


async def commit_accepted(
    core: EngineContext,
    context: RequestContext,
    changes: Sequence[Change],
    record: BaseModel,
    *,
    lease: Lease | None = None,
) -> None:
    """Commit what a request asked for, together with the claim of its idempotency key.

    Args:
        core: the engine's parts.
        context: who asks, with the claim.
        changes: what the request changes.
        record: the record that the response shows.
        lease: the lease that it is written under.

    Raises:
        ServiceError: `UNAVAILABLE` when another process has accepted the same request first.
    """
    claim = context.claim
    if claim is None or claim.stored is not None:
        await core.store.write(changes, lease=lease, max_wait_s=REQUEST_WAIT_S)
        return
    try:
        answer = claim.render_response(record)
        accepted = [*changes, claim.to_insert(*answer)]
        await core.store.write(accepted, lease=lease, max_wait_s=REQUEST_WAIT_S)
    except Conflict:
        if await core.store.get_row("idempotency", claim.id) is None:
            raise
        claim.is_lost = True
        raise ServiceError(ErrorCode.UNAVAILABLE, "The same request is being answered.") from None
    claim.stored = answer


class IdempotencyStore:
    """The store of responses to requests with an idempotency key."""

    def __init__(self, core: EngineContext) -> None:
        self._core = core

    async def sweep_expired(self) -> None:
        """Delete expired responses, every so often, until cancelled."""
        while True:
            with suppress(ServiceError):  # it is tried again at the next interval
                await self._core.store.delete_older_than(
                    "idempotency", format_rfc3339(now() - IDEMPOTENCY_RETENTION)
                )
            await asyncio.sleep(SWEEP_INTERVAL_S)

    async def find(self, claim: IdempotencyClaim) -> StoredResponse | None:
        """Find the first response that a key got, for as long as it is kept."""
        row = await self._core.store.get_row("idempotency", claim.id)
        if row is None:
            return None
        if str(row["created_at"]) < format_rfc3339(now() - IDEMPOTENCY_RETENTION):
            await self._core.store.write([DeleteRow("idempotency", claim.id)])
            return None
        return StoredResponse(str(row["fingerprint"]), int(row["status"]), str(row["body"]))

    async def save(self, claim: IdempotencyClaim, status: int, body: str) -> None:
        """Store the response that was given."""
        if claim.stored == (status, body):
            return
        if claim.stored is not None:
            kept = UpdateRow("idempotency", claim.id, {"status": status, "body": body})
            await self._core.store.write([kept])
            return
        try:
            await self._core.store.write([claim.to_insert(status, body)])
        except Conflict:
            claim.is_lost = True  # another process was quicker; here, twice does no harm
