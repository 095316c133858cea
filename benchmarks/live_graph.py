"""A graph of 1,000 nodes: how soon it is drawn, and what the kernel spends while it is live.

Run `python -m benchmarks.live_graph`. A chromium draws; without one, only the kernel is measured.

- `drawn` is from the record to the picture: the layout in Python, then the script in the browser
  until the frame after it. The slower of two shapes: a chain, whose nodes are a box each, and
  layers of 20, each a group.
- `opened` is the same of the layers once all groups are opened, so that 1,000 boxes and 2,000 lines
  are there. The floor of both is 1,000 plain rectangles in the same browser.
- `kernel` is the share of a core that a notebook's kernel takes over a minute, in which ten nodes a
  second change (ten chains of 100, each node a second long, at a server); its floor is a kernel
  that does nothing.
"""

import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager

from benchmarks._browser import find_browser, open_page
from benchmarks._cloud import serve_cloud
from benchmarks._process import read_cpu_s
from benchmarks._report import report, report_rounds
from benchmarks._server import find_cloud_urls, open_accounts, serve_toolkit
from toolkit.notebook.graph_widget import STATIC, layout_graph, load_script

NODES, LAYER, ROUNDS = 1_000, 20, 5
LIMIT_S, LIMIT_SHARE = 1.0, 0.05
WARM_S, MEASURE_S, REPLY_S = 5.0, 60.0, 60.0
CHAINS = 10  # of nodes that take a second each: so many nodes change in a second
PAGE = """<!doctype html><meta charset="utf-8"><style>%(style)s</style><div id="el"></div>
<script type="module">
const script = new Blob([%(script)s], { type: "text/javascript" });
const widget = (await import(URL.createObjectURL(script))).default;
const frame = () => new Promise((go) => requestAnimationFrame(() => setTimeout(go)));
const took = async (act) => {
  const began = performance.now();
  act();
  await frame();
  return (performance.now() - began) / 1000;
};
const plain = (el) => {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (let i = 0; i < %(nodes)d; i += 1) {
    const box = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const place = { x: (i %% 40) * 20, y: Math.floor(i / 40) * 10, width: 15, height: 8 };
    for (const [name, value] of Object.entries(place)) box.setAttribute(name, value);
    svg.appendChild(box);
  }
  el.appendChild(svg);
};
for (let round = 0; round <= %(rounds)d; round += 1) {
  for (const [name, graph] of Object.entries(%(graphs)s)) {
    const el = document.getElementById("el");
    el.replaceChildren();
    const floor = await took(() => plain(el));
    el.replaceChildren();
    const traits = { graph, drawn_states: {}, changed_states: {}, selected: "", label: "" };
    const model = { get: (key) => traits[key], set() {}, save_changes() {}, on() {}, off() {} };
    await frame();
    const told = { round, name, floor, drawn: await took(() => widget.render({ model, el })) };
    const open = [...el.querySelectorAll("button")].find((one) => one.textContent === "Open all");
    if (open) told.opened = await took(() => open.click());
    told.boxes = el.querySelectorAll("g[data-node]").length;
    await fetch("/", { method: "POST", body: JSON.stringify(told) });
  }
}
</script>"""
SUBMIT = """
from toolkit import Client, Workflow
client = Client({url!r}, {key!r})
wf = Workflow("large")
for chain in range({chains}):
    before = None
    for place in range({length}):
        before = wf.add(f"n{{chain}}-{{place}}", "llm.generate@1", objective="Say one line",
                        max_tokens=32, depends_on=[before] if before else [])
submitted = client.workflows.submit(wf)
"""
SHOW = """
from toolkit.notebook import WorkflowGraph
graph = WorkflowGraph(submitted)
graph
"""
COUNT = "sum(one['status'] == 'completed' for one in graph.view.states.values())"


def make_layers() -> dict[str, list[str]]:
    """Make the dependencies of a layered graph: each node on two of the layer before."""
    chance = random.Random(1)
    return {
        f"n{i}": [f"n{i - i % LAYER - LAYER + j}" for j in chance.sample(range(LAYER), 2)]
        if i >= LAYER
        else []
        for i in range(NODES)
    }


