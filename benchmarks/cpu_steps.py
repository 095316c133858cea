"""The cost of a step that uses a processor, over the bare function: worker processes included.

Run `python -m benchmarks.cpu_steps`. Each round is a chain of nodes, so that one step runs at a
time; the floor is the same calls in this process, in turns with the chain. Medians of rounds.

- `work` is a step of about 20 ms in pure Python: at most 1.1 times the bare function.
- `bytes` is a step that receives 4 MB and returns 4 MB, in ms per MB; its floor is the function
  with its input and output copied once, because another process has its own memory.
- `first` is the time from opening an engine to the end of its first step.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pydantic import Field

from benchmarks._cpu_work import TURNS, count_turns, reverse_bytes
from benchmarks._noop import open_noop_engine, run
from benchmarks._process import Clock
from benchmarks._report import report_rounds
from toolkit.contract.base import Record, Request
from toolkit.contract.workflows import NodeCreate, WorkflowCreate
from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext
from toolkit.plugins import Call, Capability, Flow, Result, run_in_process

ROUNDS, STEPS, SIZE = 5, 25, 4_000_000
MOST_OVER_WORK = 1.1


class StepInput(Request):
    """The amount of work."""

    turns: int = Field(default=0, ge=0)
    size: int = Field(default=0, ge=0)


class StepOutput(Record):
    """A confirmation that the step has run."""

    is_done: bool


def take_step(call: Call[StepInput]) -> Flow[Result]:
    """Work in a worker process: count, or reverse bytes."""
    if call.input.size:
        yield from run_in_process(reverse_bytes, bytes(call.input.size))
    else:
        yield from run_in_process(count_turns, call.input.turns)
    return Result({"is_done": True})


STEP = Capability(
    id="bench.step",
    title="Step",
    description="Works on a processor",
    input_model=StepInput,
    output_model=StepOutput,
    flow=take_step,
)


def chain_steps(count: int, fields: dict[str, int]) -> WorkflowCreate:
    """Make a workflow that is a chain of steps."""
    nodes = [
        NodeCreate(
            id=f"n{i}",
            capability="bench.step",
            input=fields,
            depends_on=[f"n{i - 1}"] if i else [],
        )
        for i in range(count)
    ]
    return WorkflowCreate(name="benchmark", nodes=nodes)


def measure_calls_ms(call: Callable[[], object], count: int, clock: Clock) -> float:
    """Measure the milliseconds per call of a sequence of calls."""
    began = clock()
    for _ in range(count):
        call()
    return (clock() - began) * 1000 / count


def copy_there_and_back(size: int) -> bytes:
    """Run the function of a step with bytes, and copy its input and its output once."""
    return bytes(bytearray(reverse_bytes(bytes(bytearray(size)))))


async def measure_chain_ms(
    engine: Engine,
    context: RequestContext,
    count: int,
    clock: Clock,
    **fields: int,
) -> float:
    """Measure the milliseconds per step of a chain of steps."""
    _, seconds = await run(engine, context, chain_steps(count, fields), clock)
    return 1000 * seconds / count


async def main(rounds: int = ROUNDS, steps: int = STEPS, clock: Clock = time.monotonic) -> int:
    """Measure by a clock; the exit code is 1 if a figure misses its limit."""
    results: dict[str, list[float]] = {"first": [], "work": [], "bytes": []}
    floors: dict[str, list[float]] = {name: [] for name in results}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            async with open_noop_engine(Path(folder), STEP) as engine:
                account, _ = await engine.accounts.open_local_account()
                context = RequestContext(account.id)
                first = await measure_chain_ms(engine, context, 1, clock, turns=TURNS)
                work = await measure_chain_ms(engine, context, steps, clock, turns=TURNS)
                moved = await measure_chain_ms(engine, context, steps, clock, size=SIZE)
        bare = measure_calls_ms(lambda: count_turns(TURNS), steps, clock)
        copied = measure_calls_ms(lambda: copy_there_and_back(SIZE), steps, clock)
        results["first"].append(first)
        results["work"].append(work)
        results["bytes"].append(moved / (SIZE / 1e6))
        floors["first"].append(bare)
        floors["work"].append(bare)
        floors["bytes"].append(copied / (SIZE / 1e6))
    are_kept = True
    units = {"first": "ms", "work": "ms/step", "bytes": "ms/MB"}
    limits = {"work": round(MOST_OVER_WORK * statistics.median(floors["work"]), 4)}
    for name, values in results.items():
        are_kept &= report_rounds(
            f"cpu_steps.{name}", values, units[name], floors=floors[name], limit=limits.get(name)
        )
    return 0 if are_kept else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
