"""The delay of a streamed text: from the vendor's socket to a reader of the stream.

Run `python -m benchmarks.streaming`. The vendor (`_streaming_vendor.py`) sends its first piece
after 200 ms, and then a piece every 20 ms; every piece is the time at which it was sent, so that it
can be compared with the time at which it is read. The floor is the same reader at the vendor
itself. Figures are medians of rounds, each of which measures both.

- `first_ms` is the delay of the first piece.
- `piece_ms` is the 95th percentile of the delays of pieces.
"""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from benchmarks._process import percentile
from benchmarks._raw_http import start_module
from benchmarks._report import report_rounds
from benchmarks._server import open_accounts, serve_toolkit
from benchmarks._streaming_vendor import PIECES, read_stamps

ROUNDS, RUNS = 5, 4
LIMIT_MS = 10.0


def read_delays(response: httpx.Response, is_ours: bool) -> Iterator[float]:
    """Read a stream; yield the delay in ms of each piece after it was sent."""
    remainder = ""
    for line in response.iter_lines():
        now = time.monotonic()
        name, _, data = line.partition(": ")
        if name != "data":
            continue
        event = json.loads(data)
        text = event.get("text", "") if is_ours else event["choices"][0]["delta"].get("content", "")
        stamps, remainder = read_stamps(remainder + (text or ""))
        for sent in stamps:
            yield (now - sent) * 1000


def measure_vendor(http: httpx.Client, url: str) -> list[float]:
    """Measure the vendor itself."""
    with http.stream("POST", f"{url}/v1/chat/completions", content=b"{}") as response:
        return list(read_delays(response, is_ours=False))


def measure_service(http: httpx.Client, url: str, number: int) -> list[float]:
    """Measure a run of this toolkit, followed by its stream of events."""
    fields = {"objective": f"Say one line on tea, number {number}", "max_tokens": 64}
    body = {"name": "llm.generate", "input": fields}
    run = http.post(f"{url}/v1/runs", json=body, headers={"Prefer": "stream"}).json()["data"]
    accept = {"Accept": "text/event-stream"}
    with http.stream("GET", f"{url}/v1/runs/{run['id']}/events", headers=accept) as response:
        return list(read_delays(response, is_ours=True))


def main(rounds: int = ROUNDS, runs: int = RUNS) -> int:
    """Run the benchmark; the exit code is 1 if a figure misses its limit."""
    results: dict[str, list[float]] = {
        name: [] for name in ("first", "piece", "base", "base_piece")
    }
    with (
        tempfile.TemporaryDirectory() as name,
        start_module("benchmarks._streaming_vendor") as (port, _),
        serve_toolkit(Path(name, "data"), {("openai", "api"): f"http://127.0.0.1:{port}/v1"}) as (
            url,
            _,
        ),
        httpx.Client(trust_env=False, timeout=30) as http,
    ):
        (key,) = open_accounts(url, 1, ("openai",))
        http.headers["Authorization"] = f"Bearer {key}"
        measure_service(http, url, 0)  # so that imports are not measured
        for turn in range(rounds):
            direct = [measure_vendor(http, f"http://127.0.0.1:{port}") for _ in range(runs)]
            ours = [measure_service(http, url, 1 + turn * runs + i) for i in range(runs)]
            assert all(len(delays) == PIECES for delays in (*direct, *ours))
            results["base"].append(statistics.median(delays[0] for delays in direct))
            results["first"].append(statistics.median(delays[0] for delays in ours))
            results["base_piece"].append(percentile([x for delays in direct for x in delays], 0.95))
            results["piece"].append(percentile([x for delays in ours for x in delays], 0.95))
    are_kept = report_rounds(
        "streaming.first_ms", results["first"], "ms", floors=results["base"], limit=LIMIT_MS
    )
    are_kept &= report_rounds(
        "streaming.piece_ms", results["piece"], "ms at p95", floors=results["base_piece"],
        limit=LIMIT_MS,
    )  # fmt: skip
    return 0 if are_kept else 1


if __name__ == "__main__":
    sys.exit(main())
