"""The time that `toolkit serve` adds to a run of `llm.generate` at a vendor without latency.

Run `python -m benchmarks.gateway`. The server, the vendor (`_fake_vendor.py`), a bare proxy
(`_bare_proxy.py`) and the callers, which share this process, are four processes on the same cores.
Every run has a different input, is waited for (`Prefer: wait`) and is checked for completion.
Figures are medians of rounds; each round measures everything in turns.

- `added_ms` is the median latency of one caller, less the latency of the same caller at the vendor
  itself, with `durability` normal and full. The floor is the time that the bare proxy adds; for
  full it includes the disk's time for the syncs of a run. `cpu_ms` is the server's CPU time per run
  in the same load, the lowest of the rounds.
- `runs_per_s` is the throughput of 32 callers as a share of the bare proxy's.
- `cpu_ms` is the server's CPU time per run with 32 callers; the floor is the proxy's.
- The peer is LiteLLM's proxy, at the same vendor under the same load in the same rounds, if `PEERS`
  names a Python that has it (`_peers.py`). It checks a key as our server does, and stores nothing.
- `p99_over_p50` is the ratio of latencies over a minute at half of that throughput, while workflows
  of 500 nodes run one after the other.
"""

import asyncio
import itertools
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benchmarks._peers import LITELLM_MODEL, find_peer, serve_litellm
from benchmarks._process import percentile, read_cpu_s, spread
from benchmarks._raw_http import make_post, send_load, start_module
from benchmarks._report import report, report_rounds, report_share
from benchmarks._server import open_accounts, serve_toolkit
from benchmarks.store_growth import Durability, measure_commits

ROUNDS, SECONDS, STEADY_S = 5, 3.0, 60.0
CALLERS, NODES = 32, 500
LIMITS = {"added_ms": 1.5, "cpu_ms": 0.9, "p99_over_p50": 5.0}
LEAST_SHARE = 0.22
TRANSACTIONS = 2  # per run: one when it is accepted and sent, one when it completes
COMMITS = 20
CHAT = "/v1/chat/completions"
DURABILITIES: tuple[Durability, ...] = ("normal", "full")
PEER = "LiteLLM"


@dataclass
class Target:
    """A process that takes requests, and its measured values, one per round.

    port: port on this machine.
    pid: id of the process.
    request: request to send, unless every request differs.
    expected: bytes that every response must contain.
    """

    port: int
    pid: int
    request: bytes = b""
    expected: bytes = b""
    latency_ms: list[float] = field(default_factory=list)
    alone_cpu_ms: list[float] = field(default_factory=list)
    per_s: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)

    def make_request(self) -> bytes:
        """Make the next request."""
        return self.request

    async def send(
        self, callers: int, seconds: float, cpu_ms: list[float] | None = None
    ) -> tuple[list[float], float]:
        """Send requests from several concurrent callers for a while.

        callers: number of concurrent callers.
        seconds: duration of the load.
        cpu_ms: list to which the target's CPU time per request is appended.

        Returns:
            the milliseconds of each request, and the number of requests per second.
        """
        before = read_cpu_s(self.pid)
        took_ms, per_s = await send_load(
            self.port, self.make_request, callers, seconds, expected=self.expected
        )
        if cpu_ms is not None:
            cpu_ms.append((read_cpu_s(self.pid) - before) * 1000 / len(took_ms))
        return took_ms, per_s

    async def measure(self, seconds: float) -> None:
        """Measure one caller, and then many."""
        took_ms, _ = await self.send(1, seconds / 2, self.alone_cpu_ms)
        self.latency_ms.append(statistics.median(took_ms))
        _, per_s = await self.send(CALLERS, seconds, self.cpu_ms)
        self.per_s.append(per_s)


