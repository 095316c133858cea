"""Idempotency: a request that is sent again is carried out once (decisions, "Idempotency").

The claim of a request's idempotency key is written in the very transaction that accepts what the
request asks for: after a crash either both are there or neither is.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass

from pydantic import BaseModel

from toolkit.contract.base import format_rfc3339, now
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.engine.context import EngineContext
from toolkit.store import Change, Conflict, DeleteRow, InsertRow, Lease, UpdateRow
from toolkit.store.maintenance.prune import IDEMPOTENCY_RETENTION
from toolkit.store.writing.writer import REQUEST_WAIT_S

SWEEP_INTERVAL_S = 900.0


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """The response that a request got: its HTTP status and body."""

    fingerprint: str
    status: int
    body: str


@dataclass(slots=True)
class IdempotencyClaim:
    """The claim of a request on its idempotency key, while it is being answered.

    Attributes:
        id: made of the account and a hash of the key.
        fingerprint: of the request; the same key must not be used for another one.
        render_response: renders a record as the response, which is HTTP status and body.
        stored: the response that is stored with it; none before it is.
        is_lost: whether another process has written it first.
    """

    id: str
    account_id: str
    fingerprint: str
    render_response: Callable[[BaseModel], tuple[int, str]]
    stored: tuple[int, str] | None = None
    is_lost: bool = False

    def to_insert(self, status: int, body: str) -> InsertRow:
        """Make the insert of the claim's row."""
        row: dict[str, object] = {
            "id": self.id,
            "account_id": self.account_id,
            "fingerprint": self.fingerprint,
            "status": status,
            "body": body,
            "created_at": format_rfc3339(now()),
        }
        return InsertRow("idempotency", row)


# The claim of the request that is being answered in this context, if it has a key.
CURRENT_CLAIM: ContextVar[IdempotencyClaim | None] = ContextVar("toolkit_claim", default=None)


async def commit_accepted(
    core: EngineContext, changes: Sequence[Change], record: BaseModel, *, lease: Lease | None = None
) -> None:
    """Commit what a request asked for, together with the claim of its idempotency key.

    Args:
        changes: what the request changes.
        record: the record that the response shows.
        lease: the lease that it is written under.

    Raises:
        ServiceError: `UNAVAILABLE` when another process has accepted the same request first.
    """
    claim = CURRENT_CLAIM.get()
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
