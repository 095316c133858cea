# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.usage`: usage summaries."""

from toolkit.client._area_calls import UsageCalls
from toolkit.client._collections import UsageLines
from toolkit.client._replies import Reply


class Usage(UsageCalls[Reply[UsageLines]]):
    """`client.usage`."""
