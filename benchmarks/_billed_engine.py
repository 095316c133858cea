"""An engine whose vendors bill by real tokenizers."""

from pathlib import Path

from benchmarks._billing import TARIFFS, Billing
from benchmarks._cloud import connect_account
from toolkit.engine import Engine, Registry
from toolkit.engine.request_context import RequestContext
from toolkit.secrets import MappingResolver
from toolkit.settings import Settings

# Reservations that a budget covers, and the tokens of an answer.
BOUNDS_COVERED, CAP = 50, 300


async def open_engine(
    folder: Path, billing: Billing, *, connect: bool = True
) -> tuple[Engine, RequestContext]:
    """Open an engine with the billing vendors, and an account connected to all of them."""
    registry = Registry.load()
    secrets = {registry.vendors[vendor].variable: "a-key-of-nobody" for vendor in TARIFFS}
    engine = await Engine.open(
        Settings(data_dir=folder, retry_base_s=0.001, breaker_failures=10_000),
        transport=billing,
        resolver=MappingResolver(secrets),
        registry=registry,
    )
    return engine, await connect_account(engine, *(TARIFFS if connect else ()))
