# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.account`: the account, and the key that is used."""

from collections.abc import Sequence

from typing_extensions import deprecated

from toolkit.client._sync.http import HttpClient
from toolkit.client._sync.paging import PagedCollection
from toolkit.client._sync.resources.api_keys import ApiKey, ApiKeys
from toolkit.contract import account
from toolkit.contract.choices import Scope


class Accounts:
    """`client.account`."""

    def __init__(self, http: HttpClient) -> None:
        self._http = http

    def create(self, email: str) -> account.AccountCreated:
        """Open an account; the key is shown this once."""
        return self._http.request_record(
            account.AccountCreated, "POST", "/account", json={"email": email}
        )

    def get(self) -> account.CallerAccount:
        """Read the caller's account, and what is known of the key that is used."""
        return self._http.request_record(account.CallerAccount, "GET", "/account")

    @deprecated("`account.keys` is now `client.api_keys.list`")
    def keys(self, limit: int | None = None) -> PagedCollection[ApiKey]:
        """List the account's keys, newest first: never the keys themselves."""
        return ApiKeys(self._http).list(limit)

    @deprecated("`account.key` is now `client.api_keys.get`")
    def key(self, id: str) -> account.ApiKey:
        """Read what is known of a key: never the key itself."""
        return (ApiKeys(self._http).get(id)).record

    @deprecated("`account.create_key` is now `client.api_keys.create`")
    def create_key(
        self,
        *,
        name: str | None = None,
        scopes: Sequence[Scope] | None = None,
        max_cost_usd_per_day: float | None = None,
    ) -> account.KeyCreated:
        """Create another key; it is shown this once."""
        return ApiKeys(self._http).create(
            name=name, scopes=scopes, max_cost_usd_per_day=max_cost_usd_per_day
        )

    @deprecated("`account.rotate_key` is now `client.api_keys.rotate`")
    def rotate_key(self, id: str, *, overlap_s: int | None = None) -> account.KeyCreated:
        """Replace a key by a new one, which is shown this once."""
        return ApiKeys(self._http).rotate(id, overlap_s=overlap_s)

    @deprecated("`account.revoke` is now `client.api_keys.delete`")
    def revoke(self, id: str) -> account.ApiKey:
        """Make a key invalid at once."""
        return (ApiKeys(self._http).delete(id)).record
