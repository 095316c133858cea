"""API keys: creation, rotation and revocation; a key is shown once and stored as its SHA-256."""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import timedelta

from toolkit.contract.account import ApiKey, KeyCreate, KeyCreated, KeyRotate
from toolkit.contract.base import format_rfc3339, now
from toolkit.contract.choices import Scope
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.money import to_wire_usd
from toolkit.engine.access.account_status import is_disabled, make_disabled_error
from toolkit.engine.access.quotas import Quotas
from toolkit.engine.money.allowance import Allowances, make_key_limits
from toolkit.engine.records import Records
from toolkit.engine.request_context import RequestContext
from toolkit.store import Change, InsertRow, PatchDocument, Store, UpdateRow

KEY_PREFIX = "sk_live_"
ALL_SCOPES: tuple[Scope, ...] = ("read", "write", "admin")
SCOPE_ORDER: tuple[Scope, ...] = (*ALL_SCOPES, "work")


def generate_key() -> str:
    """Generate a new key: 256 random bits."""
    return KEY_PREFIX + secrets.token_urlsafe(32)


def hash_key(key: str) -> str:
    """Return the SHA-256 digest, in hexadecimal, by which a key is stored and looked up."""
    return hashlib.sha256(key.encode()).hexdigest()


async def find_key(store: Store, digest: str) -> tuple[str, ApiKey]:
    """Find the account id and the record of the key with a digest.

    Raises:
        RequestError: `UNAUTHENTICATED` for an unknown, revoked or expired key, all alike, and for
            a key of a disabled account.
    """
    rows = await store.find_rows("api_keys", digest=digest)
    if not rows or not hmac.compare_digest(str(rows[0]["digest"]), digest):
        raise RequestError(ErrorCode.UNAUTHENTICATED)
    key = ApiKey.model_validate_json(str(rows[0]["doc"]))
    if has_ended(key):
        raise RequestError(ErrorCode.UNAUTHENTICATED)
    account_id = str(rows[0]["account_id"])
    if await is_disabled(store, account_id):
        raise make_disabled_error()
    return account_id, key


async def complete_key(allowances: Allowances, key: ApiKey) -> ApiKey:
    """Set the money that is left of a key's own limits on its record, and return the record."""
    for limit in make_key_limits(key):
        remaining_usd = to_wire_usd(await allowances.find_remaining_today(limit))
        if limit.is_daily:
            key.left_usd_today = remaining_usd
        else:
            key.left_usd = remaining_usd
    return key


def revoke_key(key: ApiKey) -> list[Change]:
    """Mark a key's record as revoked now.

    Returns:
        the changes to store, which set only the time of revocation.
    """
    key.revoked_at = now()
    at = format_rfc3339(key.revoked_at)
    update = UpdateRow("api_keys", key.id, {"revoked_at": at})
    return [update, PatchDocument("api_keys", key.id, {"revoked_at": at})]


def make_key(
    account_id: str,
    scopes: Sequence[Scope] = ALL_SCOPES,
    a_day: float | None = None,
    name: str | None = None,
    *,
    max_cost_usd: float | None = None,
    lifetime: timedelta | None = None,
    replaces: ApiKey | None = None,
) -> tuple[str, InsertRow, ApiKey]:
    """Make a key without storing it; return it, the change that inserts its row, and its record.

    Args:
        account_id: account that the key belongs to.
        scopes: scopes of the key.
        a_day: maximum cost of its work in a day, in US dollars.
        name: its name for people.
        max_cost_usd: maximum total cost of its work, in US dollars.
        lifetime: duration for which it is valid; None until it is revoked.
        replaces: key that it is rotated from; both spend from one allowance.
    """
    key, created_at = generate_key(), now()
    record = ApiKey(
        id=new_id(Prefix.KEY),
        name=name,
        last4=key[-4:],
        scopes=list(scopes),
        max_cost_usd_per_day=a_day,
        max_cost_usd=max_cost_usd,
        created_at=created_at,
        expires_at=None if lifetime is None else created_at + lifetime,
        rotated_from=None if replaces is None else replaces.id,
        allowance_of=None if replaces is None else replaces.allowance_id,
    )
    row: dict[str, object] = {
        "id": record.id,
        "account_id": account_id,
        "digest": hash_key(key),
        "revoked_at": None,
        "created_at": format_rfc3339(created_at),
        "doc": record.model_dump_json(exclude={"left_usd_today", "left_usd"}),
    }
    return key, InsertRow("api_keys", row), record


