"""A vendor cloud that outlives the engines that use it, as the real ones do."""

from starlette.applications import Starlette
from starlette.types import ASGIApp

from toolkit.assembly import SandboxTransport, apply_sandbox
from toolkit.engine import Engine, Registry
from toolkit.sandbox import SANDBOX_KEYS, VENDOR_PATHS
from toolkit.sandbox.transport import AppTransport
from toolkit.sandbox.wires.runpod import RunPodAccount
from toolkit.secrets import MappingResolver
from toolkit.settings import Settings


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
