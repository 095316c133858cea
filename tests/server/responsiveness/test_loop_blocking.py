"""The longest time for which a request keeps all others waiting, whatever it holds (promise P36).

What is measured is the processor time of the loop's own thread in one turn of the loop: others may
use this machine's cores meanwhile without being counted. It is compared with a piece of plain work
done beside it on the same thread, which takes about 50 ms on the machine that the promise was
measured on: a slower machine, or a busier one, is allowed as much longer as that piece takes there.
The least of a few tries counts, as a collection of garbage may fall into any of them; the caches
that other programs use up are allowed for, too (`NOISE`).
"""

import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.server.conftest import POINTER, Wire, open_wire
from tests.server.route_table import ROUTES, Route, name_parameters
from tests.support.timing import yield_turns
from toolkit.settings import Settings

PROMISED_MS = 100
# Memory that others are busy with makes large bodies slower than the plain work beside them.
NOISE = 1.5
MAX_MS = PROMISED_MS * NOISE
UNIT_MS = 50
SIZE = 1024 * 1024 - 1024
TRIES = 8


Longest = Callable[[Route, bytes], float]


class GaugedLoop(asyncio.SelectorEventLoop):
    """A loop that knows the longest of its turns, in seconds of its thread's processor time."""

    longest_s = 0.0

    def _run_once(self) -> None:
        began = time.thread_time()
        super()._run_once()  # type: ignore[misc]  # asyncio's own, which no stub has
        self.longest_s = max(self.longest_s, time.thread_time() - began)


def unit_s() -> float:
    """Seconds that a piece of plain work takes on this thread."""
    began = time.thread_time()
    total = 0
    for number in range(750_000):
        total += number
    return time.thread_time() - began


def fill_body(before: str, unit: str, after: str, most: int | None = None) -> bytes:
    """As many equal parts as a body may hold, in a list or behind each other."""
    times = (SIZE - len(before) - len(after)) // (len(unit) + 1)
    parts = ",".join([unit] * min(times, most or times))
    return f"{before}{parts}{after}".encode()


