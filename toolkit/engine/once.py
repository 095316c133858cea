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

from toolkit.contract.base import now, rfc3339
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.engine.core import Core
from toolkit.store import Change, Conflict, Delete, Insert, Lease, Update
from toolkit.store.prune import REQUESTS_KEPT
from toolkit.store.writer import REQUEST_WAIT_S

SWEPT_EVERY_S = 900.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The response that a request got: its HTTP status and body."""

    fingerprint: str
    status: int
    body: str


@dataclass(slots=True)
class Claim:
    """The claim of a request on its idempotency key, while it is being answered.

    Attributes:
        id: made of the account and a hash of the key.
        fingerprint: of the request; the same key must not be used for another one.
        answered: renders a record as the response, which is HTTP status and body.
        kept: the response that is stored with it; none before it is.
        lost: whether another process has written it first.
    """

    id: str
    account_id: str
    fingerprint: str
    answered: Callable[[BaseModel], tuple[int, str]]
    kept: tuple[int, str] | None = None
    lost: bool = False

    def inserted(self, status: int, body: str) -> Insert:
        """Make the insert of the claim's row."""
        row: dict[str, object] = {
            "id": self.id,
            "account_id": self.account_id,
            "fingerprint": self.fingerprint,
            "status": status,
            "body": body,
            "created_at": rfc3339(now()),
        }
        return Insert("idempotency", row)


# The claim of the request that is being answered in this context, if it has a key.
CLAIM: ContextVar[Claim | None] = ContextVar("toolkit_claim", default=None)


async def accept(
    core: Core, changes: Sequence[Change], record: BaseModel, *, lease: Lease | None = None
) -> None:
    """Commit what a request asked for, together with the claim of its idempotency key.

    Args:
        changes: what the request changes.
        record: the record that the response shows.
        lease: the lease that it is written under.

    Raises:
        ServiceError: `UNAVAILABLE` when another process has accepted the same request first.
    """
    claim = CLAIM.get()
    if claim is None or claim.kept is not None:
        await core.store.write(changes, lease=lease, max_wait_s=REQUEST_WAIT_S)
        return
    try:
        answer = claim.answered(record)
        accepted = [*changes, claim.inserted(*answer)]
        await core.store.write(accepted, lease=lease, max_wait_s=REQUEST_WAIT_S)
    except Conflict:
        if await core.store.get("idempotency", claim.id) is None:
            raise
        claim.lost = True
        raise ServiceError(ErrorCode.UNAVAILABLE, "The same request is being answered.") from None
    claim.kept = answer


class Once:
    """The store of responses to requests with an idempotency key."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def sweep(self) -> None:
        """Delete expired responses, every so often, until cancelled."""
        while True:
            with suppress(ServiceError):  # it is tried again at the next interval
                await self._core.store.expire("idempotency", rfc3339(now() - REQUESTS_KEPT))
            await asyncio.sleep(SWEPT_EVERY_S)

    async def find(self, claim: Claim) -> Answer | None:
        """Find the first response that a key got, for as long as it is kept."""
        row = await self._core.store.get("idempotency", claim.id)
        if row is None:
            return None
        if str(row["created_at"]) < rfc3339(now() - REQUESTS_KEPT):
            await self._core.store.write([Delete("idempotency", claim.id)])
            return None
        return Answer(str(row["fingerprint"]), int(row["status"]), str(row["body"]))

    async def keep(self, claim: Claim, status: int, body: str) -> None:
        """Store the response that was given."""
        if claim.kept == (status, body):
            return
        if claim.kept is not None:
            kept = Update("idempotency", claim.id, {"status": status, "body": body})
            await self._core.store.write([kept])
            return
        try:
            await self._core.store.write([claim.inserted(status, body)])
        except Conflict:
            claim.lost = True  # another process was quicker; here, twice does no harm
