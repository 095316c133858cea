"""1,000 workflows of 10 nodes at once: acceptance, throughput, memory, and whether all get a turn.

Run `python -m benchmarks.many_workflows`; `--small` only shows that it works. All workflows are
submitted at the same moment, each is one node, eight that need it and a last one, of 10 ms each,
and at most 256 jobs run at once (the setting's default). Every round is a process of its own.

- `throughput` is the wall time per workflow, from the first submission to the last end. Its floor
  is that of `dag_overhead` on the same 10,000 nodes as one graph: bare asyncio, no sleeping.
- `accepted` is how long a caller waits until its workflow is durable, in that burst. Its floor is
  the median of 20 workflows that are submitted alone, one after another, to the idle engine.
- `small_run` is how long a run of one such node takes that is asked for when half of the workflows
  have ended, as a share of what the whole burst takes; without turns it would wait for all that is
  left, half of the burst. Its floor is the same run on the idle engine.
- `overtaken` is the share of the workflows that ended before a workflow of one node that was
  submitted as the very last; without turns it would be all of them. Its floor is none.
- `memory` is the peak of the process; its floor is what it had when the burst began.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks._noop import graph, open_noop_engine, run
from benchmarks._process import peak_mb, percentile, spread
from benchmarks._report import report
from benchmarks.dag_overhead import floor
from toolkit.contract.runs import RunCreate
from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext

WORKFLOWS, WIDTH, SECONDS, ROUNDS, ALONE = 1_000, 8, 0.01, 3, 20
MOST_MB, MOST_MS, MOST_SHARE = 400.0, 10.0, 0.25
EDGES = {
    "first": [],
    **{f"n{i}": ["first"] for i in range(WIDTH)},
    "last": [f"n{i}" for i in range(WIDTH)],
}
DIAMOND = graph(EDGES, dict.fromkeys(EDGES, SECONDS))
SINGLE = graph({"only": []}, {"only": SECONDS})
RUN = RunCreate.model_validate({"name": "bench.nap", "input": {"seconds": SECONDS}})


async def small_run(engine: Engine, context: RequestContext) -> float:
    """Seconds from asking for a run of one node until it has ended."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    asked = await engine.runs.create(context, RUN)
    while asked.status not in ("completed", "failed", "cancelled"):
        await engine.wait(context, asked.id, 60)
        asked = await engine.runs.get(context, asked.id)
    assert asked.status == "completed", asked.error
    return loop.time() - started


async def burst(engine: Engine, context: RequestContext, workflows: int) -> dict[str, float]:
    """Submit all workflows at once and wait for all of them."""
    loop = asyncio.get_running_loop()
    accepted: list[float] = []
    ended = 0
    half = asyncio.Event()
    began = loop.time()

    async def one() -> None:
        nonlocal ended
        workflow = await engine.workflows.create(context, DIAMOND)
        accepted.append(loop.time() - began)
        while workflow.status not in ("completed", "failed", "cancelled"):
            await engine.wait(context, workflow.id, 120)
            workflow = await engine.workflows.get(context, workflow.id)
        assert workflow.status == "completed", workflow.error
        ended += 1
        if 2 * ended >= workflows:
            half.set()

    async def in_between() -> float:
        await half.wait()
        return await small_run(engine, context)

    async def at_last() -> tuple[float, int]:
        _, took = await run(engine, context, SINGLE)
        return took, ended

    async with asyncio.TaskGroup() as group:
        for _ in range(workflows):
            group.create_task(one())
        asked = group.create_task(in_between())
        await asyncio.sleep(0)
        last = group.create_task(at_last())
    took = loop.time() - began
    return {
        "took": took,
        "accepted_p50": statistics.median(accepted),
        "accepted_p95": percentile(accepted, 0.95),
        "small_run": asked.result(),
        "small_workflow": last.result()[0],
        "overtaken": last.result()[1] / workflows,
    }


async def measure(workflows: int) -> dict[str, float]:
    """One round in this process; times are in seconds."""
    loop = asyncio.get_running_loop()
    union = {
        f"{i}-{node}": [f"{i}-{up}" for up in upstream]
        for i in range(workflows)
        for node, upstream in EDGES.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        async with open_noop_engine(Path(folder) / "data") as engine:
            account, _ = await engine.accounts.open_local_account()
            context = RequestContext(account.id)
            alone, idle = [], []
            for _ in range(ALONE):
                idle.append(await small_run(engine, context))
                started = loop.time()
                workflow = await engine.workflows.create(context, DIAMOND)
                alone.append(loop.time() - started)
                await engine.wait(context, workflow.id, 60)
            before = peak_mb()
            found = await burst(engine, context, workflows)
            found |= {"peak_mb": peak_mb(), "floor_mb": before}
        found["floor"] = await floor(union, Path(folder))
    return {**found, "alone": statistics.median(alone), "idle": statistics.median(idle)}


def measure_in_process(workflows: int) -> dict[str, float]:
    """The same, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.many_workflows", str(workflows)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def tell(rows: list[dict[str, float]], workflows: int) -> bool:
    """Print the figures of some rounds; whether all limits are kept."""
    name = "many_workflows"

    def all_of(key: str, by: str | None = None, factor: float = 1.0) -> list[float]:
        return [factor * row[key] / (row[by] if by else 1.0) for row in rows]

    per_workflow = all_of("took", factor=1000 / workflows)
    kept = report(
        f"{name}.throughput",
        statistics.median(per_workflow),
        "ms/workflow",
        floor=statistics.median(all_of("floor", factor=1000 / workflows)),
        limit=MOST_MS,
        workflows_per_s=round(1000 / statistics.median(per_workflow), 1),
        workflows=workflows,
        **spread(per_workflow),
    )
    for key in ("accepted_p50", "accepted_p95"):
        waited = all_of(key, factor=1000)
        alone = statistics.median(all_of("alone", factor=1000))
        figure = f"{name}.{key}"
        value = statistics.median(waited)
        report(figure, value, "ms", floor=alone, limit=None, **spread(waited, 1))
    shares = all_of("small_run", "took")
    kept &= report(
        f"{name}.small_run",
        statistics.median(shares),
        "of the burst",
        floor=statistics.median(all_of("idle", "took")),
        limit=MOST_SHARE,
        ms=round(statistics.median(all_of("small_run", factor=1000)), 1),
        **spread(shares),
    )
    overtaken = all_of("overtaken")
    kept &= report(
        f"{name}.overtaken",
        statistics.median(overtaken),
        "of the workflows",
        floor=0,
        limit=MOST_SHARE,
        ms=round(statistics.median(all_of("small_workflow", factor=1000)), 1),
        burst_ms=round(statistics.median(all_of("took", factor=1000)), 1),
        **spread(overtaken),
    )
    peaks = all_of("peak_mb")
    least = statistics.median(all_of("floor_mb"))
    kept &= report(
        f"{name}.memory", max(peaks), "MB", floor=least, limit=MOST_MB, **spread(peaks, 1)
    )
    return kept


def main() -> int:
    """Measure; exit code 1 if a limit is not kept."""
    return 0 if tell([measure_in_process(WORKFLOWS) for _ in range(ROUNDS)], WORKFLOWS) else 1


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--small"]:
            tell([asyncio.run(measure(10))], 10)
        case [workflows]:
            print(json.dumps(asyncio.run(measure(int(workflows)))))
        case _:
            sys.exit(main())
