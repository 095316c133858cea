"""`client.billing`: the bills of vendors."""

from toolkit.client._async.http import AsyncHttpClient
from toolkit.client._record_view import BillingView
from toolkit.client._wire.messages import drop_none
from toolkit.contract.billing import Billing


class AsyncBillings:
    """`client.billing`."""

    def __init__(self, http: AsyncHttpClient) -> None:
        self._http = http

    async def get(
        self, month: str | None = None, *, by_key: bool = False, by_account: bool = False
    ) -> BillingView:
        """Read what each vendor bills for a month, as this service saw it.

        Args:
            month: such as `2026-11`; the present one by default.
            by_key: a line for each key that asked for work.
            by_account: a line for each account whose work used the caller's own connections.
        """
        by = "key" if by_key else "account" if by_account else None
        params = drop_none(month=month, group_by=by)
        return await self._http.request_view(BillingView, Billing, "GET", "/billing", params=params)