def lay_out(depends_on: Mapping[str, Sequence[str]]) -> tuple[dict[str, object], float]:
    """Lay a graph out; return it with the seconds that took."""
    began = time.perf_counter()
    graph = layout_graph(dict.fromkeys(depends_on, "llm.generate@1"), depends_on)
    json.dumps(graph)
    return graph, time.perf_counter() - began


def measure_drawing(browser: str, rounds: int) -> bool:
    """Measure how soon graphs are drawn; tell if the limits are kept."""
    chain = {f"n{i}": [f"n{i - 1}"] if i else [] for i in range(NODES)}
    laid = {"chain": lay_out(chain), "layers": lay_out(make_layers())}
    page = PAGE % {
        "style": (STATIC / "graph" / "graph.css").read_text(encoding="utf-8"),
        "script": json.dumps(load_script()).replace("</", "<\\/"),
        "graphs": json.dumps({name: graph for name, (graph, _) in laid.items()}),
        "rounds": rounds,
        "nodes": NODES,
    }
    drawn: dict[str, list[float]] = {"chain": [], "layers": []}
    opened, floors = [], []
    with open_page(browser, page) as told:
        for _ in range(2 * (rounds + 1)):
            said = json.loads(told.get(timeout=REPLY_S))
            assert said["boxes"] == NODES
            if not said["round"]:
                continue  # what is done first is compiled first
            name = said["name"]
            drawn[name].append(laid[name][1] + said["drawn"])
            if name == "layers":
                floors.append(said["floor"])
                opened.append(laid[name][1] + said["drawn"] + said["opened"])
    slower = max(drawn.values(), key=statistics.median)
    kept = report_rounds("live_graph.drawn", slower, "s", floors=floors, limit=LIMIT_S)
    return report_rounds("live_graph.opened", opened, "s", floors=floors, limit=LIMIT_S) and kept


@contextmanager
def start_kernel() -> Iterator[tuple[BlockingKernelClient, int]]:
    """Start a notebook's kernel; yield a client of it and its process id."""
    manager = KernelManager(transport="ipc")
    manager.start_kernel()
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=REPLY_S)
        yield client, manager.provisioner.pid
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def run_cell(client: BlockingKernelClient, code: str) -> str:
    """Run a cell; return its result as text, or raise its error."""
    shown = [""]

    def keep(message: dict[str, Any]) -> None:
        if message["msg_type"] == "execute_result":
            shown.append(message["content"]["data"]["text/plain"])

    reply = client.execute_interactive(code, output_hook=keep, timeout=REPLY_S)
    if reply["content"]["status"] != "ok":
        raise RuntimeError(reply["content"])
    return shown[-1]


def measure_kernel(seconds: float) -> bool:
    """Measure what a kernel spends on a graph that changes; tell if the limit is kept."""
    with (
        tempfile.TemporaryDirectory() as name,
        serve_cloud() as cloud,
        serve_toolkit(Path(name, "data"), find_cloud_urls(cloud)) as (url, _),
        start_kernel() as (idle, idle_pid),
        start_kernel() as (client, pid),
    ):
        slow = {"vendor": "*", "delay_ms": 1_000, "times": None}
        httpx.post(f"{cloud}/_sandbox/faults", json=slow, trust_env=False).raise_for_status()
        (key,) = open_accounts(url, 1, ("openai",))
        run_cell(idle, "import toolkit.notebook")
        length = NODES // CHAINS
        run_cell(client, SUBMIT.format(url=url, key=key, chains=CHAINS, length=length) + SHOW)
        time.sleep(WARM_S)
        done = int(run_cell(client, COUNT))
        began, before, base = time.monotonic(), read_cpu_s(pid), read_cpu_s(idle_pid)
        time.sleep(seconds)
        took, used = time.monotonic() - began, read_cpu_s(pid) - before
        floor = (read_cpu_s(idle_pid) - base) / took
        changed = (int(run_cell(client, COUNT)) - done) / took
    return report(
        "live_graph.kernel", used / took, "of a core", floor=floor, limit=LIMIT_SHARE,
        nodes_per_s=round(changed, 1),
    )  # fmt: skip


def main(rounds: int = ROUNDS, seconds: float = MEASURE_S) -> int:
    """Measure; exit code 1 if a limit is not kept."""
    browser = find_browser()
    kept = measure_drawing(browser, rounds) if browser else True
    return 0 if measure_kernel(seconds) and kept else 1


if __name__ == "__main__":
    sys.exit(main())
