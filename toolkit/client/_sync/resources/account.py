# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.account`: the account, and the key that is used."""

from toolkit.client._sync.http import HttpClient
from toolkit.contract import account


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
