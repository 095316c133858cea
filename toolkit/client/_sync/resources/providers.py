# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.providers`: the vendor catalogue."""

from toolkit.client._collections import Collection
from toolkit.client._record_view import RecordView
from toolkit.client._sync.http import HttpClient
from toolkit.contract.health import Provider


class Providers:
    """`client.providers`: the vendor catalogue."""

    def __init__(self, http: HttpClient) -> None:
        self._http = http

    def list(self) -> Collection[RecordView[Provider]]:
        """List every vendor, and whether it is connected."""
        page = self._http.request_page(Provider, "/providers")
        return Collection(
            [RecordView(provider, "Provider") for provider in page.records], "providers"
        )
