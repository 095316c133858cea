"""Accounts: sign-up, creation by the operator, and authentication of keys."""

import ipaddress
import math
from collections.abc import Collection, Sequence

from toolkit.contract.account import (
    Account,
    AccountCreate,
    AccountCreated,
    ApiKey,
    CallerAccount,
    CallerKey,
)
from toolkit.contract.base import format_rfc3339, now
from toolkit.contract.choices import Scope
from toolkit.contract.errors import ErrorCode, RequestError, ServiceError, build_not_found
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.suggestions import truncate_text
from toolkit.engine.access import grants
from toolkit.engine.access.account_status import is_disabled
from toolkit.engine.access.api_keys import (
    ALL_SCOPES,
    SCOPE_ORDER,
    find_key,
    generate_key,
    has_ended,
    hash_key,
    make_key,
)
from toolkit.engine.concurrency.token_buckets import TokenBuckets, UnitPace
from toolkit.engine.limits.deployment import Deployment
from toolkit.engine.limits.request_rates import RequestRates
from toolkit.engine.money.allowance import make_key_limits
from toolkit.engine.request_context import RequestContext
from toolkit.settings import Settings
from toolkit.store import (
    Change,
    ConfigurationCache,
    Conflict,
    InsertRow,
    PatchDocument,
    Row,
    Store,
)

KEY_USE_INTERVAL_S = 60.0  # the shortest time, in seconds, between two records of a key's use
# No account has this id: it stands for the caller in logs and limits.
NO_ACCOUNT_ID = f"acc_{'0' * 26}"
LOCAL_EMAIL = "notebook@localhost.localdomain"
ADDRESS_TAKEN = "This address has an account; use its key or another address."


