"""What a request carries: who asks, with which key, and the claim of its idempotency key."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from pydantic import BaseModel

from toolkit.contract.base import format_rfc3339, now
from toolkit.contract.choices import Scope
from toolkit.store import InsertRow, Lease


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


@dataclass(frozen=True, slots=True)
class RequestContext:
    """What every method of a service is given first.

    Attributes:
        account_id: whose records it reads and writes.
        key_id: the API key that costs are charged to; none for work of earlier versions.
        scopes: of that key; none for work that goes on by itself.
        allowance_id: the id that the key's spending is counted under, for a key with an allowance.
        claim: the claim of the request's idempotency key, if it has one.
    """

    account_id: str
    key_id: str | None = None
    scopes: frozenset[Scope] = frozenset()
    allowance_id: str | None = None
    claim: IdempotencyClaim | None = None

    @classmethod
    def of_lease(cls, lease: Lease) -> Self:
        """Return the context of work that goes on under a lease, after its request was answered."""
        return cls(lease.account_id, lease.key_id)
