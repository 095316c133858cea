"""Accounts and API keys (specification, "Account" and "Authentication")."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from toolkit.contract.base import Record, Request, Timestamp, Usd
from toolkit.contract.choices import Scope

DEFAULT_OVERLAP_S, MAX_OVERLAP_S = 24 * 3600, 7 * 24 * 3600
MAX_LIFETIME_S = 366 * 24 * 3600
# Characters that no part of an address may hold: white space, unprintable, separators.
_NOT_IN_ADDRESS = r"\s\x00-\x20\x7f-\xa0\u2000-\u206f\u3000\ufeff@<>(),;:\"\[\]\\"
_DOMAIN_LABEL = rf"[^{_NOT_IN_ADDRESS}.\-][^{_NOT_IN_ADDRESS}.]*"
_EMAIL_PATTERN = rf"^[^{_NOT_IN_ADDRESS}]+@{_DOMAIN_LABEL}(\.{_DOMAIN_LABEL})+$"


def _check_email(text: str) -> str:
    if not re.fullmatch(_EMAIL_PATTERN, text):
        raise ValueError("is not an email address such as name@example.org")
    return text


Email = Annotated[
    str,
    Field(min_length=3, max_length=254, json_schema_extra={"pattern": _EMAIL_PATTERN}),
    AfterValidator(_check_email),
]


class AccountCreate(Request):
    """`POST /v1/account`, the only request sent without a key."""

    email: Email


class Account(Record):
    """The caller's account.

    Attributes:
        max_cost_usd_per_day: operator's limit on the cost of all its work between two midnights
            UTC, in US dollars. Null sets no limit.
        disabled_at: time since which its keys are rejected, by its operator; null while they work.
    """

    id: str
    email: str
    created_at: Timestamp
    max_cost_usd_per_day: Usd | None = None
    disabled_at: Timestamp | None = None


class CallerKey(Record):
    """The key of a request, as its holder may see it: never the key itself.

    Attributes:
        scopes: scopes that the key allows.
        max_cost_usd_per_day: maximum cost in a UTC day of all work asked for with it, in US
            dollars.
        max_cost_usd: maximum total cost of all work asked for with it, in US dollars.
        expires_at: time at which it ends, if it was rotated or has a lifetime.
    """

    id: str
    name: str | None = None
    last4: str | None = None
    scopes: list[Scope]
    max_cost_usd_per_day: Usd | None = None
    max_cost_usd: Usd | None = None
    expires_at: Timestamp | None = None


class CallerAccount(Account):
    """`GET /v1/account`: the caller's account, and the key that was used."""

    key: CallerKey


class AccountCreated(Account):
    """A new account with its first key, shown this once."""

    api_key: str = Field(description="shown only once, begins sk_live_")


class KeyCreate(Request):
    """`POST /v1/account/keys`.

    Attributes:
        name: label of the key's purpose; it has no effect.
        scopes: scopes of the key. `work` asks for runs, jobs, workflows, tasks and plans, and reads
            their results by id. It lists no records, and reaches no connections or keys.
        max_cost_usd_per_day: maximum cost of all work asked for with it between two midnights UTC,
            in US dollars. Null sets no limit.
        max_cost_usd: maximum total cost of all work asked for with it, in US dollars. Null sets no
            limit.
        expires_in_s: lifetime of the key, in seconds. Null lets it live until it is revoked.
    """

    name: str | None = Field(default=None, min_length=1, max_length=100)
    scopes: list[Scope] = Field(default=["read", "write"], min_length=1, max_length=4)
    max_cost_usd_per_day: Usd | None = None
    max_cost_usd: Usd | None = None
    expires_in_s: int | None = Field(default=None, ge=1, le=MAX_LIFETIME_S)


class KeyRotate(Request):
    """`POST /v1/account/keys/{id}/rotate`.

    Attributes:
        overlap_s: time that the old key remains valid, in seconds; 0 ends it at once.
    """

    overlap_s: int = Field(default=DEFAULT_OVERLAP_S, ge=0, le=MAX_OVERLAP_S)


class ApiKey(Record):
    """An API key as a list shows it: never the key itself.

    Attributes:
        expires_at: time at which it ends, if it was rotated or has a lifetime.
        rotated_from: id of the key that it replaced.
        rotated_to: id of the key that replaced it.
        allowance_of: first key of its chain of rotations, whose daily allowance all of them share;
            null for that first key.
        last_used_at: time of its last accepted use, to the minute; null before the first use.
        left_usd_today: rest of its daily allowance, in US dollars; null if it has no allowance.
        max_cost_usd: maximum total cost of all work asked for with it, in US dollars.
        left_usd: rest of `max_cost_usd`, in US dollars; null without such a limit.
    """

    id: str
    name: str | None = None
    prefix: str = "sk_live_"
    last4: str
    scopes: list[Scope] = ["read", "write", "admin"]
    max_cost_usd_per_day: Usd | None = None
    created_at: Timestamp
    expires_at: Timestamp | None = None
    revoked_at: Timestamp | None = None
    rotated_from: str | None = None
    rotated_to: str | None = None
    allowance_of: str | None = None
    last_used_at: Timestamp | None = None
    left_usd_today: Usd | None = None
    max_cost_usd: Usd | None = None
    left_usd: Usd | None = None

    @property
    def allowance_id(self) -> str:
        """The id of the allowance that counts its spending."""
        return self.allowance_of or self.id


class KeyCreated(ApiKey):
    """A new key, shown this once."""

    api_key: str = Field(description="shown only once, begins sk_live_")
