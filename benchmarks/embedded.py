"""CPU time of the notebook's process for a real call, threads included.

Run `python -m benchmarks.embedded`. The vendor (`_fake_vendor.py`) has no latency and is a separate
process. The figures of the sandbox have the simulated vendors in this process; their floor is the
time of the same vendors called by httpx alone. Medians of rounds.

- `cpu_ms.sync` is `client.runs.create(…).wait()` in sequence; `cpu_ms.async` is 32 runs at once by
  the async client. The floor is a POST to the same vendor by httpx, one and 32 at once.
- `node_cpu_ms.*` is a node of a workflow of 1,000 texts in the sandbox, wide and in layers;
  `without_sandbox` is the same less its floor.
"""

import asyncio
import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx

from benchmarks._cloud import connect_account
from benchmarks._noop import run
from benchmarks._raw_http import start_module
from benchmarks._report import report_rounds
from benchmarks.dag_overhead import shapes
from benchmarks.large_workflow import fan
from toolkit import AsyncClient, Client
from toolkit.assembly import open_engine
from toolkit.contract.workflows import NodeCreate, WorkflowCreate
from toolkit.engine import Registry
from toolkit.sandbox import SANDBOX_KEYS, VENDOR_PATHS, create_app
from toolkit.settings import Settings, VendorSettings

ROUNDS, RUNS, AT_ONCE, NODES = 5, 200, 32, 1_000
LIMITS = {"sync": 1.5, "async": 1.0, "wide": 1.0, "layered": 1.2}
KEY = "OPENAI_API_KEY"
_NUMBERS = itertools.count(1)


def make_input() -> dict[str, object]:
    """Make an input that differs from all made before."""
    return {"objective": f"Say one line on tea, number {next(_NUMBERS)}", "max_tokens": 64}


def open_settings(vendor_port: int) -> Settings:
    """Make settings that have OpenAI at a port of this machine."""
    url = f"http://127.0.0.1:{vendor_port}/v1"
    return Settings(vendors={"openai": VendorSettings(base_urls={"api": url})})


def measure_cpu_ms(work: Callable[[int], None], count: int) -> float:
    """Measure the CPU time of this process per item, in ms."""
    began = time.process_time()
    work(count)
    return (time.process_time() - began) * 1000 / count


def make_sync_works(
    client: Client, bare: httpx.Client, vendor_url: str
) -> dict[str, Callable[[int], None]]:
    """Return functions that make runs and bare requests to the vendor, one after the other."""

    def make_runs(count: int) -> None:
        for _ in range(count):
            run = client.runs.create("llm.generate", make_input())
            assert run.wait(progress=False).output["text"]

    def post(count: int) -> None:
        for _ in range(count):
            assert bare.post(vendor_url, json=make_input()).json()["choices"]

    return {"run": make_runs, "post": post}


async def do_at_once(work: Callable[[], Awaitable[object]], count: int) -> None:
    """Run a coroutine function `count` times, `AT_ONCE` at once."""
    numbers = iter(range(count))

    async def take_turns() -> None:
        for _ in numbers:
            await work()

    await asyncio.gather(*(take_turns() for _ in range(AT_ONCE)))


