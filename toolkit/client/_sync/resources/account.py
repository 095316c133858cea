# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.account`: the account and its keys."""

from collections.abc import Sequence

from toolkit.client._collections import Collection
from toolkit.client._record_view import RecordView
from toolkit.client._sync.http import HttpClient
from toolkit.client._wire.messages import drop_none, make_page_query
from toolkit.contract.account import AccountCreated, ApiKey, CallerAccount, KeyCreated
from toolkit.contract.choices import Scope


class Accounts:
    """`client.account`."""

    def __init__(self, http: HttpClient) -> None:
        self._http = http

    def create(self, email: str) -> AccountCreated:
        """Open an account; the key is shown this once."""
        return self._http.request_record(AccountCreated, "POST", "/account", json={"email": email})

    def get(self) -> CallerAccount:
        """Read the caller's account, and what is known of the key that is used."""
        return self._http.request_record(CallerAccount, "GET", "/account")

    def keys(self, limit: int = 50, cursor: str | None = None) -> Collection[RecordView[ApiKey]]:
        """Read a page of the account's keys, newest first: never the keys themselves."""
        params = make_page_query(limit, cursor)
        keys, following = self._http.request_page(ApiKey, "/account/keys", params)
        return Collection([RecordView(key, "Key") for key in keys], "keys", following)

    def key(self, id: str) -> ApiKey:
        """Read what is known of a key: never the key itself."""
        return self._http.request_record(ApiKey, "GET", f"/account/keys/{id}")

    def create_key(
        self,
        *,
        name: str | None = None,
        scopes: Sequence[Scope] | None = None,
        max_cost_usd_per_day: float | None = None,
    ) -> KeyCreated:
        """Create another key; it is shown this once.

        Args:
            name: what it is for.
            scopes: `read`, `write`, `admin`; the first two by default.
            max_cost_usd_per_day: what all work asked for with it may cost in a day, by UTC.
        """
        body = drop_none(
            name=name,
            scopes=None if scopes is None else list(scopes),
            max_cost_usd_per_day=max_cost_usd_per_day,
        )
        return self._http.request_record(KeyCreated, "POST", "/account/keys", json=body)

    def rotate_key(self, id: str, *, overlap_s: int | None = None) -> KeyCreated:
        """Replace a key by a new one, which is shown this once.

        Args:
            id: of the old one.
            overlap_s: how long that is still good, in seconds; a day by default, 0 ends it at once.
        """
        body = drop_none(overlap_s=overlap_s)
        return self._http.request_record(
            KeyCreated, "POST", f"/account/keys/{id}/rotate", json=body
        )

    def revoke(self, id: str) -> ApiKey:
        """Make a key invalid at once."""
        return self._http.request_record(ApiKey, "DELETE", f"/account/keys/{id}")
