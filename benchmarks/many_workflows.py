"""1,000 workflows of 10 nodes at once: acceptance, throughput, memory and fair share.

Run `python -m benchmarks.many_workflows`; `--small` only checks that it works. All workflows are
submitted at once. Each has a first node, eight nodes that depend on it, and a last node that
depends on those, of 10 ms each; at most 256 jobs run at once (the setting's default). Every round
runs in its own process.

- `throughput` is the wall time per workflow, from the first submission to the last end. Its floor
  is the floor of `dag_overhead` on the same 10,000 nodes as one graph: bare asyncio, no sleeping.
- `accepted` is the time until a caller's workflow is durable, in that burst. Its floor is the
  median of 20 workflows that are submitted alone, one after the other, to the idle engine.
- `small_run` is the time of a run of one node that is created after half of the workflows have
  ended, as a share of the time of the burst. Without a fair share it would wait for the other half.
  Its floor is the same run on the idle engine.
- `overtaken` is the share of workflows that ended before a workflow of one node that was submitted
  last; without a fair share it would be 1. Its floor is 0.
- `memory` is the peak of the process; its floor is its memory when the burst began.
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
    """Measure the seconds from the creation of a run of one node to its end."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    run_record = await engine.runs.create(context, RUN)
    while run_record.status not in ("completed", "failed", "cancelled"):
        await engine.wait(context, run_record.id, 60)
        run_record = await engine.runs.get(context, run_record.id)
    assert run_record.status == "completed", run_record.error
    return loop.time() - started


async def burst(engine: Engine, context: RequestContext, workflows: int) -> dict[str, float]:
    """Submit all workflows at once and wait for all of them."""
    loop = asyncio.get_running_loop()
    accepted: list[float] = []
    completed = 0
    half = asyncio.Event()
    began = loop.time()

    async def run_workflow() -> None:
        nonlocal completed
        workflow = await engine.workflows.create(context, DIAMOND)
        accepted.append(loop.time() - began)
        while workflow.status not in ("completed", "failed", "cancelled"):
            await engine.wait(context, workflow.id, 120)
            workflow = await engine.workflows.get(context, workflow.id)
        assert workflow.status == "completed", workflow.error
        completed += 1
        if 2 * completed >= workflows:
            half.set()

    async def in_between() -> float:
        await half.wait()
        return await small_run(engine, context)

    async def at_last() -> tuple[float, int]:
        _, took = await run(engine, context, SINGLE)
        return took, completed

    async with asyncio.TaskGroup() as group:
        for _ in range(workflows):
            group.create_task(run_workflow())
        small = group.create_task(in_between())
        await asyncio.sleep(0)
        last = group.create_task(at_last())
    took = loop.time() - began
    return {
        "took": took,
        "accepted_p50": statistics.median(accepted),
        "accepted_p95": percentile(accepted, 0.95),
        "small_run": small.result(),
        "small_workflow": last.result()[0],
        "overtaken": last.result()[1] / workflows,
    }


async def measure(workflows: int) -> dict[str, float]:
    """Measure one round in this process; times are in seconds."""
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
            result = await burst(engine, context, workflows)
            result |= {"peak_mb": peak_mb(), "floor_mb": before}
        result["floor"] = await floor(union, Path(folder))
    return {**result, "alone": statistics.median(alone), "idle": statistics.median(idle)}


def measure_in_process(workflows: int) -> dict[str, float]:
    """Measure one round in a separate process."""
    command = [sys.executable, "-m", "benchmarks.many_workflows", str(workflows)]
    process = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    answer: dict[str, float] = json.loads(process.stdout)
    return answer


def report_figures(rows: list[dict[str, float]], workflows: int) -> bool:
    """Print the figures of some rounds; returns True if all limits are kept."""
    name = "many_workflows"

    def all_of(key: str, by: str | None = None, factor: float = 1.0) -> list[float]:
        return [factor * row[key] / (row[by] if by else 1.0) for row in rows]

    per_workflow = all_of("took", factor=1000 / workflows)
    are_kept = report(
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
    are_kept &= report(
        f"{name}.small_run",
        statistics.median(shares),
        "of the burst",
        floor=statistics.median(all_of("idle", "took")),
        limit=MOST_SHARE,
        ms=round(statistics.median(all_of("small_run", factor=1000)), 1),
        **spread(shares),
    )
    overtaken = all_of("overtaken")
    are_kept &= report(
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
    floor_mb = statistics.median(all_of("floor_mb"))
    are_kept &= report(
        f"{name}.memory", max(peaks), "MB", floor=floor_mb, limit=MOST_MB, **spread(peaks, 1)
    )
    return are_kept


def main() -> int:
    """Run the benchmark; the exit code is 1 if a figure misses its limit."""
    rows = [measure_in_process(WORKFLOWS) for _ in range(ROUNDS)]
    return 0 if report_figures(rows, WORKFLOWS) else 1


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--small"]:
            report_figures([asyncio.run(measure(10))], 10)
        case [workflows]:
            print(json.dumps(asyncio.run(measure(int(workflows)))))
        case _:
            sys.exit(main())
