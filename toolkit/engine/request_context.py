"""The context of a request: account, key, and the claim of its idempotency key."""

from dataclasses import dataclass
from typing import Self

from toolkit.contract.choices import Scope
from toolkit.store import AccountScope, AllAccounts, Lease, ReadScope


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a request with an idempotency key.

    Attributes:
        code: number that the server has stored with it; the engine never reads it.
        document: record in its envelope, as JSON.
    """

    code: int
    document: str


@dataclass(slots=True)
class IdempotencyClaim:
    """The claim of a request on its idempotency key, while it is being served.

    Attributes:
        id: id made of the account and a hash of the key.
        fingerprint: fingerprint of the request; another request must not use the same key.
        accepted_code: code of the outcome once a record is accepted.
        outcome: outcome that is stored with it; None until then.
        is_lost: whether another process has stored an outcome for the same key first.
    """

    id: str
    account_id: str
    fingerprint: str
    accepted_code: int
    outcome: Outcome | None = None
    is_lost: bool = False


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The context of a request, which the methods of services take first.

    Attributes:
        account_id: account whose records it writes, and reads unless it reads all.
        key_id: id of the API key that costs are charged to; None for the engine's own work.
        scopes: scopes of that key; empty for work that continues by itself.
        allowance_id: id that the key's spending is counted under, for a key with an allowance.
        claim: claim of the request's idempotency key, if it has a key.
        watches_text: whether its caller will watch texts as they are written (`Prefer: stream`).
        reads_all_accounts: whether it reads the records of all accounts, and writes nothing.
    """

    account_id: str
    key_id: str | None = None
    scopes: frozenset[Scope] = frozenset()
    allowance_id: str | None = None
    claim: IdempotencyClaim | None = None
    watches_text: bool = False
    reads_all_accounts: bool = False

    @property
    def scope(self) -> ReadScope:
        """The scope of the request's reads: its account, or all accounts."""
        return AllAccounts() if self.reads_all_accounts else AccountScope(self.account_id)

    @classmethod
    def of_lease(cls, lease: Lease) -> Self:
        """Return the context of work under a lease, which continues after its request's answer."""
        return cls(lease.account_id, lease.key_id)
