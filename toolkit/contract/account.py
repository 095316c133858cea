"""Accounts and API keys (specification, "Account" and "Authentication")."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from toolkit.contract.base import Record, Request, Timestamp, Usd

Scope = Literal["read", "write", "admin"]


# What no part of an address holds: white space, what does not print, and what sets parts off.
_APART = r"\s\x00-\x20\x7f-\xa0\u2000-\u206f\u3000\ufeff@<>(),;:\"\[\]\\"
_LABEL = rf"[^{_APART}.\-][^{_APART}.]*"
_EMAIL = rf"^[^{_APART}]+@{_LABEL}(\.{_LABEL})+$"


def _is_email(text: str) -> str:
    if not re.fullmatch(_EMAIL, text):
        raise ValueError("is not an email address such as name@example.org")
    return text


Email = Annotated[
    str,
    Field(min_length=3, max_length=254, json_schema_extra={"pattern": _EMAIL}),
    AfterValidator(_is_email),
]


class AccountCreate(Request):
    """`POST /v1/account`, the only request sent without a key."""

    email: Email


class Account(Record):
    """The caller's account."""

    id: str
    email: str
    created_at: Timestamp


class AccountCreated(Account):
    """A new account with its first key, shown this once."""

    api_key: str = Field(description="shown only once, begins sk_live_")


class KeyCreate(Request):
    """`POST /v1/account/keys`.

    Attributes:
        scopes: what the key allows.
        max_cost_usd_per_day: what all work asked for with it may cost from midnight to midnight,
            UTC; none sets no limit.
    """

    scopes: list[Scope] = Field(default=["read", "write"], min_length=1, max_length=3)
    max_cost_usd_per_day: Usd | None = None


class ApiKey(Record):
    """An API key as it is listed: never the key itself."""

    id: str
    prefix: str = "sk_live_"
    last4: str
    scopes: list[Scope] = ["read", "write", "admin"]
    max_cost_usd_per_day: Usd | None = None
    created_at: Timestamp
    revoked_at: Timestamp | None = None


class KeyCreated(ApiKey):
    """A new key, shown this once."""

    api_key: str = Field(description="shown only once, begins sk_live_")
