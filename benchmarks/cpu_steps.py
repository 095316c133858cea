"""What a step costs that works on a processor, over the bare function: worker processes and all.

Run `python -m benchmarks.cpu_steps`. Each round is a chain of nodes, so that one step runs at a
time; the floor is the same calls in this process, in turns with it. Medians of rounds.

- `work` is a step of about 20 ms in pure Python: at most 1.1 times the bare function.
- `bytes` is a step that is given 4 MB and returns as many, in ms a MB; its floor is the function
  with what is given and returned copied once, as memory of another process has to be.
- `first` is the time from an engine that was just opened to the end of its first step.
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
    """How much to work on."""

    turns: int = Field(default=0, ge=0)
    size: int = Field(default=0, ge=0)


class StepOutput(Record):
    """That it was done."""

    done: bool


def take_step(call: Call[StepInput]) -> Flow[Result]:
    """Work in a worker process: count, or turn bytes around."""
    if call.input.size:
        yield from run_in_process(reverse_bytes, bytes(call.input.size))
    else:
        yield from run_in_process(count_turns, call.input.turns)
    return Result({"done": True})


STEP = Capability(
    id="bench.step",
    title="Step",
    description="Works on a processor",
    input_model=StepInput,
    output_model=StepOutput,
    flow=take_step,
)


def chain_steps(count: int, given: dict[str, int]) -> WorkflowCreate:
    """Make a workflow of steps, one after the other."""
    nodes = [
        NodeCreate(
            id=f"n{i}",
            capability="bench.step",
            input=given,
            depends_on=[f"n{i - 1}"] if i else [],
        )
        for i in range(count)
    ]
    return WorkflowCreate(name="benchmark", nodes=nodes)


def measure_calls_ms(call: Callable[[], object], count: int, clock: Clock) -> float:
    """Measure the milliseconds of a call, of so many one after the other."""
    began = clock()
    for _ in range(count):
        call()
    return (clock() - began) * 1000 / count


def copy_there_and_back(size: int) -> bytes:
    """Do what a step with bytes does, with each of them copied once on both ways."""
    return bytes(bytearray(reverse_bytes(bytes(bytearray(size)))))


async def measure_chain_ms(
    engine: Engine,
    context: RequestContext,
    count: int,
    clock: Clock,
    **given: int,
) -> float:
    """Measure the milliseconds of a step, in a chain of so many."""
    _, seconds = await run(engine, context, chain_steps(count, given), clock)
    return 1000 * seconds / count


async def main(rounds: int = ROUNDS, steps: int = STEPS, clock: Clock = time.monotonic) -> int:
    """Measure by a clock; exit code 1 if a limit is not kept."""
    found: dict[str, list[float]] = {"first": [], "work": [], "bytes": []}
    floors: dict[str, list[float]] = {name: [] for name in found}
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
        found["first"].append(first)
        found["work"].append(work)
        found["bytes"].append(moved / (SIZE / 1e6))
        floors["first"].append(bare)
        floors["work"].append(bare)
        floors["bytes"].append(copied / (SIZE / 1e6))
    kept = True
    units = {"first": "ms", "work": "ms/step", "bytes": "ms/MB"}
    limits = {"work": round(MOST_OVER_WORK * statistics.median(floors["work"]), 4)}
    for name, values in found.items():
        kept &= report_rounds(
            f"cpu_steps.{name}", values, units[name], floors=floors[name], limit=limits.get(name)
        )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
