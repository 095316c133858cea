"""Limits of a deployment: four servers on one data directory, and what they ask for together.

Run `python -m benchmarks.shared_limits`. The vendor (`_limited_vendor.py`) allows 50 calls a second
and a few at once, takes 50 ms for each, and refuses the others by 429; its operator has told the
servers so (`requests_per_minute`). Each server has more callers than it could serve alone, who wait
for their runs. The servers, the vendor and the callers, who share this process, are six processes.

- `refused` is the share of calls that the vendor refused, by its own count.
- `used` is the share of its rate that was used.
- `alone.refused` and `alone.used` are those of a single server, which asks nobody before a call.
- `key_rate` is what a key of 50 requests a second gets at all four servers together, as a ratio to
  that, once its burst is used up.

`python -m benchmarks.postgres` has the first two on a database of PostgreSQL.
"""

import asyncio
import itertools
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from benchmarks._raw_http import start_module
from benchmarks._report import report, report_share
from benchmarks._server import open_accounts, serve_toolkit

ENGINES, CALLERS, SECONDS, WARM_UP_S = 4, 48, 15.0, 2.0
RATE, VENDOR_BURST = 50, 5
KEY_RATE, KEY_BURST = 50, 50
MOST_REFUSED, LEAST_USED, MOST_OF_KEY_RATE = 0.01, 0.95, 1.05


class Callers:
    """Callers of several servers, all by one key."""

    def __init__(self, urls: list[str], vendor_port: int) -> None:
        self._urls = urls
        self._counts_url = f"http://127.0.0.1:{vendor_port}/counts"
        (self._key,) = open_accounts(urls[0], 1, ("openai",))
        self._number = itertools.count()
        self.statuses: Counter[int] = Counter()

    async def send_runs(self, seconds: float) -> dict[str, int]:
        """Have all of them ask for runs; return what the vendor answered meanwhile, by status."""
        async with httpx.AsyncClient(trust_env=False) as http:
            callers = [asyncio.create_task(self._call(i, self._run)) for i in range(CALLERS)]
            await asyncio.sleep(WARM_UP_S)
            await http.get(self._counts_url)
            await asyncio.sleep(seconds)
            counts: dict[str, int] = (await http.get(self._counts_url)).json()
        await self._stop(callers)
        return counts

    async def send_reads(self, seconds: float) -> float:
        """Have all of them ask for the account; return how many a second were answered."""
        callers = [asyncio.create_task(self._call(i, self._read)) for i in range(CALLERS // 4)]
        await asyncio.sleep(WARM_UP_S + KEY_BURST / KEY_RATE)
        before = self.statuses[200]
        await asyncio.sleep(seconds)
        answered = self.statuses[200] - before
        await self._stop(callers)
        return answered / seconds

    async def _stop(self, callers: list[asyncio.Task[None]]) -> None:
        for caller in callers:
            caller.cancel()
        await asyncio.wait(callers)

    async def _call(
        self, number: int, send: Callable[[httpx.AsyncClient], Awaitable[httpx.Response]]
    ) -> None:
        async with httpx.AsyncClient(
            base_url=f"{self._urls[number % len(self._urls)]}/v1",
            headers={"Authorization": f"Bearer {self._key}"},
            timeout=60,
            trust_env=False,
        ) as http:
            while True:
                answer = await send(http)
                self.statuses[answer.status_code] += 1

    async def _run(self, http: httpx.AsyncClient) -> httpx.Response:
        given = {"objective": f"Say one line on tea, number {next(self._number)}"}
        body = {"name": "llm.generate", "target": "capability", "input": given}
        return await http.post("/runs", json=body, headers={"Prefer": "wait=30"})

    async def _read(self, http: httpx.AsyncClient) -> httpx.Response:
        answer = await http.get("/account")
        if answer.status_code == 429:  # sooner than it is asked to, but not all the time
            await asyncio.sleep(0.02)
        return answer


@contextmanager
def open_callers(engines: int, database: str | None = None, **settings: str) -> Iterator[Callers]:
    """Open callers of so many servers on one deployment, and end them with the block.

    Args:
        engines: how many servers.
        database: the URL of PostgreSQL, where each server has a data directory of its own; without
            it they share one.
        **settings: further settings of each.
    """
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        limits = str(RATE), str(VENDOR_BURST)
        port, _ = opened.enter_context(start_module("benchmarks._limited_vendor", *limits))
        vendor = {("openai", "api"): f"http://127.0.0.1:{port}/v1"}
        settings |= {"vendors__openai__requests_per_minute": str(RATE * 60)}
        names = ["data"] * engines
        if database is not None:
            settings["database"] = database
            names = [f"data{number}" for number in range(engines)]
        urls = [
            opened.enter_context(serve_toolkit(folder / name, vendor, **settings))[0]
            for name in names
        ]
        yield Callers(urls, port)


def measure_vendor(
    engines: int, seconds: float, database: str | None = None
) -> tuple[float, float]:
    """Measure the share of calls that the vendor refused, and that of its rate that was used."""
    with open_callers(engines, database) as callers:
        counts = asyncio.run(callers.send_runs(seconds))
    done, refused = counts.get("200", 0), counts.get("429", 0)
    return refused / max(1, done + refused), done / seconds / RATE


def measure_key(engines: int, seconds: float) -> float:
    """Measure the requests a second that a limited key gets, as a ratio to its limit."""
    limits = {"rate_limit_per_s": str(KEY_RATE), "rate_limit_burst": str(KEY_BURST)}
    with open_callers(engines, **limits) as callers:
        return asyncio.run(callers.send_reads(seconds)) / KEY_RATE


def report_vendor(name: str, engines: int, seconds: float, database: str | None = None) -> bool:
    """Measure and print what a vendor refused, and how much of its rate was used.

    Args:
        name: what the names of both figures begin with.
        engines: how many servers call it.
        seconds: how long they do.
        database: their database of PostgreSQL, if it is not a data directory.

    Returns:
        true if both limits are kept.
    """
    refused, used = measure_vendor(engines, seconds, database)
    kept = report(f"{name}.refused", refused, "share", floor=0, limit=MOST_REFUSED)
    return report_share(f"{name}.used", used, at_least=LEAST_USED) and kept


def main(seconds: float = SECONDS) -> bool:
    """Measure four servers, and one; false if a figure misses its limit."""
    kept = report_vendor("shared_limits", ENGINES, seconds)
    kept &= report_vendor("shared_limits.alone", 1, seconds)
    of_key = measure_key(ENGINES, seconds)
    kept &= report("shared_limits.key_rate", of_key, "x", floor=1, limit=MOST_OF_KEY_RATE)
    return kept


if __name__ == "__main__":
    sys.exit(not main())
