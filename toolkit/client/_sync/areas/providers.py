# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.providers`: the vendor catalogue."""

from toolkit.client._collections import Collection
from toolkit.client._shown import Shown
from toolkit.client._sync.http import Http
from toolkit.contract.health import Provider


class Providers:
    """`client.providers`: the vendor catalogue."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(self) -> Collection[Shown[Provider]]:
        """List every vendor, and whether it is connected."""
        found, _ = self._http.page(Provider, "/providers")
        return Collection([Shown(provider, "Provider") for provider in found], "providers")