class ApiKeys:
    """The operations of `/v1/account/keys`."""

    def __init__(self, store: Store, quotas: Quotas, allowances: Allowances) -> None:
        self._store = store
        self._keys = Records(store).keys
        self._quotas = quotas
        self._allowances = allowances

    async def list(self, context: RequestContext, limit: int, before: str | None) -> list[ApiKey]:
        """List a page of the account's key records, newest first; never the keys themselves."""
        keys = await self._keys.list(context.scope, limit, before)
        return [await complete_key(self._allowances, key) for key in keys]

    async def count(self, context: RequestContext) -> int | None:
        """Count the account's keys, or return None if there are too many to count."""
        return await self._keys.count(context.scope)

    async def get(self, context: RequestContext, key_id: str) -> ApiKey:
        """Return the record of one key, never the key itself.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        key = await self._keys.get(context.scope, key_id)
        return await complete_key(self._allowances, key)

    async def create(self, context: RequestContext, request: KeyCreate) -> KeyCreated:
        """Make another key for the caller's account; it is shown only once.

        Raises:
            RequestError: `FORBIDDEN` for a scope that the caller's key lacks, and for a key with an
                allowance, which could otherwise gain a second allowance.
        """
        scopes = [scope for scope in SCOPE_ORDER if scope in request.scopes]
        _check_scopes(context, scopes)
        if context.allowance_id is not None:
            raise RequestError(
                ErrorCode.FORBIDDEN,
                "A key with an allowance cannot make keys: use a key without an allowance.",
            )
        await self._quotas.check_storage(context.account_id, 1)
        seconds = request.expires_in_s
        key, insert, record = make_key(
            context.account_id,
            scopes,
            request.max_cost_usd_per_day,
            request.name,
            max_cost_usd=request.max_cost_usd,
            lifetime=None if seconds is None else timedelta(seconds=seconds),
        )
        await self._store.write([insert])
        record.left_usd_today = record.max_cost_usd_per_day
        record.left_usd = record.max_cost_usd
        return KeyCreated(**dict(record), api_key=key)

    async def rotate(self, context: RequestContext, key_id: str, request: KeyRotate) -> KeyCreated:
        """Make a key that replaces another like it; it is shown only once.

        Both keys spend from one allowance, while the old key is valid and afterwards.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` for a key that has ended or was rotated before;
                `FORBIDDEN` for a key with more rights than the caller's, and if the caller's key
                has an allowance that the other does not share.
        """
        old = await self.get(context, key_id)
        if old.rotated_to is not None:
            raise RequestError(
                ErrorCode.CONFLICT, f"The key was rotated to `{old.rotated_to}`: rotate that key."
            )
        if has_ended(old):
            raise RequestError(ErrorCode.CONFLICT, "The key was revoked: make a new key.")
        _check_scopes(context, old.scopes)
        if context.allowance_id not in (None, old.allowance_id):
            raise RequestError(
                ErrorCode.FORBIDDEN,
                "A key with an allowance can rotate only itself: use a key without an allowance.",
            )
        # A key that was made to expire is replaced by a key with the same lifetime.
        key, insert, record = make_key(
            context.account_id,
            old.scopes,
            old.max_cost_usd_per_day,
            old.name,
            max_cost_usd=old.max_cost_usd,
            lifetime=None if old.expires_at is None else old.expires_at - old.created_at,
            replaces=old,
        )
        old.rotated_to = record.id
        overlap_end = record.created_at + timedelta(seconds=request.overlap_s)
        # Rotation never lets the old key live longer than it would have.
        old.expires_at = min(old.expires_at or overlap_end, overlap_end)
        ends = {"rotated_to": record.id, "expires_at": format_rfc3339(old.expires_at)}
        patch = PatchDocument("api_keys", old.id, ends)
        await self._store.write([insert, patch])
        record.left_usd_today, record.left_usd = old.left_usd_today, old.left_usd
        return KeyCreated(**dict(record), api_key=key)

    def limit_local_key(self, context: RequestContext, max_cost_usd: float) -> None:
        """Set the maximum total cost, in US dollars, of the caller's key, which is not stored.

        Call it before the key's first use.
        """
        if context.key_id is not None:
            self._allowances.limit_local_key(context.key_id, max_cost_usd)

    async def revoke(self, context: RequestContext, key_id: str) -> ApiKey:
        """Make a key invalid at once, and return its record; a revoked key stays as it is.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        key = await self.get(context, key_id)
        if key.revoked_at is None:
            await self._store.write(revoke_key(key))
        return key


def has_ended(key: ApiKey) -> bool:
    """Check whether a key was revoked or has expired."""
    return key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= now())


def _check_scopes(context: RequestContext, scopes: Sequence[Scope]) -> None:
    """Refuse scopes that the caller's own key does not have."""
    # Reading and writing include work.
    implied_scopes = {"work"} if context.scopes >= {"read", "write"} else set()
    if not {*context.scopes, *implied_scopes}.issuperset(scopes):
        raise RequestError(
            ErrorCode.FORBIDDEN,
            "A key cannot grant a scope that it lacks: use a key with that scope.",
        )
