# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.usage`: usage summaries."""

from toolkit.client._collections import Collection
from toolkit.client._record_view import UsageView
from toolkit.client._replies import Reply
from toolkit.client._resource_calls import UsageCalls


class Usage(UsageCalls[Reply[Collection[UsageView]]]):
    """`client.usage`: totals of jobs, calls and costs, by group."""
