"""Every row of the decisions' status table that these areas can produce, on the wire."""

import asyncio

import pytest

from tests.server.conftest import ON_ITS_LOOP, POINTER, Wire, open_wire
from tests.support.slow_capability import build_nap_workflow, load_slow_registry
from tests.support.timing import PATIENCE_S, Watch, wait_until_async
from toolkit.contract.errors import ErrorCode
from toolkit.settings import Settings

RUN = {"target": "capability", "name": "research.gather", "input": {"topic": "Tea"}}
NODE = {"id": "a", "capability": "research.gather", "input": {"topic": "Tea"}}


def run(**changes: object) -> dict[str, object]:
    """A run's body with changes."""
    return {**RUN, **changes}


def image(**more: object) -> dict[str, object]:
    """A run's body that asks for a picture."""
    return run(name="image.generate", input={"prompt": "x", **more})


def flow(*nodes: dict[str, object]) -> dict[str, object]:
    """A workflow's body."""
    return {"name": "w", "nodes": list(nodes)}


def node(**changes: object) -> dict[str, object]:
    """A node's body."""
    return {**NODE, **changes}


def pointer(**changes: object) -> dict[str, object]:
    """A connection's body."""
    return {**POINTER, **changes}


A_KEY = "sk-" + "a1B2" * 10
NOBODYS = "art_01m7xrhddbvq3n2zjx4fe01326"
RUNS, FLOWS, TASKS = "/v1/runs", "/v1/workflows", "/v1/tasks"
LINKS = "/v1/providers/connections"

BODIES = [
    (RUNS, run(input={}), 400, "INVALID_REQUEST", "input.topic"),
    (RUNS, run(input={"topic": 3}), 400, "INVALID_REQUEST", "input.topic"),
    (RUNS, run(input={"topic": "Tea", "x": 1}), 400, "INVALID_REQUEST", "input.x"),
    (RUNS, run(options={"max_cost_usd": -1}), 400, "INVALID_REQUEST", "options.max_cost_usd"),
    (RUNS, run(options={"max_cost_usd": "1"}), 400, "INVALID_REQUEST", "options.max_cost_usd"),
    (RUNS, run(name="research.gather@1", version="2"), 400, "INVALID_REQUEST", "version"),
    (RUNS, run(target="marketplace"), 400, "TARGET_UNSUPPORTED", None),
    (RUNS, run(options={"provider": "minimax"}), 400, "CREDENTIALS_MISSING", None),
    (RUNS, run(options={"provider": "elevenlabs"}), 400, "PROVIDER_NOT_ALLOWED", None),
    (RUNS, run(options={"endpoint_id": "ep_nope"}), 404, "NOT_FOUND", None),
    (RUNS, image(steps=2.0), 400, "INVALID_REQUEST", "input.steps"),
    (RUNS, image(steps=True), 400, "INVALID_REQUEST", "input.steps"),
    (RUNS, run(name="composition.layout", input={"title": "x", "image": NOBODYS}), 404, "NOT_FOUND",
     None),
    (FLOWS, flow(), 400, "INVALID_WORKFLOW", "nodes"),
    (FLOWS, flow(node(), node()), 400, "INVALID_WORKFLOW", "nodes.1.id"),
    (FLOWS, flow(node(depends_on=["a"])), 400, "INVALID_WORKFLOW", "nodes.0.depends_on.0"),
    (FLOWS, flow(node(depends_on=["z"])), 400, "INVALID_WORKFLOW", "nodes.0.depends_on.0"),
    (FLOWS, flow(node(depends_on=["b"]), node(id="b", depends_on=["a"])), 400, "INVALID_WORKFLOW",
     "nodes.0.depends_on"),
    (FLOWS, flow(node(input={"topic": 1})), 400, "INVALID_REQUEST", "nodes.0.input.topic"),
    (FLOWS, flow(node(colour="red")), 400, "INVALID_REQUEST", "nodes.0.colour"),
    (TASKS, {"objective": " \n "}, 400, "INVALID_REQUEST", "objective"),
    (TASKS, {"objective": "x", "constraints": {"luck": 1}}, 400, "INVALID_REQUEST",
     "constraints.luck"),
    (LINKS, pointer(secret_ref=A_KEY), 400, "INVALID_REQUEST", "secret_ref"),
    (LINKS, pointer(secret_ref="two words"), 400, "INVALID_REQUEST", ""),
    ("/v1/endpoints", {"workers_max": 0}, 400, "INVALID_REQUEST", "workers_max"),
    ("/v1/endpoints", {}, 400, "CREDENTIALS_MISSING", None),
    ("/v1/endpoints", {"template_id": "tpl_x"}, 404, "NOT_FOUND", None),
    ("/v1/endpoints", {"storage_id": "sto_x"}, 404, "NOT_FOUND", None),
    ("/v1/endpoints", {"workers_min": 2}, 400, "INVALID_REQUEST", "workers_min"),
    ("/v1/compute", {"name": "x", "gpu_type": "y", "storage_id": "sto_x"}, 404, "NOT_FOUND", None),
    ("/v1/storage", {"name": "x", "size_gb": 20}, 400, "CREDENTIALS_MISSING", None),
    ("/v1/storage", {"name": "x", "size_gb": 9}, 400, "INVALID_REQUEST", "size_gb"),
    ("/v1/storage", {"name": "x", "size_gb": 4097}, 400, "INVALID_REQUEST", "size_gb"),
    ("/v1/storage", {"name": "", "size_gb": 20}, 400, "INVALID_REQUEST", "name"),
    ("/v1/templates", {"name": "x", "image": "y"}, 400, "CREDENTIALS_MISSING", None),
    ("/v1/templates", {"name": "x"}, 400, "INVALID_REQUEST", "image"),
    ("/v1/templates", {"name": "x", "image": "y", "hidden": True}, 400, "INVALID_REQUEST",
     "hidden"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "status", "code", "where"), BODIES)