class Service(Target):
    """A server of this project; each of its runs has a different input."""

    def __init__(self, url: str, pid: int) -> None:
        super().__init__(int(url.rpartition(":")[2]), pid, expected=b'"completed"')
        self.url = url
        (self.key,) = open_accounts(url, 1, ("openai",))
        self._number = itertools.count(1)

    def make_request(self) -> bytes:
        """Make a request for a run with a new input."""
        fields = {
            "objective": f"Say one line on tea, number {next(self._number)}",
            "max_tokens": 64,
        }
        body = {"name": "llm.generate", "target": "capability", "input": fields}
        return make_post(
            "/v1/runs",
            json.dumps(body).encode(),
            authorization=f"Bearer {self.key}",
            prefer="wait=30",
        )


async def keep_busy(service: Service) -> None:
    """Run workflows one after the other until cancelled; then cancel the last workflow."""
    headers = {"Authorization": f"Bearer {service.key}", "Prefer": "wait=60"}
    nodes = [
        {
            "id": f"n{i}",
            "capability": "llm.generate",
            "input": {"objective": f"Say one line on node {i}", "max_tokens": 64},
            "depends_on": [f"n{i - 10}"] if i >= 10 else [],
        }
        for i in range(NODES)
    ]
    async with httpx.AsyncClient(trust_env=False, timeout=90, headers=headers) as http:
        workflows = f"{service.url}/v1/workflows"
        try:
            while True:
                response = await http.post(workflows, json={"name": "b", "nodes": nodes})
                assert response.is_success, response.text
        finally:  # otherwise a server that is stopping would work on it for a while
            page = (await http.get(workflows, params={"limit": 1})).json()["data"]
            await http.post(f"{workflows}/{page['items'][0]['id']}/cancel")


async def measure_tail(service: Service, per_s: float, seconds: float) -> tuple[float, float]:
    """Measure the median and 99th percentile of latencies in ms, while workflows run."""
    workflows = asyncio.create_task(keep_busy(service))
    took_ms, _ = await send_load(
        service.port,
        service.make_request,
        CALLERS,
        seconds,
        expected=service.expected,
        per_s=per_s,
    )
    if workflows.done():
        await workflows  # to raise its error, because it never ends by itself
    workflows.cancel()
    await asyncio.gather(workflows, return_exceptions=True)
    return statistics.median(took_ms), percentile(took_ms, 0.99)


@dataclass
class Party:
    """All processes that take requests in one run.

    Attributes:
        vendor: vendor that all others call.
        proxy: bare proxy, the floor.
        served: servers of this project, by durability.
        litellm: peer, if it is installed.
    """

    vendor: Target
    proxy: Target
    served: dict[Durability, Service]
    litellm: Target | None

    def __iter__(self) -> Iterator[Target]:
        yield from (self.vendor, self.proxy, *self.served.values())
        if self.litellm is not None:
            yield self.litellm

    def list_added_ms(self, target: Target | None) -> list[float]:
        """List the milliseconds that a target adds to the vendor's own latency, by round."""
        theirs = [] if target is None else target.latency_ms
        return [ms - base for ms, base in zip(theirs, self.vendor.latency_ms, strict=False)]

    def list_shares(self, target: Target | None) -> list[float]:
        """List the requests per second of a target as a share of the proxy's, by round."""
        theirs = [] if target is None else target.per_s
        return [per_s / bare for per_s, bare in zip(theirs, self.proxy.per_s, strict=False)]


