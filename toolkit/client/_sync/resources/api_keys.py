# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.api_keys`: the keys of the account."""

from collections.abc import Sequence
from datetime import datetime

from toolkit.client._members import Member
from toolkit.client._sync.handle import Deletable
from toolkit.client._sync.resource import DeletableResource
from toolkit.client._wire.messages import drop_none
from toolkit.contract import account
from toolkit.contract.choices import Scope


class ApiKey(Deletable[account.ApiKey]):
    """The record of an API key: never the key itself. Deleting it revokes the key at once."""

    noun, resource, record_type = "Key", "account/keys", account.ApiKey

    name = Member[str | None]("The use that it was made for.")
    prefix = Member[str]("The first characters of the key.")
    last4 = Member[str]("The last four characters of the key.")
    rotated_from = Member[str | None]("The key in whose place it came.")
    rotated_to = Member[str | None]("The key that came in its place.")
    allowance_of = Member[str | None](
        "The first key of those that were rotated: all spend from its day's allowance."
    )
    last_used_at = Member[datetime | None]("The time at which it was let in last, within a minute.")
    left_usd_today = Member[float | None](
        "The US dollars that are left of its day's allowance; none if it has no allowance."
    )
    max_cost_usd = Member[float | None](
        "The most US dollars that all work asked for with it may cost."
    )
    left_usd = Member[float | None](
        "The US dollars that are left of `max_cost_usd`; none without that."
    )
    scopes = Member[list[Scope]]("The scopes that it has: `read`, `write`, `admin`.")
    max_cost_usd_per_day = Member[float | None](
        "US dollars that all work asked for with it may cost in a day; none sets no limit."
    )
    created_at = Member[datetime]("The time at which it was made.")
    expires_at = Member[datetime | None]("The time at which it ends, for one that was rotated.")
    revoked_at = Member[datetime | None]("The time at which it was revoked; none while it was not.")

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
