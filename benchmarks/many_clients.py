"""64 clients at once for a minute: `toolkit serve` under mixed reads and runs.

Run `python -m benchmarks.many_clients`. The server and the simulated vendors are separate
processes, and the clients share this process: raw HTTP, 16 accounts, no pauses. Each client chooses
its next action at random: 40 % reads of every area, 40 % runs that are waited for, 10 % runs that
are followed by their events, 10 % runs that are sent twice at once with one idempotency key.

- `faults` are responses of 400 and above, and refused connections: none is allowed.
- `lost` are accepted runs that did not complete; `doubled` are runs that a vendor executed twice,
  by its own log, because no two runs have the same input.
- `memory` is the server's resident memory at the end over its memory after a third of the time.
- `throughput` is the number of requests per second of all clients. Its floor is their number when
  every request is `/v1/health`, for a few seconds in the same run; the floor of `read_p99` and
  `accept_p99` is the median of those requests.
- `beside_the_worst` is the 99th percentile of the latency of eight clients that read and accept
  from time to time while one tenant sends its worst load (`_worst.py`); its floor is the same
  without that tenant. Both are measured in turns, a few times each, and the figure is the ratio of
  their medians. Alone: `python -m benchmarks.many_clients worst`.
"""

import asyncio
import itertools
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import httpx

from benchmarks._cloud import serve_cloud
from benchmarks._process import percentile, read_resident_mb
from benchmarks._report import report
from benchmarks._server import find_cloud_urls, open_accounts, serve_toolkit
from benchmarks._worst import start_tenant

VENDORS = ("minimax", "openai")
CLIENTS, ACCOUNTS, SECONDS, FLOOR_S = 64, 16, 60.0, 5.0
NEIGHBOURS, PAUSE_S, ROUNDS = 8, 0.1, 5
MOST_TIMES_SLOWER = 3.0
MOST_GROWTH = 1.10
READS = (
    "/runs?limit=20", "/jobs?limit=5", "/artifacts?limit=10", "/capabilities", "/providers",
    "/usage", "/billing", "/account", "/workflows", "/tasks", "/agents",
)  # fmt: skip
FINAL = ("completed", "failed", "cancelled")


@dataclass
class Ledger:
    """The responses that the clients received."""

    statuses: Counter[int] = field(default_factory=Counter)
    refused: int = 0
    runs: dict[str, str] = field(default_factory=dict)
    took_ms: dict[str, list[float]] = field(
        default_factory=lambda: {"health": [], "read": [], "accept": []}
    )
    duplicates: int = 0

    @property
    def requests(self) -> int:
        """Return the number of responses."""
        return sum(self.statuses.values())