@ON_ITS_LOOP
async def test_a_body_that_cannot_be_served_is_refused(
    shared_wire: Wire, path: str, body: dict[str, object], status: int, code: str, where: str | None
) -> None:
    """Given a faulty body, then status, code and path say so, and no row is left behind."""
    before = await shared_wire.rows()
    answer = await shared_wire.send("POST", path, json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code), answer.text
    assert error["message"].endswith(".")
    assert error["request_id"] == answer.headers["X-Request-Id"]
    if where is not None:
        assert where in [detail["path"] for detail in error["details"]]
    assert await shared_wire.rows() == before


async def test_a_body_over_the_limit_is_refused_before_it_is_read(wire: Wire) -> None:
    """Given 1 MiB and one byte, declared or dripped, then 413; one byte less is read."""
    limit = wire.engine.settings.body_limit_bytes
    headers = {"Content-Type": "application/json"}
    declared = await wire.send("POST", RUNS, content=b" " * (limit + 1), headers=headers)

    async def drip_body() -> object:
        for _ in range(17):
            yield b" " * (limit // 16)

    streamed = await wire.send("POST", RUNS, content=drip_body(), headers=headers)
    for answer in (declared, streamed):
        assert answer.status_code == 413
        assert answer.json()["error"]["code"] == "PAYLOAD_TOO_LARGE"
    within = await wire.send("POST", RUNS, content=b" " * limit, headers=headers)
    assert within.status_code == 400


async def test_a_pasted_key_is_never_echoed_or_stored(wire: Wire, settings: object) -> None:
    """Given a key where a name belongs, then no answer and no file holds it."""
    answer = await wire.send("POST", LINKS, json=pointer(secret_ref=A_KEY))
    assert A_KEY not in answer.text
    for path in wire.engine.settings.data_dir.rglob("*"):
        assert not path.is_file() or A_KEY.encode() not in path.read_bytes()


async def test_nothing_new_is_taken_while_stopping(wire: Wire) -> None:
    """Given an engine that drains, then new work is refused, and reading goes on."""
    assert (await wire.http.get("/v1/health?ready=true")).json()["status"] == "ok"
    wire.engine.drain()
    answer = await wire.send("POST", RUNS, json=RUN)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "UNAVAILABLE")
    assert int(answer.headers["Retry-After"]) > 0
    assert (await wire.send("GET", RUNS)).status_code == 200
    assert (await wire.http.get("/v1/health")).json()["status"] == "draining"
    probed = await wire.http.get("/v1/health?ready=true")
    assert (probed.status_code, probed.json()["error"]["code"]) == (503, "UNAVAILABLE")
    assert (await wire.http.get("/v1/health?ready=1")).status_code == 400


async def test_a_held_request_is_answered_when_the_server_ends(settings: Settings) -> None:
    """Given requests that are held, then a server that is to end answers with what there is."""
    async with open_wire(settings, load_slow_registry()) as wire:
        nap = {"name": "test.nap", "target": "capability", "input": {"seconds": 60}}
        naps = build_nap_workflow(2, 60).to_dict()
        asked = [("/v1/runs", nap), ("/v1/workflows", naps)]

        async def all_are_running() -> bool:
            listed = [(await wire.send("GET", path)).json()["data"]["items"] for path, _ in asked]
            return [[one["status"] for one in items] for items in listed] == [["running"]] * 2

        held = [
            asyncio.create_task(wire.send("POST", path, json=body, headers={"Prefer": "wait=60"}))
            for path, body in asked
        ]
        async with asyncio.timeout(PATIENCE_S):
            await wait_until_async(all_are_running)
            found = [(await wire.send("GET", path)).json()["data"]["items"] for path, _ in asked]
            waits = [
                f"{path}/{one['id']}/events?after=1000&wait=30"
                for (path, _), (one,) in zip(asked, found, strict=True)
            ]
            polls = [asyncio.create_task(wire.send("GET", path)) for path in waits]
            watch = Watch()
            wire.engine.drain()
            answers = await asyncio.gather(*held)
            polled = await asyncio.gather(*polls)
        assert watch.measure_elapsed_s() < 10
    assert [one.json()["data"]["items"] for one in polled] == [[], []]
    assert [one.json()["data"]["status"] for one in answers] == ["running", "running"]


async def test_our_own_fault_tells_nothing(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a bug, then the answer is INTERNAL with the request id that finds it in the log."""

    async def raise_error(*_: object) -> None:
        raise RuntimeError("a secret detail")

    monkeypatch.setattr(type(wire.engine.runs), "get", raise_error)
    answer = await wire.send("GET", "/v1/runs/run_x")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "INTERNAL")
    assert answer.headers["X-Request-Id"] == answer.json()["error"]["request_id"]
    assert "secret detail" not in answer.text


def test_each_code_says_what_to_do() -> None:
    """Given the enum, then every member has a sentence, and names are unique on the wire."""
    assert all(code.hint.endswith(".") for code in ErrorCode)
    assert len({code.name for code in ErrorCode}) == len(ErrorCode) == 33
