"""What `toolkit serve` adds to a real call: a run of `llm.generate` at a vendor without latency.

Run `python -m benchmarks.gateway`. The server, the vendor (`_fake_vendor.py`), a bare proxy
(`_bare_proxy.py`) and the callers, who share this process, are four processes on the same cores.
Every run is another one, is waited for (`Prefer: wait`) and is checked to have completed. Figures
are medians of rounds, in each of which everything is measured in turns.

- `added_ms` is the median latency of one caller over that of the same caller at the vendor itself,
  with `durability` normal and full; the floor is what the bare proxy adds, and of full what the
  disk takes for the syncs of a run. Its `cpu_ms` is the CPU time that the server takes meanwhile
  for a run, the least of the rounds.
- `runs_per_s` is the throughput of 32 callers as a share of the bare proxy's.
- `cpu_ms` is the CPU time that the server takes for a run at 32 callers; the floor is the proxy's.
- The peer is LiteLLM's proxy, at the same vendor under the same load in the same rounds, where
  `PEERS` names a Python that has it (`_peers.py`). It checks a key as ours does, and keeps nothing.
- `p99_over_p50` is of the latencies of a minute at half of that throughput, while one workflow of
  500 nodes after the other runs beside.
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
TRANSACTIONS = 2  # of a run: accepted and about to be called, completed
COMMITS = 20
CHAT = "/v1/chat/completions"
DURABILITIES: tuple[Durability, ...] = ("normal", "full")
PEER = "LiteLLM"


@dataclass
class Target:
    """Something that takes requests, and what was found of it, a value a round.

    Attributes:
        port: of this machine.
        pid: of its process.
        request: what is sent to it, unless each request is another one.
        expected: what every answer has to contain.
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
        """Send requests by so many callers for a while.

        Args:
            callers: how many send at once.
            seconds: for how long.
            cpu_ms: is added the CPU time that the target took for a request.

        Returns:
            the milliseconds that each took, and how many there were a second.
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
    """A server of ours, each of whose runs is another one."""

    def __init__(self, url: str, pid: int) -> None:
        super().__init__(int(url.rpartition(":")[2]), pid, expected=b'"completed"')
        self.url = url
        (self.key,) = open_accounts(url, 1, ("openai",))
        self._number = itertools.count(1)

    def make_request(self) -> bytes:
        """Make a request for a run like no other."""
        given = {"objective": f"Say one line on tea, number {next(self._number)}", "max_tokens": 64}
        body = {"name": "llm.generate", "target": "capability", "input": given}
        return make_post(
            "/v1/runs",
            json.dumps(body).encode(),
            authorization=f"Bearer {self.key}",
            prefer="wait=30",
        )


async def keep_busy(service: Service) -> None:
    """Have one workflow after the other run at the server, until cancelled, as the last is then."""
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
                made = await http.post(workflows, json={"name": "b", "nodes": nodes})
                assert made.is_success, made.text
        finally:  # a server that is told to stop would go on with it for a while
            page = (await http.get(workflows, params={"limit": 1})).json()["data"]
            await http.post(f"{workflows}/{page['items'][0]['id']}/cancel")


async def measure_tail(service: Service, per_s: float, seconds: float) -> tuple[float, float]:
    """Measure the median and the 99th percentile of latencies at a rate, in ms, under way."""
    beside = asyncio.create_task(keep_busy(service))
    took_ms, _ = await send_load(
        service.port,
        service.make_request,
        CALLERS,
        seconds,
        expected=service.expected,
        per_s=per_s,
    )
    if beside.done():
        await beside  # which is not to end
    beside.cancel()
    await asyncio.gather(beside, return_exceptions=True)
    return statistics.median(took_ms), percentile(took_ms, 0.99)


@dataclass
class Party:
    """All that take requests in one run.

    Attributes:
        vendor: whom all others ask.
        proxy: the floor.
        served: servers of ours, by their durability.
        litellm: the peer, where it is installed.
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
        """List what a target added to the vendor's own latency, by round."""
        theirs = [] if target is None else target.latency_ms
        return [ms - base for ms, base in zip(theirs, self.vendor.latency_ms, strict=False)]

    def list_shares(self, target: Target | None) -> list[float]:
        """List which share of the proxy's requests a second a target had, by round."""
        theirs = [] if target is None else target.per_s
        return [per_s / bare for per_s, bare in zip(theirs, self.proxy.per_s, strict=False)]


@contextmanager
def open_party(folder: Path) -> Iterator[Party]:
    """Start all that take requests, each a process of its own, until the block ends."""
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
        with ThreadPoolExecutor() as threads:  # as each waits until its server is there
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


def tell(party: Party, syncs_ms: list[float]) -> bool:
    """Report what every round found; true if all limits are kept.

    Args:
        party: all that took requests.
        syncs_ms: what the disk took for the syncs of a run, by round.
    """
    proxy, service, peer = party.proxy, party.served["normal"], party.litellm
    kept = True
    for durability, each in party.served.items():
        syncs = syncs_ms if durability == "full" else [0.0] * len(syncs_ms)
        kept &= report_rounds(
            f"gateway.added_ms.{durability}",
            party.list_added_ms(each),
            "ms",
            floors=[
                added + sync for added, sync in zip(party.list_added_ms(proxy), syncs, strict=True)
            ],
            limit=round(LIMITS["added_ms"] + statistics.median(syncs), 4),
            peers=party.list_added_ms(peer),
            peer=PEER,
            cpu_ms=round(min(each.alone_cpu_ms), 4),
            proxy_cpu_ms=round(min(proxy.alone_cpu_ms), 4),
        )
    shares, theirs = party.list_shares(service), party.list_shares(peer)
    kept &= report_share(
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
    kept &= report_rounds(
        "gateway.cpu_ms",
        service.cpu_ms,
        "ms/run",
        floors=proxy.cpu_ms,
        limit=LIMITS["cpu_ms"],
        peers=[] if peer is None else peer.cpu_ms,
        peer=PEER,
        callers=CALLERS,
    )
    return kept


async def main(rounds: int = ROUNDS, seconds: float = SECONDS, steady_s: float = STEADY_S) -> int:
    """Measure; exit code 1 if a limit is not kept."""
    with tempfile.TemporaryDirectory() as name, open_party(Path(name)) as party:
        service = party.served["normal"]
        for target in party:  # what is done first is imported first
            await target.send(4, seconds / 3)
        syncs_ms = []
        for _ in range(rounds):
            for target in party:
                await target.measure(seconds)
            with tempfile.TemporaryDirectory(dir=name) as disk:
                sync_s = statistics.median(measure_commits(Path(disk), "full", COMMITS))
            syncs_ms.append(1000 * TRANSACTIONS * sync_s)
        kept = tell(party, syncs_ms)
        per_s = statistics.median(service.per_s) / 2
        p50, p99 = await measure_tail(service, per_s, steady_s)
        kept &= report(
            "gateway.p99_over_p50", p99 / p50, "x the median", floor=1.0,
            limit=LIMITS["p99_over_p50"], p50_ms=round(p50, 2), p99_ms=round(p99, 2),
            per_s=round(per_s),
        )  # fmt: skip
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