@contextmanager
def open_party(folder: Path) -> Iterator[Party]:
    """Start all processes that take requests, until the block ends."""
    with ExitStack() as stack:
        vendor = Target(*stack.enter_context(start_module("benchmarks._fake_vendor")))
        vendor.request = make_post(CHAT, b"{}")
        url = f"http://127.0.0.1:{vendor.port}"
        proxy = Target(*stack.enter_context(start_module("benchmarks._bare_proxy", url + CHAT)))
        proxy.request = make_post("/v1/runs", b"{}")
        urls = {("openai", "api"): f"{url}/v1"}
        starting = []
        for durability in DURABILITIES:
            data_dir = folder / durability / "data"
            data_dir.parent.mkdir()
            starting.append(serve_toolkit(data_dir, urls, durability=durability))
        with ThreadPoolExecutor() as threads:  # because each waits until its server is ready
            started = list(threads.map(stack.enter_context, starting))
        served = {
            durability: Service(url, pid)
            for durability, (url, pid) in zip(DURABILITIES, started, strict=True)
        }
        litellm = None
        if python := find_peer("litellm"):
            port, pid, key = stack.enter_context(serve_litellm(python, folder, f"{url}/v1"))
            message = {"role": "user", "content": "Say one line on tea"}
            body = {"model": LITELLM_MODEL, "messages": [message], "max_tokens": 64}
            post = make_post(CHAT, json.dumps(body).encode(), authorization=f"Bearer {key}")
            litellm = Target(port, pid, post, b'"choices"')
        yield Party(vendor, proxy, served, litellm)


def report_results(party: Party, syncs_ms: list[float]) -> bool:
    """Report the results of all rounds; returns True if all limits are kept.

    Args:
        party: all processes that took requests.
        syncs_ms: the disk's milliseconds for the syncs of a run, by round.
    """
    proxy, service, peer = party.proxy, party.served["normal"], party.litellm
    are_kept = True
    for durability, server in party.served.items():
        syncs = syncs_ms if durability == "full" else [0.0] * len(syncs_ms)
        are_kept &= report_rounds(
            f"gateway.added_ms.{durability}",
            party.list_added_ms(server),
            "ms",
            floors=[
                added + sync for added, sync in zip(party.list_added_ms(proxy), syncs, strict=True)
            ],
            limit=round(LIMITS["added_ms"] + statistics.median(syncs), 4),
            peers=party.list_added_ms(peer),
            peer=PEER,
            cpu_ms=round(min(server.alone_cpu_ms), 4),
            proxy_cpu_ms=round(min(proxy.alone_cpu_ms), 4),
        )
    shares, theirs = party.list_shares(service), party.list_shares(peer)
    are_kept &= report_share(
        "gateway.runs_per_s",
        statistics.median(shares),
        at_least=LEAST_SHARE,
        per_s=round(statistics.median(service.per_s)),
        proxy_per_s=round(statistics.median(proxy.per_s)),
        callers=CALLERS,
        most_share=round(max(shares), 4),
        **({"peer": round(statistics.median(theirs), 4), "peer_name": PEER} if theirs else {}),
        **spread(shares),
    )
    are_kept &= report_rounds(
        "gateway.cpu_ms",
        service.cpu_ms,
        "ms/run",
        floors=proxy.cpu_ms,
        limit=LIMITS["cpu_ms"],
        peers=[] if peer is None else peer.cpu_ms,
        peer=PEER,
        callers=CALLERS,
    )
    return are_kept


async def main(rounds: int = ROUNDS, seconds: float = SECONDS, steady_s: float = STEADY_S) -> int:
    """Run the benchmark; the exit code is 1 if a figure misses its limit."""
    with tempfile.TemporaryDirectory() as name, open_party(Path(name)) as party:
        service = party.served["normal"]
        for target in party:  # so that imports are not measured
            await target.send(4, seconds / 3)
        syncs_ms = []
        for _ in range(rounds):
            for target in party:
                await target.measure(seconds)
            with tempfile.TemporaryDirectory(dir=name) as disk:
                sync_s = statistics.median(measure_commits(Path(disk), "full", COMMITS))
            syncs_ms.append(1000 * TRANSACTIONS * sync_s)
        are_kept = report_results(party, syncs_ms)
        per_s = statistics.median(service.per_s) / 2
        p50, p99 = await measure_tail(service, per_s, steady_s)
        are_kept &= report(
            "gateway.p99_over_p50", p99 / p50, "x the median", floor=1.0,
            limit=LIMITS["p99_over_p50"], p50_ms=round(p50, 2), p99_ms=round(p99, 2),
            per_s=round(per_s),
        )  # fmt: skip
    return 0 if are_kept else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
