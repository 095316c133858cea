"""DBOS on PostgreSQL with steps that do nothing: the time that a peer takes for a durable step.

Run as `PYTHON benchmarks/_dbos.py < request`, by a Python that has dbos and none of our packages.
It reads JSON: `url` of an empty database, `steps` of the workflow to time, and `runs`, the number
of workflows of one step. It prints the milliseconds of a step in a chain, and the workflows per
second with 32 at once.
"""

import asyncio
import json
import sys
import time

from dbos import DBOS, DBOSConfig

AT_ONCE = 32


@DBOS.step()
async def do_nothing(number: int) -> int:
    """Return at once, like the engine's no-op."""
    return number


@DBOS.workflow()
async def run_chain(steps: int) -> int:
    """Run steps in a chain; each is durable before the next begins."""
    count = 0
    for number in range(steps):
        count += await do_nothing(number) == number
    return count


async def measure_step_ms(steps: int) -> float:
    """Measure the time of a step of one workflow, in ms."""
    await run_chain(10)
    started = time.perf_counter()
    assert await run_chain(steps) == steps
    return 1000 * (time.perf_counter() - started) / steps


async def measure_runs_per_s(runs: int) -> float:
    """Measure how many workflows of one step end per second."""
    numbers = iter(range(runs))

    async def call_again() -> None:
        for _ in numbers:
            await run_chain(1)

    started = time.perf_counter()
    await asyncio.gather(*[call_again() for _ in range(AT_ONCE)])
    return runs / (time.perf_counter() - started)


async def main() -> None:
    """Run both measurements, and print their results."""
    request = json.load(sys.stdin)
    config: DBOSConfig = {
        "name": "benchmark", "system_database_url": request["url"], "run_admin_server": False,
        "log_level": "ERROR",
    }  # fmt: skip
    DBOS(config=config)
    DBOS.launch()
    step_ms = await measure_step_ms(request["steps"])
    print(json.dumps({"step_ms": step_ms, "runs_per_s": await measure_runs_per_s(request["runs"])}))
    DBOS.destroy()


if __name__ == "__main__":
    asyncio.run(main())