def measure_sync(folder: Path, vendor_port: int, vendor_url: str, rounds: int, runs: int) -> bool:
    """Measure runs by the sync client; returns True if the limit is kept."""
    with (
        Client.local(folder, settings=open_settings(vendor_port)) as client,
        httpx.Client(trust_env=False) as bare,
    ):
        client.connections.create("openai", "environment", KEY)
        works = make_sync_works(client, bare, vendor_url)
        results: dict[str, list[float]] = {name: [] for name in works}
        for work in works.values():
            work(runs // 4 + 1)  # so that imports are not measured
        for _ in range(rounds):
            for name, work in works.items():
                results[name].append(measure_cpu_ms(work, runs))
    return report_rounds(
        "embedded.cpu_ms.sync", results["run"], "ms", floors=results["post"], limit=LIMITS["sync"]
    )


async def measure_async(
    folder: Path, vendor_port: int, vendor_url: str, rounds: int, runs: int
) -> bool:
    """Measure runs by the async client, many at once; returns True if the limit is kept."""
    results: dict[str, list[float]] = {"run": [], "post": []}
    async with (
        AsyncClient.local(folder, settings=open_settings(vendor_port)) as client,
        httpx.AsyncClient(trust_env=False) as bare,
    ):
        await client.connections.create("openai", "environment", KEY)

        async def make_run() -> None:
            run = await client.runs.create("llm.generate", make_input())
            assert (await run.wait(progress=False)).output["text"]

        async def post() -> None:
            assert (await bare.post(vendor_url, json=make_input())).json()["choices"]

        works = {"run": make_run, "post": post}
        for work in works.values():
            await do_at_once(work, runs // 4 + 1)
        for _ in range(rounds):
            for name, work in works.items():
                began = time.process_time()
                await do_at_once(work, runs)
                results[name].append((time.process_time() - began) * 1000 / runs)
    return report_rounds(
        "embedded.cpu_ms.async", results["run"], "ms", floors=results["post"],
        limit=LIMITS["async"], at_once=AT_ONCE,
    )  # fmt: skip


async def measure_cloud_ms(calls: int) -> float:
    """Measure the CPU time of a text of the simulated vendors, called by httpx alone, in ms."""
    transport = httpx.ASGITransport(create_app())
    headers = {"Authorization": f"Bearer {SANDBOX_KEYS[KEY]}"}
    url = f"http://sandbox.test{VENDOR_PATHS['openai']}/v1/chat/completions"
    model = Registry.load().vendors["openai"].models[0].id
    began = time.process_time()
    async with httpx.AsyncClient(transport=transport, headers=headers) as http:
        for _ in range(calls):
            message = {"role": "user", "content": str(make_input()["objective"])}
            body = {"model": model, "messages": [message]}
            answer = await http.post(url, json=body)
            assert answer.is_success, answer.text
    return (time.process_time() - began) * 1000 / calls


async def measure_nodes(name: str, edges: dict[str, list[str]], rounds: int) -> bool:
    """Measure a workflow of texts in the sandbox; returns True if the limit is kept."""
    nodes = [
        NodeCreate(id=node, capability="llm.generate", input=make_input(), depends_on=upstream)
        for node, upstream in edges.items()
    ]
    request = WorkflowCreate(name="benchmark", nodes=nodes)
    results = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            engine = await open_engine(Settings(data_dir=Path(folder), sandbox=True))
            try:
                context = await connect_account(engine, "openai")
                _, took_s = await run(engine, context, request, time.process_time)
                results.append(took_s * 1000 / len(nodes))
            finally:
                await engine.close(0)
    cloud = [await measure_cloud_ms(100) for _ in range(rounds)]
    alone = statistics.median(cloud)
    difference = statistics.median(results) - alone
    return report_rounds(
        f"embedded.node_cpu_ms.{name}", results, "ms/node", floors=cloud, limit=LIMITS[name],
        without_sandbox=round(difference, 4),
    )  # fmt: skip


def main(rounds: int = ROUNDS, runs: int = RUNS, nodes: int = NODES) -> int:
    """Run the benchmark; the exit code is 1 if a figure misses its limit."""
    os.environ.setdefault(KEY, SANDBOX_KEYS[KEY])
    with (
        tempfile.TemporaryDirectory() as name,
        start_module("benchmarks._fake_vendor") as (port, _),
    ):
        url = f"http://127.0.0.1:{port}/v1/chat/completions"
        are_kept = measure_sync(Path(name, "sync"), port, url, rounds, runs)
        are_kept &= asyncio.run(measure_async(Path(name, "async"), port, url, rounds, runs))
    shaped = {"wide": fan(nodes), "layered": shapes(nodes)["layered"]}
    for shape, edges in shaped.items():
        are_kept &= asyncio.run(measure_nodes(shape, edges, rounds))
    return 0 if are_kept else 1


if __name__ == "__main__":
    sys.exit(main())