class Clients:
    """All clients, and the responses that they received."""

    def __init__(self, url: str, keys: list[str]) -> None:
        self.ledger = Ledger()
        self._https = [
            httpx.AsyncClient(
                base_url=f"{url}/v1",
                headers={"Authorization": f"Bearer {key}"},
                timeout=60,
                trust_env=False,
                limits=httpx.Limits(max_connections=CLIENTS // len(keys) * 2),
            )
            for key in keys
        ]
        self._number = itertools.count()

    async def all_of(self, do: Callable[[int, Random], Awaitable[None]], seconds: float) -> float:
        """Repeat an action in every client; return the requests per second."""
        before, until = self.ledger.requests, time.monotonic() + seconds
        began = time.monotonic()

        async def repeat(number: int) -> None:
            chance = Random(number)
            while time.monotonic() < until:
                await do(number, chance)

        await asyncio.gather(*(repeat(number) for number in range(CLIENTS)))
        return (self.ledger.requests - before) / (time.monotonic() - began)

    async def now_and_then(self, seconds: float) -> float:
        """Measure the 99th percentile of latencies, in ms, of clients that pause between calls."""
        took, until = list[float](), time.monotonic() + seconds

        async def repeat(number: int) -> None:
            chance = Random(number)
            while not took or time.monotonic() < until:
                began = time.perf_counter()
                if chance.random() < 0.5:
                    await self._send(number, "", "GET", chance.choice(READS))
                else:
                    await self._run(number, "", {})
                took.append((time.perf_counter() - began) * 1000)
                await asyncio.sleep(PAUSE_S)

        await asyncio.gather(*(repeat(number) for number in range(NEIGHBOURS)))
        return percentile(took, 0.99)

    async def _send(self, number: int, kind: str, method: str, path: str, **options: object):  # type: ignore[no-untyped-def]
        started = time.perf_counter()
        try:
            http = self._https[number % len(self._https)]
            answer = await http.request(method, path, **options)  # type: ignore[arg-type]
        except httpx.TransportError:
            self.ledger.refused += 1
            return None
        self.ledger.statuses[answer.status_code] += 1
        if kind:
            self.ledger.took_ms[kind].append((time.perf_counter() - started) * 1000)
        return answer

    async def health(self, number: int, _: Random) -> None:
        """Request the health of the server."""
        await self._send(number, "health", "GET", "/health")

    async def anything(self, number: int, chance: Random) -> None:
        """Send a random request of a client."""
        drawn = chance.random()
        if drawn < 0.4:
            await self._send(number, "read", "GET", chance.choice(READS))
        elif drawn < 0.8:
            await self._run(number, "", {"Prefer": "wait=30"})
        elif drawn < 0.9:
            run_id = await self._run(number, "accept", {})
            path, after = f"/runs/{run_id}/events", 0
            while run_id is not None:
                answer = await self._send(number, "", "GET", f"{path}?after={after}&wait=10")
                if answer is None or answer.status_code != 200:
                    break
                events = answer.json()["data"]["items"]
                after = events[-1]["n"] if events else after
                if events and events[-1]["type"].partition(".")[2] in FINAL:
                    break
        else:
            key = {"Idempotency-Key": f"{number}-{next(self._number)}"}
            same = next(self._number)
            twice = [self._run(number, "accept", key, same) for _ in range(2)]
            first, second = await asyncio.gather(*twice)
            self.ledger.duplicates += first is not None and first == second

    async def _run(
        self, number: int, kind: str, headers: dict[str, str], subject: int | None = None
    ) -> str | None:
        """Create a run with a new input, and return its id."""
        subject = next(self._number) if subject is None else subject
        body = {"name": "llm.generate", "target": "capability"}
        fields = {"objective": f"Say one line on tea, number {subject}", "max_tokens": 64}
        answer = await self._send(
            number, kind, "POST", "/runs", json={**body, "input": fields}, headers=headers
        )
        if answer is None or answer.status_code >= 300:
            return None
        run = answer.json()["data"]
        self.ledger.runs[run["id"]] = run["status"]
        return str(run["id"])

    async def settle(self) -> None:
        """Wait for every accepted run, and record its final status."""
        for run_id, status in self.ledger.runs.items():
            for http in self._https:
                if status in FINAL:
                    break
                answer = await http.get(f"/runs/{run_id}")
                while answer.status_code == 200 and answer.json()["status"] not in FINAL:
                    await asyncio.sleep(0.05)
                    answer = await http.get(f"/runs/{run_id}")
                if answer.status_code == 200:
                    status = self.ledger.runs[run_id] = answer.json()["status"]

    async def calm_down(self) -> None:
        """Wait until the server has no job running."""
        for _ in itertools.count():
            health = (await self._https[0].get("/health")).json()["data"]
            if not health["jobs_running"]:
                break
            await asyncio.sleep(PAUSE_S)

    async def close(self) -> None:
        """Close the connections."""
        for http in self._https:
            await http.aclose()


async def sample_memory_mb(pid: int, seconds: float) -> list[float]:
    """Sample the memory of a process in MB, a few times per second."""
    samples = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        samples.append(read_resident_mb(pid))
        await asyncio.sleep(min(0.25, seconds / 40))
    return samples


async def main(seconds: float = SECONDS, floor_s: float = FLOOR_S) -> int:
    """Run the benchmark; the exit code is 1 if a figure misses its limit."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serve_cloud() as cloud,
        serve_toolkit(Path(folder) / "data", find_cloud_urls(cloud)) as (url, pid),
    ):
        *keys, worst = open_accounts(url, ACCOUNTS + 1, VENDORS)
        clients = Clients(url, keys)
        bare = await clients.all_of(clients.health, floor_s)
        watching = asyncio.create_task(sample_memory_mb(pid, seconds))
        rate = await clients.all_of(clients.anything, seconds)
        memory = await watching
        await clients.settle()
        async with httpx.AsyncClient(base_url=cloud, trust_env=False) as http:
            calls = (await http.get("/_sandbox/calls")).json()["calls"]
        are_kept = report_load(clients.ledger, rate, bare, memory, calls)
        are_kept &= await measure_beside_worst_tenant(clients, url, worst, seconds)
        await clients.close()
    return 0 if are_kept else 1


async def measure_worst_tenant(seconds: float = SECONDS) -> int:
    """Measure the latency of others next to the worst tenant; the exit code is 1 if too long."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serve_cloud() as cloud,
        serve_toolkit(Path(folder) / "data", find_cloud_urls(cloud)) as (url, _),
    ):
        *keys, worst = open_accounts(url, ACCOUNTS + 1, VENDORS)
        clients = Clients(url, keys)
        is_kept = await measure_beside_worst_tenant(clients, url, worst, seconds)
        await clients.close()
    return 0 if is_kept else 1