DEEP = "[" * 50 + "]" * 50
# Unfit for every model: as deep, wide, long and wrong as a body can be.
HOSTILE: dict[str, bytes] = {
    "deep": fill_body('{"input":{"a":[', DEEP, "]}}"),
    "as deep as is read": fill_body('{"input":{"a":[', DEEP, "]}}", 590),
    "deep objects": fill_body('{"input":{"a":[', '{"a":' * 50 + "1" + "}" * 50, "]}}", 590),
    "wide": fill_body('{"input":{"a":[', "1", "]}}"),
    "objects": fill_body('{"input":{"a":[', '{"a":1}', "]}}", 14_000),
    "one text": b'{"objective":"' + b"\\u00e9" * 80_000 + b'"}',
    "texts": fill_body('{"objective":[', '"\\n"', "]}", 29_000),
    "quotes": b'"' * SIZE,
    "brackets": b"[]" * (SIZE // 2),
    "unknown members": b"{" + b",".join(b'"m%d":1' % i for i in range(999)) + b"}",
    "wrong nodes": fill_body('{"nodes":[', "1", "]}", 29_000),
    "nodes that are wrong all over": fill_body(
        '{"nodes":[',
        '{"id":1,"capability":2,"input":3,"depends_on":4,"options":5,"x":6}',
        "]}",
        4_100,
    ),
    "wrong options": fill_body(
        '{"name":1,"nodes":[',
        '{"options":{"max_cost_usd":"a","deadline_s":"b","provider":1}}',
        "]}",
        5_700,
    ),
    "as many wrong options as nodes may have": fill_body(
        '{"name":1,"nodes":[',
        '{"options":{"max_cost_usd":"a","deadline_s":"b","provider":1}}',
        "]}",
        1_000,
    ),
}  # fmt: skip


def graph(nodes: list[dict[str, Any]]) -> bytes:
    """A workflow of some nodes, as large as it may be at most."""
    body = json.dumps({"name": "large", "nodes": nodes}).encode()
    assert len(body) <= SIZE, len(body)
    return body


def text_node(i: int, depends_on: list[str], width: int = 4, **given: Any) -> dict[str, Any]:
    """A node that asks for a text."""
    return {
        "id": f"{i:0{width}}", "capability": "llm.generate", "depends_on": depends_on,
        "input": {"objective": "Tea", **given},
    }  # fmt: skip


def chain(i: int, ups: int) -> list[str]:
    """The nodes before one."""
    return [f"{j:04}" for j in range(max(0, i - ups), i)]


SCHEMA = {
    "type": "object",
    "properties": {f"p{i:03}": {"type": "string", "maxLength": i + 1} for i in range(30)},
}
GRAPHS: dict[str, Callable[[], bytes]] = {
    "an ordinary thousand": lambda: graph([text_node(i, chain(i, 1)) for i in range(1_000)]),
    "a thousand at once": lambda: graph([text_node(i, []) for i in range(1_000)]),
    "a thousand, and long": lambda: graph(
        [text_node(i, chain(i, 1), objective="Tea " * 200) for i in range(1_000)]
    ),
    "all edges": lambda: graph([text_node(i, chain(i, 10)) for i in range(1_000)]),
    "schemas": lambda: graph([text_node(i, [], output_schema=SCHEMA) for i in range(500)]),
    "a knot": lambda: graph(
        [text_node(i, [f"{(i + j) % 1000:04}" for j in range(1, 11)]) for i in range(1_000)]
    ),
    "unknown upstreams": lambda: graph(
        [text_node(i, [f"z{j}" for j in range(10)], 200) for i in range(1_000)]
    ),
    "one id": lambda: graph([text_node(0, ["0000"] * 10) for _ in range(1_000)]),
    "unfit inputs": lambda: graph([text_node(i, [], x=1, objective=2) for i in range(1_000)]),
    "long texts": lambda: graph([text_node(0, [], objective="\ufdfa" * 99_000)]),
}


@pytest.fixture
def longest(settings: Settings) -> Iterator[Longest]:
    """Measures the longest turn of the loop while a body is posted, in milliseconds as promised."""
    rates: dict[str, Any] = {"rate_limit_per_s": 10_000, "rate_limit_burst": 10_000}
    with asyncio.Runner(loop_factory=GaugedLoop) as runner:
        served = _serve_wire(settings.model_copy(update=rates))
        wire = runner.run(served.__aenter__())
        loop = runner.get_loop()
        assert isinstance(loop, GaugedLoop)
        gc.freeze()  # as `toolkit serve` does once it is ready

        def measure(route: Route, body: bytes) -> float:
            tries = []
            for _ in range(TRIES):
                units = [unit_s()]
                loop.longest_s = 0.0
                runner.run(_post(wire, route, body))
                units.append(unit_s())
                tries.append(loop.longest_s / max(units) * UNIT_MS)
                if tries[-1] < PROMISED_MS * 0.8:
                    break
            return min(tries)

        yield measure
        gc.unfreeze()
        runner.run(served.__aexit__(None, None, None))


@asynccontextmanager
async def _serve_wire(settings: Settings) -> AsyncIterator[Wire]:
    async with open_wire(settings) as wire:
        await wire.send("POST", "/v1/providers/connections", json=POINTER)
        yield wire


async def _post(wire: Wire, route: Route, body: bytes) -> None:
    """Post a body, and end what came of it once it is under way."""
    headers = {"Content-Type": "application/json"}
    path = route.at("x")
    answer = await wire.send("POST", path, content=body, headers=headers)
    assert answer.status_code < 500, answer.text[:500]
    if answer.status_code == 202:
        await yield_turns(30)
        place = f"{path}/{answer.json()['id']}"
        for method, at in (("GET", place), ("GET", path), ("POST", f"{place}/cancel")):
            await yield_turns()  # one of its own for each
            assert (await wire.send(method, at)).status_code in (200, 404, 405)


CREATE = next(route for route in ROUTES if route.name == "workflows_create")
BODIED = [route for route in ROUTES if route.method == "POST" and "requestBody" in route.told]
JSON_BODIED = [r for r in BODIED if "application/json" in r.told["requestBody"]["content"]]
# What some routes do with a text or a schema before they answer.
LARGE: dict[str, dict[str, Any]] = {
    "a run's text": {"name": "llm.generate", "input": {"objective": "\ufdfa" * 300_000}},
    "a run's words": {"name": "llm.generate", "input": {"objective": "tea " * 120_000}},
    "a run's schema": {
        "name": "llm.generate",
        "input": {"objective": "x", "output_schema": {"properties": {"a": [[{}] * 5000] * 5}}},
    },
    "a run's inputs": {"name": "research.gather", "input": dict.fromkeys(map(str, range(900)), 1)},
    "a card": {"name": "composition.layout", "input": {"title": "x", "body": "tea " * 100_000}},
    "an objective": {"objective": "A social card about tea, and a text about cups. " * 200},
    "an objective without words": {"objective": "," * 10_000},
    "an objective that opens": {"objective": "(" * 10_000},
    "an objective of quotes": {"objective": "'a\" " * 2_500},
    "an objective of numbers": {"objective": "12 images, " * 900},
    "an objective in signs": {"objective": "\u6f6e" * 10_000},
}
ASKED = {"run": ("runs_create", "route_create"), "objective": ("plans_create", "tasks_create")}


@pytest.mark.parametrize("body", HOSTILE)
def test_no_unfit_body_holds_the_loop(longest: Longest, body: str) -> None:
    """Given a body that is read to be refused, then the loop has its turns meanwhile."""
    assert longest(CREATE, HOSTILE[body]) < MAX_MS


def test_no_unfit_plan_holds_the_loop(longest: Longest) -> None:
    """Given a plan of many nodes that are all wrong, then the loop has its turns."""
    body = b'{"objective":"x","plan":' + HOSTILE["wrong options"] + b"}"
    (route,) = [route for route in ROUTES if route.name == "tasks_create"]
    assert longest(route, body) < MAX_MS


@pytest.mark.parametrize("route", name_parameters(JSON_BODIED))
def test_no_post_holds_the_loop(longest: Longest, route: Route) -> None:
    """Given any post there is, then what is refused does not hold the loop there either."""
    for body in ("deep objects", "unknown members"):
        assert longest(route, HOSTILE[body]) < MAX_MS


@pytest.mark.parametrize("name", GRAPHS)
def test_no_graph_holds_the_loop(longest: Longest, name: str) -> None:
    """Given a graph as large as it may be, accepted or not, then the loop has its turns."""
    assert longest(CREATE, GRAPHS[name]()) < MAX_MS


@pytest.mark.parametrize("name", LARGE)
def test_no_text_holds_the_loop(longest: Longest, name: str) -> None:
    """Given a text or a schema as large as it may be, then the loop has its turns."""
    body = LARGE[name]
    for route in ROUTES:
        if route.name in ASKED["objective" if "objective" in body else "run"]:
            given = body if "objective" in body else {"target": "capability", **body}
            assert longest(route, json.dumps(given, ensure_ascii=False).encode()) < MAX_MS