class Accounts:
    """The operations of `/v1/account`: sign-up, authentication of keys, and daily limits."""

    def __init__(
        self, store: Store, settings: Settings, deployment: Deployment | None = None
    ) -> None:
        self._store = store
        self._settings = settings
        deployment = deployment or Deployment(store.limits)
        per_hour = settings.signups_per_hour
        self._sign_ups = RequestRates("sign_ups", per_hour / 3600, per_hour, deployment)
        # Limits how often a key's use is recorded.
        self._key_uses = TokenBuckets(UnitPace(1 / KEY_USE_INTERVAL_S, 1))
        self._requests = RequestRates(
            "requests", settings.rate_limit_per_s, settings.rate_limit_burst, deployment
        )
        # Cached by the whole digest, which only the key's owner can know.
        self._keys = ConfigurationCache(store, self._load_key)
        # The keys of notebooks in this process: never stored, gone when it ends.
        self._local_keys: dict[str, RequestContext] = {}

    async def sign_up(self, request: AccountCreate, address: str) -> AccountCreated:
        """Open an account for a caller at a network address.

        Raises:
            RequestError: `FORBIDDEN` if sign-up is closed, `CONFLICT`.
            ServiceError: `RATE_LIMITED` if that address has opened too many accounts.
        """
        if self._settings.closed_signup:
            raise RequestError(
                ErrorCode.FORBIDDEN, "Sign-up is closed here: ask the operator for an account."
            )
        wait_s = await self._sign_ups.acquire_delay_s(_find_network(address))
        if wait_s:
            raise ServiceError(
                ErrorCode.RATE_LIMITED,
                "This address has opened too many accounts: try again after the seconds in"
                " Retry-After.",
                retry_after=wait_s,
            )
        if request.email.casefold() == LOCAL_EMAIL:
            # Otherwise the caller would own the account that notebooks here use.
            raise RequestError(ErrorCode.CONFLICT, ADDRESS_TAKEN)
        return await self.create(request)

    async def create(
        self,
        request: AccountCreate,
        *,
        allow_env: Collection[str] | None = None,
        max_cost_usd_per_day: float | None = None,
        operator: bool = False,
    ) -> AccountCreated:
        """Open an account; the key in the answer is shown only once.

        Args:
            request: request with the email address of the new account.
            allow_env: variables that its pointers may name in addition to the vendors' conventional
                variables, if the operator makes the account; None for a sign-up.
            max_cost_usd_per_day: maximum cost of all its work in a day, in US dollars.
            operator: whether the account is an operator's, which may share its connections.

        Raises:
            RequestError: `CONFLICT` if the email address already has an account.
        """
        account, changes = _make_account(
            request.email, allow_env, max_cost_usd_per_day, operator=operator
        )
        key, insert, _ = make_key(account.id)
        try:
            await self._store.write([*changes, insert])
        except Conflict:
            raise RequestError(ErrorCode.CONFLICT, ADDRESS_TAKEN) from None
        return AccountCreated(**dict(account), api_key=key)

    async def authenticate(self, key: str) -> RequestContext:
        """Return the context of a key, and count the request against the key's rate limit.

        A notebook in this process has no rate limit.

        Raises:
            RequestError: `UNAUTHENTICATED` for a malformed, unknown, revoked or expired key, all
                alike, and for a key of a disabled account.
            ServiceError: `RATE_LIMITED`.
        """
        digest = hash_key(key)
        if digest in self._local_keys:
            return self._local_keys[digest]
        record, context = await self._keys.find(digest)
        if has_ended(record):  # since it was loaded
            raise RequestError(ErrorCode.UNAUTHENTICATED)
        wait_s = await self._requests.acquire_delay_s(record.id)
        if wait_s:
            raise self._make_rate_error(wait_s)
        self._note_use(record)
        return context

    def _make_rate_error(self, wait_s: float) -> ServiceError:
        """Make the error, with the rate limit, for a key that sends requests too often."""
        per_s, burst = self._settings.rate_limit_per_s, self._settings.rate_limit_burst
        error = ServiceError(
            ErrorCode.RATE_LIMITED,
            f"This key may send {per_s:g} requests a second: try again after the seconds in"
            " Retry-After.",
            retry_after=wait_s,
        )
        window_s = max(1, round(burst / per_s), math.ceil(1 / per_s))
        error.rate_limit = max(1, int(per_s * window_s + 1e-9)), window_s
        return error

    async def _load_key(self, digest: str) -> tuple[ApiKey, RequestContext]:
        """Load the record of a key, and the context of requests by it."""
        account_id, record = await find_key(self._store, digest)
        has_allowance = bool(make_key_limits(record))
        allowance_id = record.allowance_id if has_allowance else None
        scopes = frozenset(record.scopes)
        return record, RequestContext(account_id, record.id, scopes, allowance_id)

    def _note_use(self, key: ApiKey) -> None:
        """Record a use of a key, at most once a minute, without waiting for the write."""
        at = now()
        last_use = key.last_used_at
        # A clock that was set back must not suppress the record.
        if last_use is not None and 0 <= (at - last_use).total_seconds() < KEY_USE_INTERVAL_S:
            return
        if not self._key_uses.acquire_delay_s(key.id):
            patch = PatchDocument("api_keys", key.id, {"last_used_at": format_rfc3339(at)})
            self._store.write([patch], eager=False)

    async def is_valid(self, context: RequestContext) -> bool:
        """Check in the store that a request's key is still valid and its account is not disabled.

        Local keys, which are never stored, are always valid.
        """
        if any(context.key_id == local.key_id for local in self._local_keys.values()):
            return True
        row = await self._store.get_row("api_keys", context.key_id or "", "doc")
        if row is None or has_ended(ApiKey.model_validate_json(str(row["doc"]))):
            return False
        return not await is_disabled(self._store, context.account_id)

    async def open_local_account(self) -> tuple[Account, str]:
        """Open or find the account of the embedded engine's user, and make a key for it."""
        account, changes = _make_account(LOCAL_EMAIL, frozenset(), operator=True)
        try:
            await self._store.write(changes)
        except Conflict:
            rows = await self._store.find_rows("accounts", email=LOCAL_EMAIL)
            account = Account.model_validate_json(str(rows[0]["doc"]))
        return account, self.make_local_key(account.id, ALL_SCOPES)

    def make_local_key(self, account_id: str, scopes: Sequence[Scope]) -> str:
        """Make a key that exists only in this process's memory, and so ends with the process."""
        return self._add_local_key(
            RequestContext(account_id, new_id(Prefix.KEY), frozenset(scopes))
        )

    def make_read_only_key(self) -> str:
        """Make a key for read-only mode, with the scopes `read` and `admin` in all accounts.

        It exists only in this process's memory.
        """
        scopes = frozenset[Scope](("read", "admin"))
        return self._add_local_key(
            RequestContext(NO_ACCOUNT_ID, new_id(Prefix.KEY), scopes, reads_all_accounts=True)
        )

    def _add_local_key(self, context: RequestContext) -> str:
        key = generate_key()
        self._local_keys[hash_key(key)] = context
        return key

    async def set_daily_limit(self, identifier: str, max_cost_usd_per_day: float | None) -> Account:
        """Set the maximum cost of all work of an account in a day; None removes the limit.

        Args:
            identifier: address or id of the account.
            max_cost_usd_per_day: US dollars, from midnight to midnight, UTC.

        Raises:
            RequestError: `NOT_FOUND`, `INVALID_REQUEST` for an invalid amount.
        """
        _check_amount(max_cost_usd_per_day)
        account = Account.model_validate_json(
            str((await find_account(self._store, identifier))["doc"])
        )
        account.max_cost_usd_per_day = max_cost_usd_per_day
        values = {"max_cost_usd_per_day": max_cost_usd_per_day}
        await self._store.write([PatchDocument("accounts", account.id, values)])
        return account

    async def get_caller(self, context: RequestContext) -> CallerAccount:
        """Return the caller's account and the record of the key that was used.

        Raises:
            RequestError: `NOT_FOUND` in read-only mode, which has no account of its own.
        """
        if context.reads_all_accounts:
            raise RequestError(
                ErrorCode.NOT_FOUND,
                "Read-only mode lists the records of all accounts. Run `toolkit account list` to"
                " see them.",
            )
        row = await self._store.get_row("accounts", context.account_id)
        if row is None:
            raise build_not_found("account", context.account_id)
        key_id = context.key_id or ""
        key_row = await self._store.get_row("api_keys", key_id)
        if key_row is None:  # the key of a notebook in this process
            scopes = [scope for scope in SCOPE_ORDER if scope in context.scopes]
            key = CallerKey(id=key_id, scopes=scopes)
        else:
            key = CallerKey.model_validate_json(str(key_row["doc"]))
        account = Account.model_validate_json(str(row["doc"]))
        return CallerAccount(**dict(account), key=key)


