"""`client.providers`: the vendor catalogue."""

from toolkit.client._area_calls import ProviderCalls
from toolkit.client._collections import Collection
from toolkit.client._record_view import RecordView
from toolkit.client._replies import AsyncReply
from toolkit.contract.health import Provider


class AsyncProviders(ProviderCalls[AsyncReply[Collection[RecordView[Provider]]]]):
    """`client.providers`."""