async def measure_beside_worst_tenant(
    clients: Clients, url: str, worst: str, seconds: float
) -> bool:
    """Measure others with and without the worst tenant; returns True if the limit is kept."""
    quiet, loaded = list[float](), list[float]()
    await clients.now_and_then(seconds / 20)  # so that imports are not measured
    async with start_tenant(url, worst) as tenant:
        for _ in range(ROUNDS):
            quiet.append(await clients.now_and_then(seconds / 3 / ROUNDS))
            await tenant.begin()
            loaded.append(await clients.now_and_then(seconds / 3 / ROUNDS))
            await tenant.end()
            await clients.calm_down()
    middle = statistics.median(quiet)
    return report(
        "many_clients.beside_the_worst", statistics.median(loaded) / middle, "x p99 without it",
        floor=1, limit=MOST_TIMES_SLOWER, p99_ms=[round(ms, 1) for ms in loaded],
        quiet_p99_ms=[round(ms, 1) for ms in quiet],
    )  # fmt: skip


def report_load(
    ledger: Ledger,
    rate: float,
    bare: float,
    memory: list[float],
    calls: list[dict[str, object]],
) -> bool:
    """Print the figures; returns True if all limits are kept."""
    name, took = "many_clients", ledger.took_ms
    health = statistics.median(took["health"])
    faults = ledger.refused + sum(n for status, n in ledger.statuses.items() if status >= 400)
    lost = sum(status != "completed" for status in ledger.runs.values())
    billed = Counter(call["digest"] for call in calls if call["billed"])
    doubled = sum(times - 1 for times in billed.values())
    third = memory[len(memory) // 3 : len(memory) // 3 + 5] or memory
    statuses = {str(status): count for status, count in sorted(ledger.statuses.items())}
    are_kept = report(
        f"{name}.faults", faults, "answers", floor=0, limit=0, clients=CLIENTS, statuses=statuses
    )
    runs = len(ledger.runs)
    are_kept &= report(f"{name}.lost", lost, "runs", floor=0, limit=0, runs=runs)
    # Every run is in the log once; a run that is missing in it was not executed.
    are_kept &= report(
        f"{name}.doubled", doubled + abs(len(billed) - runs), "runs", floor=0, limit=0,
        calls=sum(billed.values()), sent_twice=ledger.duplicates,
    )  # fmt: skip
    are_kept &= report(
        f"{name}.memory",
        statistics.median(memory[-5:]) / statistics.median(third),
        "of a third of the way in",
        floor=1,
        limit=MOST_GROWTH,
        mb=round(memory[-1], 1),
        mb_at_first=round(memory[0], 1),
    )
    report(f"{name}.throughput", rate, "requests/s", floor=bare, limit=None)
    for kind in ("read", "accept"):
        value = percentile(took[kind], 0.99)
        p50 = round(statistics.median(took[kind]), 1)
        report(f"{name}.{kind}_p99", value, "ms", floor=health, limit=None, p50=p50)
    return are_kept


if __name__ == "__main__":
    sys.exit(asyncio.run(measure_worst_tenant() if "worst" in sys.argv[1:] else main()))
