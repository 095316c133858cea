"""The sandbox behind a transport that fails or delays calls, and engines that use it."""

import asyncio
import time
from collections import Counter

import httpx

from toolkit import sandbox
from toolkit.assembly import point_vendors_at_sandbox
from toolkit.engine import Engine, Registry
from toolkit.secrets import MappingResolver
from toolkit.settings import SANDBOX_URL, Settings, VendorSettings

Fault = httpx.Response | Exception


class FaultTransport(httpx.AsyncBaseTransport):
    """The sandbox, with faults on the way to each vendor.

    Attributes:
        faults: by vendor, the outcomes of its next calls, in order.
        down: vendors that answer 503.
        delay_s: seconds that each call takes.
        calls: the vendor of each call so far.
        times: the monotonic time of each call so far.
        most: maximum number of calls at one time.
        most_at: the same by vendor.
    """

    def __init__(self) -> None:
        self._cloud = httpx.ASGITransport(sandbox.create_app())
        self.faults: dict[str, list[Fault]] = {}
        self.down: set[str] = set()
        self.delay_s = 0.0
        self.calls: list[str] = []
        self.times: list[float] = []
        self.inside: Counter[str] = Counter()
        self.most = 0
        self.most_at: Counter[str] = Counter()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Pass a request on to the sandbox, unless a fault comes first."""
        vendor = request.url.path.split("/")[1]
        self.calls.append(vendor)
        self.times.append(time.monotonic())
        self.inside[vendor] += 1
        self.most = max(self.most, self.inside.total())
        self.most_at[vendor] = max(self.most_at[vendor], self.inside[vendor])
        try:
            await asyncio.sleep(self.delay_s)
        finally:
            self.inside[vendor] -= 1
        if vendor in self.down:
            return httpx.Response(503, json={}, request=request)
        if self.faults.get(vendor):
            fault = self.faults[vendor].pop(0)
            if isinstance(fault, Exception):
                raise fault
            return httpx.Response(
                fault.status_code, headers=fault.headers, content=fault.content, request=request
            )
        return await self._cloud.handle_async_request(request)


async def open_faulty_engine(
    settings: Settings,
    transport: FaultTransport,
    keys: MappingResolver | None = None,
    **openai: object,
) -> Engine:
    """Open an engine on the transport; the settings of its vendor OpenAI may differ."""
    registry = Registry.load()
    vendors = point_vendors_at_sandbox(settings, registry, sandbox.VENDOR_PATHS)
    vendors["openai"] = VendorSettings.model_validate(vendors["openai"].model_dump() | openai)
    update = {"vendors": vendors, "encyclopedia_url": f"{SANDBOX_URL}/encyclopedia"}
    return await Engine.open(
        settings.model_copy(update=update),
        transport=transport,
        resolver=keys or MappingResolver(sandbox.SANDBOX_KEYS),
        registry=registry,
    )
