"""What `toolkit serve` adds to a real call: a run of `llm.generate` at a vendor without latency.

Run `python -m benchmarks.gateway`. The server, the vendor (`_fake_vendor.py`), a bare proxy
(`_bare_proxy.py`) and the callers, who share this process, are four processes on the same cores.
Every run is another one, is waited for (`Prefer: wait`) and is checked to have completed. Figures
are medians of rounds, in each of which everything is measured in turns.

- `added_ms` is the median latency of one caller over that of the same caller at the vendor itself,
  with `durability` normal and full; the floor is what the bare proxy adds, and of full what the
  disk takes for the syncs of a run.
- `runs_per_s` is the throughput of 32 callers as a share of the bare proxy's.
- `cpu_ms` is the CPU time that the server takes for a run at 32 callers; the floor is the proxy's.
- `p99_over_p50` is of the latencies of a minute at half of that throughput, while one workflow of
  500 nodes after the other runs beside.
"""

import asyncio
import itertools
import json
import statistics
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benchmarks._process import percentile, read_cpu_s, spread
from benchmarks._raw_http import make_post, send_load, start_module
from benchmarks._report import report, report_share
from benchmarks._server import open_accounts, serve_toolkit
from benchmarks.store_growth import Durability, measure_commits

ROUNDS, SECONDS, STEADY_S = 5, 3.0, 60.0
CALLERS, NODES = 32, 500
LIMITS = {"added_ms": 1.5, "cpu_ms": 0.9, "p99_over_p50": 5.0}
LEAST_SHARE = 0.22
TRANSACTIONS = 3  # of a run: accepted, about to be called, completed
CHAT = "/v1/chat/completions"


@dataclass
class Target:
    """Something that takes requests, and what was found of it, a value a round.

    Attributes:
        port: of this machine.
        pid: of its process.
    """

    port: int
    pid: int
    request: bytes = b""
    latency_ms: list[float] = field(default_factory=list)
    per_s: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)

    def make_request(self) -> bytes:
        """Make the next request."""
        return self.request

    async def measure(self, seconds: float, expected: bytes = b"") -> None:
        """Measure one caller, and then many."""
        took_ms, _ = await send_load(
            self.port, self.make_request, 1, seconds / 2, expected=expected
        )
        self.latency_ms.append(statistics.median(took_ms))
        before = read_cpu_s(self.pid)
        took_ms, per_s = await send_load(
            self.port, self.make_request, CALLERS, seconds, expected=expected
        )
        self.cpu_ms.append((read_cpu_s(self.pid) - before) * 1000 / len(took_ms))
        self.per_s.append(per_s)


class Service(Target):
    """A server of ours, each of whose runs is another one."""

    def __init__(self, url: str, pid: int) -> None:
        super().__init__(int(url.rpartition(":")[2]), pid)
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
    """Have one workflow after the other run at the server, until cancelled."""
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
        while True:
            made = await http.post(
                f"{service.url}/v1/workflows", json={"name": "b", "nodes": nodes}
            )
            assert made.is_success, made.text


async def measure_tail(service: Service, per_s: float, seconds: float) -> tuple[float, float]:
    """Measure the median and the 99th percentile of latencies at a rate, in ms, under way."""
    beside = asyncio.create_task(keep_busy(service))
    took_ms, _ = await send_load(
        service.port, service.make_request, CALLERS, seconds, expected=b'"completed"', per_s=per_s
    )
    if beside.done():
        await beside  # which is not to end
    beside.cancel()
    await asyncio.gather(beside, return_exceptions=True)
    return statistics.median(took_ms), percentile(took_ms, 0.99)


def tell(vendor: Target, proxy: Target, served: dict[Durability, Service], sync_ms: float) -> bool:
    """Report what every round found; true if all limits are kept."""
    middle = statistics.median
    base, service = middle(vendor.latency_ms), served["normal"]
    kept = True
    for durability, each in served.items():
        added = [one - base for one in each.latency_ms]
        syncs = TRANSACTIONS * sync_ms if durability == "full" else 0.0
        kept &= report(
            f"gateway.added_ms.{durability}",
            middle(added),
            "ms",
            floor=middle(proxy.latency_ms) - base + syncs,
            limit=round(LIMITS["added_ms"] + syncs, 4),
            **spread(added),
        )
    shares = [ours / bare for ours, bare in zip(service.per_s, proxy.per_s, strict=True)]
    kept &= report_share(
        "gateway.runs_per_s",
        middle(shares),
        at_least=LEAST_SHARE,
        per_s=round(middle(service.per_s)),
        proxy_per_s=round(middle(proxy.per_s)),
        callers=CALLERS,
        **spread(shares),
    )
    kept &= report(
        "gateway.cpu_ms",
        middle(service.cpu_ms),
        "ms/run",
        floor=middle(proxy.cpu_ms),
        limit=LIMITS["cpu_ms"],
        callers=CALLERS,
        **spread(service.cpu_ms),
    )
    return kept


async def main(rounds: int = ROUNDS, seconds: float = SECONDS, steady_s: float = STEADY_S) -> int:
    """Measure; exit code 1 if a limit is not kept."""
    with (
        tempfile.TemporaryDirectory() as name,
        start_module("benchmarks._fake_vendor") as (vendor_port, vendor_pid),
        start_module("benchmarks._bare_proxy", f"http://127.0.0.1:{vendor_port}{CHAT}") as bare,
    ):
        urls = {("openai", "api"): f"http://127.0.0.1:{vendor_port}/v1"}
        folders = {each: Path(name, each) for each in ("normal", "full")}
        for folder in folders.values():
            folder.mkdir()
        with (
            serve_toolkit(folders["normal"] / "data", urls, durability="normal") as normal,
            serve_toolkit(folders["full"] / "data", urls, durability="full") as full,
        ):
            vendor = Target(vendor_port, vendor_pid, make_post(CHAT, b"{}"))
            proxy = Target(*bare, make_post("/v1/runs", b"{}"))
            served: dict[Durability, Service] = {"normal": Service(*normal), "full": Service(*full)}
            done = b'"completed"'
            for each in served.values():  # what is done first is imported first
                await send_load(each.port, each.make_request, 4, seconds / 3, expected=done)
            for _ in range(rounds):
                for target in (vendor, proxy):
                    await target.measure(seconds)
                for service in served.values():
                    await service.measure(seconds, done)
            syncs = measure_commits(Path(name), "full", 50)
            kept = tell(vendor, proxy, served, 1000 * statistics.median(syncs))
            per_s = statistics.median(served["normal"].per_s) / 2
            p50, p99 = await measure_tail(served["normal"], per_s, steady_s)
        kept &= report(
            "gateway.p99_over_p50", p99 / p50, "x the median", floor=1.0,
            limit=LIMITS["p99_over_p50"], p50_ms=round(p50, 2), p99_ms=round(p99, 2),
            per_s=round(per_s),
        )  # fmt: skip
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
