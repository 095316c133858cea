"""A simulated cloud that outlives the engines on it, as a vendor's cloud does."""

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

from toolkit.assembly import SandboxTransport, apply_sandbox
from toolkit.engine import Engine, Registry
from toolkit.sandbox import SANDBOX_KEYS, VENDOR_PATHS, create_app
from toolkit.sandbox.transport import AppTransport
from toolkit.secrets import MappingResolver
from toolkit.settings import Settings


class HeldCloud:
    """The sandbox's vendors, which hold requests with a word in their path until they may answer.

    Attributes:
        paths: the paths of all requests.
        may_answer: is set by a test to have held requests answered.
        is_held: is set once a request is held.
    """

    def __init__(self, word: str) -> None:
        self._vendors = create_app()
        self._word = word
        self.paths: list[str] = []
        self.may_answer = asyncio.Event()
        self.is_held = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the vendors, at once or when held requests may be answered."""
        self.paths.append(scope["path"])
        if self._word in scope["path"]:
            self.is_held.set()
            await self.may_answer.wait()
        await self._vendors(scope, receive, send)


async def open_engine_on(cloud: ASGIApp, settings: Settings) -> Engine:
    """Open an engine on a cloud that other engines use as well."""
    registry = Registry.load()
    return await Engine.open(
        apply_sandbox(settings, registry, VENDOR_PATHS),
        transport=SandboxTransport(AppTransport(cloud)),
        resolver=MappingResolver(SANDBOX_KEYS),
        registry=registry,
    )
