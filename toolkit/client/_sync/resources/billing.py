# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.billing`: the bills of vendors."""

from toolkit.client._record_view import BillingView
from toolkit.client._replies import Reply
from toolkit.client._resource_calls import BillingCalls


class Billings(BillingCalls[Reply[BillingView]]):
    """`client.billing`: the bills of vendors, by month."""
