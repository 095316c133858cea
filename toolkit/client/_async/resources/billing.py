"""`client.billing`: the bills of vendors."""

from toolkit.client._area_calls import BillingCalls
from toolkit.client._record_view import BillingView
from toolkit.client._replies import AsyncReply


class AsyncBillings(BillingCalls[AsyncReply[BillingView]]):
    """`client.billing`."""
