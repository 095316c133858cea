"""`client.providers`: the vendor catalogue."""

from toolkit.client._async.http import AsyncHttp
from toolkit.client._collections import Collection
from toolkit.client._shown import Shown
from toolkit.contract.health import Provider


class AsyncProviders:
    """`client.providers`: the vendor catalogue."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def list(self) -> Collection[Shown[Provider]]:
        """List every vendor, and whether it is connected."""
        found, _ = await self._http.page(Provider, "/providers")
        return Collection([Shown(provider, "Provider") for provider in found], "providers")
