"""`client.account`: the account, and the key that is used."""

from collections.abc import Sequence

from typing_extensions import deprecated

from toolkit.client._async.http import AsyncHttpClient
from toolkit.client._async.paging import AsyncPagedCollection
from toolkit.client._async.resources.api_keys import AsyncApiKey, AsyncApiKeys
from toolkit.contract import account
from toolkit.contract.choices import Scope


class AsyncAccounts:
    """`client.account`."""

    def __init__(self, http: AsyncHttpClient) -> None:
        self._http = http

    async def create(self, email: str) -> account.AccountCreated:
        """Open an account; the key is shown this once."""
        return await self._http.request_record(
            account.AccountCreated, "POST", "/account", json={"email": email}
        )

    async def get(self) -> account.CallerAccount:
        """Read the caller's account, and what is known of the key that is used."""
        return await self._http.request_record(account.CallerAccount, "GET", "/account")

    @deprecated("`account.keys` is now `client.api_keys.list`")
    def keys(self, limit: int | None = None) -> AsyncPagedCollection[AsyncApiKey]:
        """List the account's keys, newest first: never the keys themselves."""
        return AsyncApiKeys(self._http).list(limit)

    @deprecated("`account.key` is now `client.api_keys.get`")
    async def key(self, id: str) -> account.ApiKey:
        """Read what is known of a key: never the key itself."""
        return (await AsyncApiKeys(self._http).get(id)).record

    @deprecated("`account.create_key` is now `client.api_keys.create`")
    async def create_key(
        self,
        *,
        name: str | None = None,
        scopes: Sequence[Scope] | None = None,
        max_cost_usd_per_day: float | None = None,
    ) -> account.KeyCreated:
        """Create another key; it is shown this once."""
        return await AsyncApiKeys(self._http).create(
            name=name, scopes=scopes, max_cost_usd_per_day=max_cost_usd_per_day
        )

    @deprecated("`account.rotate_key` is now `client.api_keys.rotate`")
    async def rotate_key(self, id: str, *, overlap_s: int | None = None) -> account.KeyCreated:
        """Replace a key by a new one, which is shown this once."""
        return await AsyncApiKeys(self._http).rotate(id, overlap_s=overlap_s)

    @deprecated("`account.revoke` is now `client.api_keys.delete`")
    async def revoke(self, id: str) -> account.ApiKey:
        """Make a key invalid at once."""
        return (await AsyncApiKeys(self._http).delete(id)).record
