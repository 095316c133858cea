# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.providers`: the vendor catalogue."""

from toolkit.client._collections import Collection
from toolkit.client._record_view import RecordView
from toolkit.client._replies import Reply
from toolkit.client._resource_calls import ProviderCalls
from toolkit.contract.health import Provider


class Providers(ProviderCalls[Reply[Collection[RecordView[Provider]]]]):
    """`client.providers`: the vendors that the service knows."""
