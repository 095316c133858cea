"""An engine that dies in this very process: from one moment on it writes nothing more."""

import asyncio
import contextlib

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.engine import Engine


async def kill_engine(engine: Engine) -> None:
    """Stop an engine as `kill -9` does: unwritten data stays unwritten."""
    store, roots, limits = engine.core.store, engine.leases, engine.core.deployment

    def nothing_more(*_: object) -> Exception:
        return ServiceError(ErrorCode.UNAVAILABLE, "this process is dead")

    store.writer._try_write = nothing_more  # type: ignore[method-assign]
    engine.drain()
    roots._heartbeat.close()
    upkeep = [
        task for task in (roots._keeper, *engine._upkeep, limits._polling) if task is not None
    ]
    tasks = [*roots._running.values(), *upkeep]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    with contextlib.suppress(Exception):
        await engine.core.driver.aclose()
    with contextlib.suppress(Exception):
        await store.writer.drain()
    # Threads that have a connection, which would otherwise stay open.
    await store._changes.close()
    await store._database.close()
