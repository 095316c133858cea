"""Every figure of the page of benchmarks is held to its floor, which is measured in the same test.

What is held is a ratio and never a time: the least of some rounds over the least of the floor's, by
CPU time or by a watch that stands still while others have the cores, so that what else the machine
does falls out of it. A figure may take about a half more than it did when its ratio was written
down. One that takes more is measured anew, as only a regression is so three times.
"""

import asyncio
import io
import json
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout

import pytest

from benchmarks import (
    artifacts,
    cpu_steps,
    critical_path,
    dag_overhead,
    embedded,
    gateway,
    large_workflow,
    startup,
    store_growth,
)
from tests.support.timing import Watch

TRIES = 3
Ratios = dict[str, float]


def read_ratios(measure: Callable[[], object]) -> Ratios:
    """Read how many times its floor each figure is that a benchmark prints."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        measure()
    lines = [json.loads(text) for text in printed.getvalue().splitlines()]
    return {line["figure"]: _find_ratio(line) for line in lines}


def _find_ratio(line: Mapping[str, float]) -> float:
    if share := line.get("most_share"):
        return 1 / share
    if proxy := line.get("proxy_cpu_ms"):  # a latency is mostly others', on a busy machine
        return line["cpu_ms"] / proxy
    return line.get("least_ratio") or line["ratio"]


def count_start_ratios() -> Ratios:
    """Count the CPU time of processes that start, over that of others that do as little."""
    found: Ratios = {}
    for works, floor, rounds in (
        (startup.STARTS, "libraries", 2),
        (startup.CLIENTS, "libraries", 2),
        (startup.DEMO, "notebook", 1),
    ):
        took = {
            name: min(startup.count_cpu_s(work) for _ in range(rounds))
            for name, work in {floor: startup.FLOORS[floor], **works}.items()
        }
        found |= {f"startup.{name}": took[name] / took[floor] for name in works}
    return found


async def compare_sizes() -> Ratios:
    """Compare the CPU time that a node takes in a large workflow and in a small one."""
    found = {}
    for shape in large_workflow.SHAPES:
        few, many = [], []
        for _ in range(2):
            few.append((await large_workflow.measure(shape, 400, time.process_time))["ms"])
            many.append((await large_workflow.measure(shape, 1_600, time.process_time))["ms"])
        found[f"large_workflow.{shape}.growth"] = min(many) / min(few)
    return found


@pytest.mark.parametrize(
    ("measure", "most"),
    [
        pytest.param(
            lambda: read_ratios(lambda: asyncio.run(gateway.main(2, 0.4, 1.0))),
            {
                "gateway.added_ms.normal": 24,
                "gateway.added_ms.full": 36,
                "gateway.runs_per_s": 30,
                "gateway.cpu_ms": 18,
                "gateway.p99_over_p50": 5,
            },
            id="gateway",
        ),
        pytest.param(
            lambda: read_ratios(lambda: embedded.main(2, 40, 60)),
            {
                "embedded.cpu_ms.sync": 18,
                "embedded.cpu_ms.async": 2.8,
                "embedded.node_cpu_ms.wide": 8,
                "embedded.node_cpu_ms.layered": 8,
            },
            id="embedded",
        ),
        pytest.param(
            lambda: read_ratios(lambda: asyncio.run(dag_overhead.main(200, 3, time.process_time))),
            {"dag_overhead.chain": 16, "dag_overhead.fan": 30, "dag_overhead.layered": 42},
            id="dag_overhead",
        ),
        pytest.param(
            lambda: read_ratios(
                lambda: asyncio.run(critical_path.main(2, Watch().measure_elapsed_s))
            ),
            {
                "critical_path.even": 1.5,
                "critical_path.even.over_floor": 1.5,
                "critical_path.skewed": 1.4,
                "critical_path.skewed.over_floor": 1.4,
            },
            id="critical_path",
        ),
        pytest.param(
            lambda: asyncio.run(compare_sizes()),
            {f"large_workflow.{shape}.growth": 1.6 for shape in large_workflow.SHAPES},
            id="large_workflow",
        ),
        pytest.param(
            lambda: read_ratios(lambda: asyncio.run(cpu_steps.main(2, 5, time.process_time))),
            {"cpu_steps.first": 1, "cpu_steps.work": 0.2, "cpu_steps.bytes": 4},
            id="cpu_steps",
        ),
        pytest.param(
            lambda: read_ratios(lambda: artifacts.main(3)),
            {
                "artifacts.upload.small": 90,
                "artifacts.download.small": 180,
                "artifacts.upload.large": 3,
                "artifacts.download.large": 20,
            },
            id="artifacts",
        ),
        pytest.param(
            lambda: read_ratios(lambda: asyncio.run(store_growth.report_growth("llm", 60, 0))),
            {"store_growth.bytes.llm": 90, "store_growth.again.llm": 1.1},
            id="store_growth",
        ),
        pytest.param(
            count_start_ratios,
            {
                "startup.import": 0.3,
                "startup.help": 2.2,
                "startup.first_run": 11,
                "startup.client": 2,
                "startup.async_client": 2,
                "startup.demo": 8,
            },
            id="startup",
        ),
    ],
)
def test_a_figure_keeps_its_ratio(
    measure: Callable[[], Ratios], most: Ratios, tell: Callable[[str], None]
) -> None:
    """Given a figure and its floor, in turns, then it is not more times the floor than it was."""
    for _ in range(TRIES):
        found = measure()
        assert set(found) == set(most)
        over = {name: ratio for name, ratio in found.items() if ratio > most[name]}
        tell(", ".join(f"{name} {ratio:.2f} of {most[name]}" for name, ratio in found.items()))
        if not over:
            return
    pytest.fail(f"more times their floors than they were: {over}")
