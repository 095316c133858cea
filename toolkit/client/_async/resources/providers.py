"""`client.providers`: the vendor catalogue."""

from toolkit.client._async.http import AsyncHttpClient
from toolkit.client._collections import Collection
from toolkit.client._record_view import RecordView
from toolkit.contract.health import Provider


class AsyncProviders:
    """`client.providers`: the vendor catalogue."""

    def __init__(self, http: AsyncHttpClient) -> None:
        self._http = http

    async def list(self) -> Collection[RecordView[Provider]]:
        """List every vendor, and whether it is connected."""
        page = await self._http.request_page(Provider, "/providers")
        return Collection(
            [RecordView(provider, "Provider") for provider in page.records], "providers"
        )
