"""`client.providers`: the vendor catalogue."""

from toolkit.client._collections import Collection
from toolkit.client._record_view import RecordView
from toolkit.client._replies import AsyncReply
from toolkit.client._resource_calls import ProviderCalls
from toolkit.contract.health import Provider


class AsyncProviders(ProviderCalls[AsyncReply[Collection[RecordView[Provider]]]]):
    """`client.providers`: the vendors that the service knows."""
