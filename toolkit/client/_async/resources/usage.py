"""`client.usage`: usage summaries."""

from toolkit.client._collections import Collection
from toolkit.client._record_view import UsageView
from toolkit.client._replies import AsyncReply
from toolkit.client._resource_calls import UsageCalls


class AsyncUsage(UsageCalls[AsyncReply[Collection[UsageView]]]):
    """`client.usage`: totals of jobs, calls and costs, by group."""
