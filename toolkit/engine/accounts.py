"""Accounts and API keys: a key is shown once and kept as its SHA-256."""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.contract.account import (
    Account,
    AccountCreate,
    AccountCreated,
    ApiKey,
    KeyCreate,
    KeyCreated,
    Scope,
)
from toolkit.contract.base import now, rfc3339
from toolkit.contract.errors import ErrorCode, RequestError, not_found
from toolkit.contract.ids import Prefix, new_id
from toolkit.engine.core import Core
from toolkit.store import Change, Conflict, Insert, Update

KEY_PREFIX = "sk_live_"
ALL_SCOPES: tuple[Scope, ...] = ("read", "write", "admin")
LOCAL_EMAIL = "notebook@localhost.localdomain"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who sent a request, and what the key allows."""

    account_id: str
    key_id: str
    scopes: frozenset[Scope]


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


class Accounts:
    """`/v1/account`."""

    def __init__(self, core: Core) -> None:
        self._core = core
        # The keys of notebooks on this very process: never written down, gone with it.
        self._session: dict[str, Principal] = {}

    async def create(self, request: AccountCreate) -> AccountCreated:
        """Open an account; the key in the answer is shown this once.

        Raises:
            RequestError: `CONFLICT` when the address has an account.
        """
        account, changes = self._new_account(request.email)
        key, inserted, _ = self._new_key(account.id)
        try:
            await self._core.store.write([*changes, inserted])
        except Conflict:
            raise RequestError(
                ErrorCode.CONFLICT, "This address has an account; use its key or another address."
            ) from None
        return AccountCreated(**dict(account), api_key=key)

    async def authenticate(self, key: str) -> Principal:
        """Tell whose key this is.

        Raises:
            RequestError: `UNAUTHENTICATED` for a malformed, unknown or revoked one, all alike.
        """
        digest = _digest(key)
        if digest in self._session:
            return self._session[digest]
        rows = await self._core.store.find("api_keys", digest=digest)
        if not rows or not hmac.compare_digest(str(rows[0]["digest"]), digest):
            raise RequestError(ErrorCode.UNAUTHENTICATED)
        if rows[0]["revoked_at"] is not None:
            raise RequestError(ErrorCode.UNAUTHENTICATED)
        record = ApiKey.model_validate_json(str(rows[0]["doc"]))
        return Principal(str(rows[0]["account_id"]), record.id, frozenset(record.scopes))

    async def local(self) -> tuple[Account, str]:
        """The account of whoever runs the engine in their own process, and a key for it."""
        account, changes = self._new_account(LOCAL_EMAIL)
        try:
            await self._core.store.write(changes)
        except Conflict:
            rows = await self._core.store.find("accounts", email=LOCAL_EMAIL)
            account = Account.model_validate_json(str(rows[0]["doc"]))
        key = KEY_PREFIX + secrets.token_urlsafe(32)
        principal = Principal(account.id, new_id(Prefix.KEY), frozenset(ALL_SCOPES))
        self._session[_digest(key)] = principal
        return account, key

    async def me(self, account_id: str) -> Account:
        """The caller's account."""
        row = await self._core.store.get("accounts", account_id)
        if row is None:
            raise not_found("account", account_id)
        return Account.model_validate_json(str(row["doc"]))

    async def keys(self, account_id: str, limit: int, before: str | None) -> list[ApiKey]:
        """A page of the account's keys, newest first: never the keys themselves."""
        rows = await self._core.store.page("api_keys", account_id, limit=limit, before=before)
        return [ApiKey.model_validate_json(str(row["doc"])) for row in rows]

    async def revoke(self, account_id: str, key_id: str) -> ApiKey:
        """Make a key invalid at once.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        row = await self._core.store.get("api_keys", key_id)
        if row is None or row["account_id"] != account_id:
            raise not_found("key", key_id)
        key = ApiKey.model_validate_json(str(row["doc"]))
        if key.revoked_at is None:
            key.revoked_at = now()
            values = {"revoked_at": rfc3339(key.revoked_at), "doc": key.model_dump_json()}
            await self._core.store.write([Update("api_keys", key_id, values)])
        return key

    @staticmethod
    def _new_account(email: str) -> tuple[Account, Sequence[Change]]:
        account = Account(id=new_id(Prefix.ACCOUNT), email=email, created_at=now())
        row: dict[str, object] = {
            "id": account.id,
            "email": email.casefold(),
            "created_at": rfc3339(account.created_at),
            "doc": account.model_dump_json(),
        }
        return account, [Insert("accounts", row)]

    async def create_key(self, account_id: str, request: KeyCreate) -> KeyCreated:
        """Make another key for an account; it is shown this once."""
        scopes = [scope for scope in ALL_SCOPES if scope in request.scopes]
        key, inserted, record = self._new_key(account_id, scopes, request.max_cost_usd_per_day)
        await self._core.store.write([inserted])
        return KeyCreated(**dict(record), api_key=key)

    @staticmethod
    def _new_key(
        account_id: str, scopes: Sequence[Scope] = ALL_SCOPES, a_day: float | None = None
    ) -> tuple[str, Insert, ApiKey]:
        key = KEY_PREFIX + secrets.token_urlsafe(32)
        record = ApiKey(
            id=new_id(Prefix.KEY),
            last4=key[-4:],
            scopes=list(scopes),
            max_cost_usd_per_day=a_day,
            created_at=now(),
        )
        row: dict[str, object] = {
            "id": record.id,
            "account_id": account_id,
            "digest": _digest(key),
            "revoked_at": None,
            "created_at": rfc3339(record.created_at),
            "doc": record.model_dump_json(),
        }
        return key, Insert("api_keys", row), record
