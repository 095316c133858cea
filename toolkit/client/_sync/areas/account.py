# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.account`: the account and its keys."""

from collections.abc import Sequence

from toolkit.client import _wire
from toolkit.client._collections import Collection
from toolkit.client._shown import Shown
from toolkit.client._sync.http import Http
from toolkit.contract.account import AccountCreated, ApiKey, CallerAccount, KeyCreated


class Accounts:
    """`client.account`."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def create(self, email: str) -> AccountCreated:
        """Open an account; the key is shown this once."""
        return self._http.data(AccountCreated, "POST", "/account", json={"email": email})

    def get(self) -> CallerAccount:
        """Read the caller's account, and what is known of the key that is used."""
        return self._http.data(CallerAccount, "GET", "/account")

    def keys(self, limit: int = 50, cursor: str | None = None) -> Collection[Shown[ApiKey]]:
        """Read a page of the account's keys, newest first: never the keys themselves."""
        params = _wire.page(limit, cursor)
        keys, following = self._http.page(ApiKey, "/account/keys", params)
        return Collection([Shown(key, "Key") for key in keys], "keys", following)

    def key(self, id: str) -> ApiKey:  # noqa: A002
        """Read what is known of a key: never the key itself."""
        return self._http.data(ApiKey, "GET", f"/account/keys/{id}")

    def create_key(
        self,
        *,
        name: str | None = None,
        scopes: Sequence[str] | None = None,
        max_cost_usd_per_day: float | None = None,
    ) -> KeyCreated:
        """Create another key; it is shown this once.

        Args:
            name: what it is for.
            scopes: `read`, `write`, `admin`; the first two by default.
            max_cost_usd_per_day: what all work asked for with it may cost in a day, by UTC.
        """
        body = _wire.without_none(
            name=name,
            scopes=None if scopes is None else list(scopes),
            max_cost_usd_per_day=max_cost_usd_per_day,
        )
        return self._http.data(KeyCreated, "POST", "/account/keys", json=body)

    def rotate_key(self, id: str, *, overlap_s: int | None = None) -> KeyCreated:  # noqa: A002
        """Replace a key by a new one, which is shown this once.

        Args:
            id: of the old one.
            overlap_s: how long that is still good, in seconds; a day by default, 0 ends it at once.
        """
        body = _wire.without_none(overlap_s=overlap_s)
        return self._http.data(KeyCreated, "POST", f"/account/keys/{id}/rotate", json=body)

    def revoke(self, id: str) -> ApiKey:  # noqa: A002
        """Make a key invalid at once."""
        return self._http.data(ApiKey, "DELETE", f"/account/keys/{id}")
