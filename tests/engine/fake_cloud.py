"""A vendor cloud that outlives the engines that use it, as the real ones do."""

import asyncio

from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from toolkit.assembly import SandboxTransport, apply_sandbox
from toolkit.engine import Engine, Registry
from toolkit.sandbox import SANDBOX_KEYS, VENDOR_PATHS, create_app
from toolkit.sandbox.transport import AppTransport
from toolkit.sandbox.wires.runpod import RunPodAccount
from toolkit.secrets import MappingResolver
from toolkit.settings import Settings


class HeldCloud:
    """The sandbox's vendors, which answer no request with a word in its path before they may."""

    def __init__(self, word: str) -> None:
        self._vendors = create_app()
        self._word = word
        self.asked: list[str] = []
        self.may_answer = asyncio.Event()
        self.is_asked = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, but one that is held not before its time."""
        self.asked.append(scope["path"])
        if self._word in scope["path"]:
            self.is_asked.set()
            await self.may_answer.wait()
        await self._vendors(scope, receive, send)


async def open_engine_on(cloud: ASGIApp, settings: Settings) -> Engine:
    """An engine on a cloud that others are on, too."""
    registry = Registry.load()
    return await Engine.open(
        apply_sandbox(settings, registry, VENDOR_PATHS),
        transport=SandboxTransport(AppTransport(cloud)),
        resolver=MappingResolver(SANDBOX_KEYS),
        registry=registry,
    )


def list_cloud_names(cloud: Starlette) -> dict[str, list[str]]:
    """List the names at the GPU cloud, of each kind that has any."""
    items = cloud.state.sandbox.get_records(RunPodAccount).items
    return {kind: [str(one["name"]) for one in of.values()] for kind, of in items.items() if of}
