"""`client.usage`: usage summaries."""

from toolkit.client._area_calls import UsageCalls
from toolkit.client._collections import UsageLines
from toolkit.client._replies import AsyncReply


class AsyncUsage(UsageCalls[AsyncReply[UsageLines]]):
    """`client.usage`."""
