"""How much later a text is seen than a vendor writes it: from its socket to a reader of the stream.

Run `python -m benchmarks.streaming`. The vendor (`_streaming_vendor.py`) sends its first piece
after 200 ms, and then one each 20 ms; every piece is the time at which it was sent, so that it can
be compared with when it is read. The floor is the same reader at the vendor itself. Figures are
medians of rounds, in each of which both are measured.

- `first_ms` is the delay of the first piece.
- `piece_ms` is the delay that 95 of 100 pieces are below.
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
    """Read a stream; yield by how many ms each piece comes later than it was sent."""
    held = ""
    for line in response.iter_lines():
        now = time.monotonic()
        name, _, data = line.partition(": ")
        if name != "data":
            continue
        said = json.loads(data)
        text = said.get("text", "") if is_ours else said["choices"][0]["delta"].get("content", "")
        stamps, held = read_stamps(held + (text or ""))
        for sent in stamps:
            yield (now - sent) * 1000


def measure_vendor(http: httpx.Client, url: str) -> list[float]:
    """Measure the vendor itself."""
    with http.stream("POST", f"{url}/v1/chat/completions", content=b"{}") as response:
        return list(read_delays(response, is_ours=False))


def measure_service(http: httpx.Client, url: str, number: int) -> list[float]:
    """Measure a run of ours, followed by its stream of events."""
    given = {"objective": f"Say one line on tea, number {number}", "max_tokens": 64}
    body = {"name": "llm.generate", "input": given}
    run = http.post(f"{url}/v1/runs", json=body, headers={"Prefer": "stream"}).json()["data"]
    accept = {"Accept": "text/event-stream"}
    with http.stream("GET", f"{url}/v1/runs/{run['id']}/events", headers=accept) as response:
        return list(read_delays(response, is_ours=True))


def main(rounds: int = ROUNDS, runs: int = RUNS) -> int:
    """Measure; exit code 1 if a limit is not kept."""
    found: dict[str, list[float]] = {name: [] for name in ("first", "piece", "base", "base_piece")}
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
        measure_service(http, url, 0)  # what is done first is imported first
        for turn in range(rounds):
            direct = [measure_vendor(http, f"http://127.0.0.1:{port}") for _ in range(runs)]
            ours = [measure_service(http, url, 1 + turn * runs + i) for i in range(runs)]
            assert all(len(one) == PIECES for one in (*direct, *ours))
            found["base"].append(statistics.median(one[0] for one in direct))
            found["first"].append(statistics.median(one[0] for one in ours))
            found["base_piece"].append(percentile([x for one in direct for x in one], 0.95))
            found["piece"].append(percentile([x for one in ours for x in one], 0.95))
    kept = report_rounds(
        "streaming.first_ms", found["first"], "ms", floors=found["base"], limit=LIMIT_MS
    )
    kept &= report_rounds(
        "streaming.piece_ms", found["piece"], "ms at p95", floors=found["base_piece"],
        limit=LIMIT_MS,
    )  # fmt: skip
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
