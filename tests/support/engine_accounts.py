"""The account of an engine's owner with connections to vendors, and completed runs of it."""

from collections.abc import Mapping

from tests.support.timing import PATIENCE_S
from toolkit.contract.connections import ConnectionCreate
from toolkit.contract.runs import Run, RunCreate
from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext


async def connect_account(engine: Engine, *providers: str) -> RequestContext:
    """Return the owner's account, connected to vendors by the variables of their keys."""
    owner, _ = await engine.accounts.open_local_account()
    context = RequestContext(owner.id)
    for provider in providers:
        pointer = ConnectionCreate(
            provider=provider,
            connection_type="environment",
            secret_ref=engine.core.registry.vendors[provider].variable,
        )
        await engine.connections.create(context, pointer)
    return context


async def run_to_end(
    engine: Engine,
    context: RequestContext,
    name: str,
    fields: Mapping[str, object],
    wait_s: float = PATIENCE_S,
    **options: object,
) -> Run:
    """Create a run, and return it after its end."""
    body = {"name": name, "input": fields, "options": options}
    run = await engine.runs.create(context, RunCreate.model_validate(body))
    await engine.wait(context, run.id, wait_s)
    return await engine.runs.get(context, run.id)
