"""DBOS on PostgreSQL, at workflows of steps that do nothing: a peer's time for a durable step.

Run as `PYTHON benchmarks/_dbos.py < asked`, by a Python that has dbos and nothing of ours. It reads
JSON, `url` of an empty database, `steps` of the workflow to time, and `runs` of workflows of one
step, and prints the milliseconds of a step, one after the other, and the workflows a second, 32 at
once.
"""

import asyncio
import json
import sys
import time

from dbos import DBOS, DBOSConfig

AT_ONCE = 32


@DBOS.step()
async def do_nothing(number: int) -> int:
    """Do what the engine's no-op does."""
    return number


@DBOS.workflow()
async def run_chain(steps: int) -> int:
    """Run steps one after the other; each is durable before the next begins."""
    done = 0
    for number in range(steps):
        done += await do_nothing(number) == number
    return done


async def measure_step_ms(steps: int) -> float:
    """Measure the time of a step of one workflow, in ms."""
    await run_chain(10)
    started = time.perf_counter()
    assert await run_chain(steps) == steps
    return 1000 * (time.perf_counter() - started) / steps


async def measure_runs_per_s(runs: int) -> float:
    """Measure how many workflows of one step end in a second."""
    left = iter(range(runs))

    async def call_again() -> None:
        for _ in left:
            await run_chain(1)

    started = time.perf_counter()
    await asyncio.gather(*[call_again() for _ in range(AT_ONCE)])
    return runs / (time.perf_counter() - started)


async def main() -> None:
    """Measure what was asked for, and print it."""
    asked = json.load(sys.stdin)
    config: DBOSConfig = {
        "name": "benchmark", "system_database_url": asked["url"], "run_admin_server": False,
        "log_level": "ERROR",
    }  # fmt: skip
    DBOS(config=config)
    DBOS.launch()
    step_ms = await measure_step_ms(asked["steps"])
    print(json.dumps({"step_ms": step_ms, "runs_per_s": await measure_runs_per_s(asked["runs"])}))
    DBOS.destroy()


if __name__ == "__main__":
    asyncio.run(main())
