"""`client.billing`: the bills of vendors."""

from toolkit.client._record_view import BillingView
from toolkit.client._replies import AsyncReply
from toolkit.client._resource_calls import BillingCalls


class AsyncBillings(BillingCalls[AsyncReply[BillingView]]):
    """`client.billing`: the bills of vendors, by month."""
