"""Limits of a deployment: four servers on one data directory, and their combined requests.

Run `python -m benchmarks.shared_limits`. The vendor (`_limited_vendor.py`) allows 50 calls per
second with a small burst, takes 50 ms for each, and rejects other calls with 429; the servers are
configured with this limit (`requests_per_minute`). Each server has more callers than it could serve
alone; the callers wait for their runs. The servers, the vendor and the callers, which share this
process, are six processes.

- `refused` is the share of calls that the vendor rejected, by its own count.
- `used` is the share of its rate that was used.
- `alone.refused` and `alone.used` are the same for a single server, which needs no coordination.
- `key_rate` is the total rate of a key limited to 50 requests per second at all four servers, as a
  ratio to its limit, after its burst is used up.

`python -m benchmarks.postgres` measures the first two on a PostgreSQL database.
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
    """Callers of several servers, all with the same key."""

    def __init__(self, urls: list[str], vendor_port: int) -> None:
        self._urls = urls
        self._counts_url = f"http://127.0.0.1:{vendor_port}/counts"
        (self._key,) = open_accounts(urls[0], 1, ("openai",))
        self._number = itertools.count()
        self.statuses: Counter[int] = Counter()

    async def send_runs(self, seconds: float) -> dict[str, int]:
        """Create runs from all callers; return the number of the vendor's responses by status."""
        async with httpx.AsyncClient(trust_env=False) as http:
            callers = [asyncio.create_task(self._call(i, self._run)) for i in range(CALLERS)]
            await asyncio.sleep(WARM_UP_S)
            await http.get(self._counts_url)
            await asyncio.sleep(seconds)
            counts: dict[str, int] = (await http.get(self._counts_url)).json()
        await self._stop(callers)
        return counts

    async def send_reads(self, seconds: float) -> float:
        """Read the account from all callers; return the successful responses per second."""
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
        fields = {"objective": f"Say one line on tea, number {next(self._number)}"}
        body = {"name": "llm.generate", "target": "capability", "input": fields}
        return await http.post("/runs", json=body, headers={"Prefer": "wait=30"})

    async def _read(self, http: httpx.AsyncClient) -> httpx.Response:
        answer = await http.get("/account")
        if answer.status_code == 429:  # sooner than the server asks, but not in a busy loop
            await asyncio.sleep(0.02)
        return answer


@contextmanager
def open_callers(engines: int, database: str | None = None, **settings: str) -> Iterator[Callers]:
    """Open callers of several servers of one deployment until the block ends.

    Args:
        engines: number of servers.
        database: URL of a PostgreSQL database that servers with separate data directories share;
            without it they share one data directory.
        **settings: further settings of each server.
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
    """Measure the share of calls that the vendor rejected, and the used share of its rate."""
    with open_callers(engines, database) as callers:
        counts = asyncio.run(callers.send_runs(seconds))
    accepted, refused = counts.get("200", 0), counts.get("429", 0)
    return refused / max(1, accepted + refused), accepted / seconds / RATE


def measure_key(engines: int, seconds: float) -> float:
    """Measure the requests per second of a limited key, as a ratio to its limit."""
    limits = {"rate_limit_per_s": str(KEY_RATE), "rate_limit_burst": str(KEY_BURST)}
    with open_callers(engines, **limits) as callers:
        return asyncio.run(callers.send_reads(seconds)) / KEY_RATE


def report_vendor(name: str, engines: int, seconds: float, database: str | None = None) -> bool:
    """Measure and report the calls that a vendor rejected, and the used share of its rate.

    Args:
        name: prefix of the names of both figures.
        engines: number of servers that call the vendor.
        seconds: duration of the calls.
        database: URL of their PostgreSQL database; None for a shared data directory.

    Returns:
        True if both limits are kept.
    """
    refused, used_share = measure_vendor(engines, seconds, database)
    is_kept = report(f"{name}.refused", refused, "share", floor=0, limit=MOST_REFUSED)
    return report_share(f"{name}.used", used_share, at_least=LEAST_USED) and is_kept


def main(seconds: float = SECONDS) -> bool:
    """Measure four servers, and one server; returns False if a figure misses its limit."""
    are_kept = report_vendor("shared_limits", ENGINES, seconds)
    are_kept &= report_vendor("shared_limits.alone", 1, seconds)
    of_key = measure_key(ENGINES, seconds)
    are_kept &= report("shared_limits.key_rate", of_key, "x", floor=1, limit=MOST_OF_KEY_RATE)
    return are_kept


if __name__ == "__main__":
    sys.exit(not main())
