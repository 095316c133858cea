"""An engine with a capability that does nothing, or sleeps, registered like a third party's."""

import gc
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import Field

from benchmarks._process import Clock
from toolkit.contract.base import Record, Request
from toolkit.contract.workflows import NodeCreate, WorkflowCreate, WorkflowRecord
from toolkit.engine import Engine, Registry
from toolkit.engine.request_context import RequestContext
from toolkit.plugins import Call, Capability, Flow, Result, pause
from toolkit.settings import Settings


class NapInput(Request):
    """The time to do nothing."""

    seconds: float = Field(default=0.0, ge=0)


class NapOutput(Record):
    """The time that was spent."""

    seconds: float


def nap(call: Call[NapInput]) -> Flow[Result]:
    """Do nothing for a while; for no seconds, do not even pause."""
    if call.input.seconds:
        yield from pause(call.input.seconds)
    return Result({"seconds": call.input.seconds})


NAP = Capability(
    id="bench.nap",
    title="Nap",
    description="Does nothing",
    input_model=NapInput,
    output_model=NapOutput,
    flow=nap,
)


@asynccontextmanager
async def open_noop_engine(
    data_dir: Path, *capabilities: Capability, **settings: object
) -> AsyncIterator[Engine]:
    """Open an engine on its own data directory, with further capabilities."""
    registry = Registry.load(extra=[NAP, *capabilities])
    engine = await Engine.open(Settings(data_dir=data_dir, **settings), registry=registry)
    try:
        yield engine
    finally:
        await engine.close(0)


def graph(edges: dict[str, list[str]], seconds: dict[str, float] | None = None) -> WorkflowCreate:
    """Build a workflow of naps from the ids that each node depends on."""
    return WorkflowCreate(
        name="benchmark",
        nodes=[
            NodeCreate(
                id=node,
                capability="bench.nap",
                input={"seconds": (seconds or {}).get(node, 0.0)},
                depends_on=upstream,
            )
            for node, upstream in edges.items()
        ],
    )


async def run(
    engine: Engine,
    context: RequestContext,
    request: WorkflowCreate,
    clock: Clock = time.monotonic,
) -> tuple[WorkflowRecord, float]:
    """Submit a workflow and wait for it; return its record and its seconds by a clock.

    Garbage is collected first, because an engine that was opened and closed before, or the floor,
    leaves some. The collector is on while the workflow runs.
    """
    gc.collect()
    started = clock()
    workflow = await engine.workflows.create(context, request)
    while workflow.status not in ("completed", "failed", "cancelled"):
        await engine.wait(context, workflow.id, 60)
        workflow = await engine.workflows.get(context, workflow.id)
    took = clock() - started
    assert workflow.status == "completed", workflow.error
    return workflow, took
