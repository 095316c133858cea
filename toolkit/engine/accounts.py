"""Accounts: signed up by anybody or made by the operator; and whose key a request carries."""

import ipaddress
from collections.abc import Collection, Sequence

from toolkit.contract.account import Account, AccountCreate, AccountCreated
from toolkit.contract.base import now, rfc3339
from toolkit.contract.errors import ErrorCode, RequestError, ServiceError, not_found
from toolkit.contract.ids import Prefix, new_id
from toolkit.engine import grants
from toolkit.engine.keys import ALL_SCOPES, Principal, digest_of, find_key, fresh_key, new_key
from toolkit.engine.rates import Rates
from toolkit.settings import Settings
from toolkit.store import Change, Conflict, Insert, Store

LOCAL_EMAIL = "notebook@localhost.localdomain"
TAKEN = "This address has an account; use its key or another address."


class Accounts:
    """`/v1/account`."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._sign_ups = Rates(settings.signups_per_hour / 3600, settings.signups_per_hour)
        self._requests = Rates(settings.rate_limit_per_s, settings.rate_limit_burst)
        # The keys of notebooks on this very process: never written down, gone with it.
        self._session: dict[str, Principal] = {}

    async def sign_up(self, request: AccountCreate, address: str) -> AccountCreated:
        """Open an account for whoever asks from an address.

        Raises:
            RequestError: `FORBIDDEN` where sign-up is closed, `CONFLICT`.
            ServiceError: `RATE_LIMITED` when that address has opened too many.
        """
        if self._settings.closed_signup:
            raise RequestError(
                ErrorCode.FORBIDDEN, "Sign-up is closed here: ask the operator for an account."
            )
        wait_s = self._sign_ups.wait_s(_neighbourhood(address))
        if wait_s:
            raise ServiceError(
                ErrorCode.RATE_LIMITED,
                "This address has opened too many accounts; wait as long as Retry-After says.",
                retry_after=wait_s,
            )
        if request.email.casefold() == LOCAL_EMAIL:
            # Whoever had it would have the account that a notebook here takes for its own.
            raise RequestError(ErrorCode.CONFLICT, TAKEN)
        return await self.create(request)

    async def create(
        self, request: AccountCreate, *, allow_env: Collection[str] | None = None
    ) -> AccountCreated:
        """Open an account; the key in the answer is shown this once.

        Args:
            request: whose.
            allow_env: what its pointers may name beside vendors' conventional variables, for one
                that the operator makes; none for one that was signed up.

        Raises:
            RequestError: `CONFLICT` when the address has an account.
        """
        account, changes = _new_account(request.email, allow_env)
        key, inserted, _ = new_key(account.id)
        try:
            await self._store.write([*changes, inserted])
        except Conflict:
            raise RequestError(ErrorCode.CONFLICT, TAKEN) from None
        return AccountCreated(**dict(account), api_key=key)

    async def authenticate(self, key: str) -> Principal:
        """Tell whose key this is, and count the request against what the key may ask.

        A notebook on this very process may ask as often as it likes.

        Raises:
            RequestError: `UNAUTHENTICATED` for a malformed, unknown, revoked or expired one, all
                alike.
            ServiceError: `RATE_LIMITED`.
        """
        digest = digest_of(key)
        if digest in self._session:
            return self._session[digest]
        account_id, record = await find_key(self._store, digest)
        wait_s = self._requests.wait_s(record.id)
        if wait_s:
            raise ServiceError(
                ErrorCode.RATE_LIMITED,
                f"This key may ask {self._settings.rate_limit_per_s:g} times a second; wait as long"
                " as Retry-After says.",
                retry_after=wait_s,
            )
        purse = None if record.max_cost_usd_per_day is None else record.purse
        return Principal(account_id, record.id, frozenset(record.scopes), purse)

    async def local(self) -> tuple[Account, str]:
        """The account of whoever runs the engine in their own process, and a key for it."""
        account, changes = _new_account(LOCAL_EMAIL, frozenset())
        try:
            await self._store.write(changes)
        except Conflict:
            rows = await self._store.find("accounts", email=LOCAL_EMAIL)
            account = Account.model_validate_json(str(rows[0]["doc"]))
        key = fresh_key()
        principal = Principal(account.id, new_id(Prefix.KEY), frozenset(ALL_SCOPES))
        self._session[digest_of(key)] = principal
        return account, key

    async def me(self, account_id: str) -> Account:
        """The caller's account."""
        row = await self._store.get("accounts", account_id)
        if row is None:
            raise not_found("account", account_id)
        return Account.model_validate_json(str(row["doc"]))


def _new_account(email: str, allow_env: Collection[str] | None) -> tuple[Account, Sequence[Change]]:
    account = Account(id=new_id(Prefix.ACCOUNT), email=email, created_at=now())
    row: dict[str, object] = {
        "id": account.id,
        "email": email.casefold(),
        "created_at": rfc3339(account.created_at),
        "doc": account.model_dump_json(),
        "spec": None if allow_env is None else grants.spelled(allow_env),
    }
    return account, [Insert("accounts", row)]


def _neighbourhood(address: str) -> str:
    """What one caller can have many addresses in: an IPv4 address, or an IPv6 network of 64 bits.

    >>> _neighbourhood("2001:db8::1") == _neighbourhood("2001:db8::2")
    True
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 6:
        return str(ipaddress.ip_network((found.packed[:8] + bytes(8), 64)))
    return str(found)