async def find_account(store: Store, identifier: str) -> Row:
    """Find the row of an account, by its id or its address.

    Raises:
        RequestError: `NOT_FOUND`.
    """
    rows = [await store.get_row("accounts", identifier)]
    rows += await store.find_rows("accounts", email=identifier.casefold())
    for row in rows:
        if row is not None:
            return row
    raise RequestError(
        ErrorCode.NOT_FOUND,
        f"There is no account `{truncate_text(identifier, 100)}` here: see `toolkit account list`.",
    )


def _check_amount(usd: float | None) -> None:
    if usd is not None and not 0 <= usd < math.inf:
        raise RequestError(
            ErrorCode.INVALID_REQUEST, "A daily limit is an amount in US dollars, at least 0."
        )


def _make_account(
    email: str,
    allow_env: Collection[str] | None,
    max_cost_usd_per_day: float | None = None,
    *,
    operator: bool = False,
) -> tuple[Account, Sequence[Change]]:
    _check_amount(max_cost_usd_per_day)
    account = Account(
        id=new_id(Prefix.ACCOUNT),
        email=email,
        created_at=now(),
        max_cost_usd_per_day=max_cost_usd_per_day,
    )
    row: dict[str, object] = {
        "id": account.id,
        "email": email.casefold(),
        "created_at": format_rfc3339(account.created_at),
        "doc": account.model_dump_json(),
        "spec": None if allow_env is None else grants.format_allow_env(allow_env),
        "operator": operator,
    }
    return account, [InsertRow("accounts", row)]


def _find_network(address: str) -> str:
    """Return the network that a caller's address counts for: an IPv4 address or an IPv6 /64.

    Text that is not an address is returned unchanged.

    >>> _find_network("2001:db8::1") == _find_network("2001:db8::2")
    True
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if ip.version == 6:
        return str(ipaddress.ip_network((ip.packed[:8] + bytes(8), 64)))
    return str(ip)
