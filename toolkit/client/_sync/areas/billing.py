# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.billing`: what vendors bill."""

from toolkit.client import _wire
from toolkit.client._shown import BillingView
from toolkit.client._sync.http import Http
from toolkit.contract.billing import Billing


class Billings:
    """`client.billing`."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def get(self, month: str | None = None) -> BillingView:
        """What each vendor bills for a month, as this service saw it.

        Args:
            month: such as `2026-11`; the present one by default.
        """
        return BillingView(
            self._http.data(Billing, "GET", "/billing", params=_wire.without_none(month=month))
        )
