# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.api_keys`: the keys of the account."""

from collections.abc import Sequence

from toolkit.client._definition_views import ApiKeyView
from toolkit.client._sync.handle import Deletable
from toolkit.client._sync.resource import DeletableResource
from toolkit.client._wire.messages import drop_none
from toolkit.contract import account
from toolkit.contract.choices import Scope


class ApiKey(ApiKeyView, Deletable[account.ApiKey]):
    """The record of an API key: never the key itself. Deleting it revokes the key at once."""

    noun, resource, record_type = "Key", "account/keys", account.ApiKey

    def rotate(self, *, overlap_s: int | None = None) -> account.KeyCreated:
        """Replace it by a new one, which is shown this once.

        Args:
            overlap_s: how long it is still good, in seconds; a day by default, 0 ends it at once.

        Raises:
            RequestError: `CONFLICT` for one that has ended, or was rotated before.
        """
        return self._http.request_record(
            account.KeyCreated,
            "POST",
            f"{self.path}/rotate",
            json=drop_none(overlap_s=overlap_s),
        )


class ApiKeys(DeletableResource[ApiKey]):
    """`client.api_keys`; deleting one revokes it, and its record stays."""

    handle = ApiKey

    def create(
        self,
        *,
        name: str | None = None,
        scopes: Sequence[Scope] | None = None,
        max_cost_usd_per_day: float | None = None,
        max_cost_usd: float | None = None,
        expires_in_s: int | None = None,
    ) -> account.KeyCreated:
        """Create another key; it is shown this once.

        Args:
            name: what it is for.
            scopes: `read`, `write`, `admin`; the first two by default. `work` alone is for code
                that asks for work and reads its results, and for nothing else.
            max_cost_usd_per_day: what all work asked for with it may cost in a day, by UTC.
            max_cost_usd: maximum total cost of all work asked for with it, in US dollars.
            expires_in_s: lifetime of the key, in seconds. None lets it live until it is revoked.
        """
        body = drop_none(
            name=name,
            scopes=None if scopes is None else list(scopes),
            max_cost_usd_per_day=max_cost_usd_per_day,
            max_cost_usd=max_cost_usd,
            expires_in_s=expires_in_s,
        )
        return self._http.request_record(
            account.KeyCreated, "POST", f"/{self.handle.resource}", json=body
        )

    def rotate(self, id: str, *, overlap_s: int | None = None) -> account.KeyCreated:
        """Replace a key by a new one, which is shown this once.

        Args:
            id: of the old one.
            overlap_s: how long that is still good, in seconds; a day by default, 0 ends it at once.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` for one that has ended, or was rotated before.
        """
        return self._http.request_record(
            account.KeyCreated,
            "POST",
            f"/{self.handle.resource}/{id}/rotate",
            json=drop_none(overlap_s=overlap_s),
        )
