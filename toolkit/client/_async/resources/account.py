"""`client.account`: the account, and the key that is used."""

from toolkit.client._async.http import AsyncHttpClient
from toolkit.contract import account


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
