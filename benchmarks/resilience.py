"""Vendor faults: 200 jobs, 20 % of calls answered 429, 10 % 5xx, and the default vendor down.

Run `python -m benchmarks.resilience`. No job may be lost, vendor calls must stay under 1.5 times
the jobs, and no connection may have more concurrent calls than its limit. All calls are counted in
the simulated vendors' own log, with each of nine seeds.

The floor is the number of calls of a caller that knows which vendor is down: one call per job and
one more per random failure, counted in the same log. By chance, a single run of 200 jobs takes
between 1.32 and 1.54 calls per job (two standard deviations around 1 / (1 - 0.3)), so the limit
applies to the median of the seeds.
"""

import asyncio
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks._cloud import connect_account
from benchmarks._report import report
from toolkit.contract.runs import RunCreate
from toolkit.local import open_engine
from toolkit.sandbox import Fault, Faults, VendorCall
from toolkit.settings import Settings

JOBS, LIMIT, AT_ONCE = 200, 1.5, 8
DOWN = "minimax"
VENDORS = ("minimax", "openai", "anthropic", "google")
SEEDS = 9


def weather(seed: int) -> Faults:
    """Return faults: the default vendor down, and for the others 20 % of 429 and 10 % of 5xx."""
    faults = Faults(seed)
    faults.add(Fault(DOWN, status=503))
    faults.latency("*", mean_ms=20, spread_ms=15)
    faults.add(Fault("*", status=429, share=0.2, headers={"retry-after-ms": "20"}))
    faults.add(Fault("*", status=500, share=0.1 / 0.8))  # of the remaining calls
    return faults


async def storm(seed: int) -> tuple[int, list[VendorCall]]:
    """Run the jobs; return the number of lost jobs and the log of their calls."""
    faults = weather(seed)
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(data_dir=Path(folder), sandbox=True, max_concurrent_calls=AT_ONCE)
        engine = await open_engine(settings, faults=faults)
        context = await connect_account(engine, *VENDORS)
        body = {"name": "llm.generate", "input": {"objective": "One line on tea"}}
        request = RunCreate.model_validate(body)

        async def run_job() -> bool:
            run = await engine.runs.create(context, request)
            await engine.wait(context, run.id, 120)
            return (await engine.runs.get(context, run.id)).status == "completed"

        results = await asyncio.gather(*(run_job() for _ in range(JOBS)))
        await engine.close(0)
    return JOBS - sum(results), faults.calls


def most_at_once(calls: list[VendorCall], vendor: str) -> int:
    """Return the maximum number of concurrent calls to a vendor."""
    edges = [(call.at_s, 1) for call in calls if call.vendor == vendor]
    edges += [(call.at_s + call.took_ms / 1000, -1) for call in calls if call.vendor == vendor]
    level = maximum = 0
    for _, step in sorted(edges):
        level += step
        maximum = max(maximum, level)
    return maximum


async def main() -> int:
    """Measure with nine seeds; the exit code is 1 if a figure misses its limit."""
    lost, ratios, floors, at_once, down = [], [], [], [], []
    for seed in range(SEEDS):
        missing, calls = await storm(seed)
        lost.append(missing)
        ratios.append(len(calls) / JOBS)
        at_once.append(max(most_at_once(calls, vendor) for vendor in VENDORS))
        down.append(sum(call.vendor == DOWN for call in calls))
        floors.append((len(calls) - down[-1]) / JOBS)
    are_kept = report("resilience.lost_jobs", max(lost), "jobs", floor=0, limit=0, jobs=JOBS)
    are_kept &= report(
        "resilience.calls",
        statistics.median(ratios),
        "calls per job",
        floor=statistics.median(floors),
        limit=LIMIT,
        min=min(ratios),
        max=max(ratios),
        calls_to_the_vendor_that_is_down=max(down),
    )
    are_kept &= report("resilience.at_once", max(at_once), "calls", floor=1, limit=AT_ONCE)
    return 0 if are_kept else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
