"""Errors of the status table of the decisions, over HTTP."""

import asyncio

import pytest

from tests.server.conftest import ON_ITS_LOOP, POINTER, Wire, open_wire
from tests.support.slow_capability import build_nap_workflow, load_slow_registry
from tests.support.timing import PATIENCE_S, Watch, wait_until_async
from toolkit.settings import Settings

RUN = {"target": "capability", "name": "research.gather", "input": {"topic": "Tea"}}
NODE = {"id": "a", "capability": "research.gather", "input": {"topic": "Tea"}}


def run(name: str = "research.gather", **members: object) -> dict[str, object]:
    """Build the body of a run."""
    return {**RUN, "name": name, **members}


def flow(*nodes: dict[str, object]) -> dict[str, object]:
    """Build the body of a workflow."""
    return {"name": "w", "nodes": [NODE | node for node in nodes]}


UNKNOWN_ARTIFACT = "art_01m7xrhddbvq3n2zjx4fe01326"
RUNS, FLOWS = "/v1/runs", "/v1/workflows"
LINKS = "/v1/providers/connections"

BODIES = [
    (RUNS, run(input={"topic": "Tea", "x": 1}), 400, "INVALID_REQUEST", "input.x"),
    (RUNS, run(options={"max_cost_usd": -1}), 400, "INVALID_REQUEST", "options.max_cost_usd"),
    (RUNS, run(options={"max_cost_usd": "1"}), 400, "INVALID_REQUEST", "options.max_cost_usd"),
    (RUNS, run("research.gather@1", version="2"), 400, "INVALID_REQUEST", "version"),
    (RUNS, run(options={"provider": "elevenlabs"}), 400, "PROVIDER_NOT_ALLOWED", None),
    (RUNS, run(options={"endpoint_id": "ep_nope"}), 404, "NOT_FOUND", None),
    (RUNS, run("image.generate", input={"prompt": "x", "steps": 2.0}), 400, "INVALID_REQUEST",
     "input.steps"),
    (RUNS, run("composition.layout", input={"title": "x", "image": UNKNOWN_ARTIFACT}), 404,
     "NOT_FOUND", None),
    (FLOWS, flow(), 400, "INVALID_WORKFLOW", "nodes"),
    (FLOWS, flow({}, {}), 400, "INVALID_WORKFLOW", "nodes.1.id"),
    (FLOWS, flow({"depends_on": ["a"]}), 400, "INVALID_WORKFLOW", "nodes.0.depends_on.0"),
    (FLOWS, flow({"depends_on": ["z"]}), 400, "INVALID_WORKFLOW", "nodes.0.depends_on.0"),
    (FLOWS, flow({"depends_on": ["b"]}, {"id": "b", "depends_on": ["a"]}), 400, "INVALID_WORKFLOW",
     "nodes.0.depends_on"),
    (FLOWS, flow({"input": {"topic": 1}}), 400, "INVALID_REQUEST", "nodes.0.input.topic"),
    (FLOWS, flow({"colour": "red"}), 400, "INVALID_REQUEST", "nodes.0.colour"),
    (LINKS, POINTER | {"secret_ref": "two words"}, 400, "INVALID_REQUEST", ""),
    ("/v1/endpoints", {}, 400, "CREDENTIALS_MISSING", None),
    ("/v1/endpoints", {"template_id": "tpl_x"}, 404, "NOT_FOUND", None),
    ("/v1/endpoints", {"storage_id": "sto_x"}, 404, "NOT_FOUND", None),
    ("/v1/endpoints", {"workers_min": 2}, 400, "INVALID_REQUEST", "workers_min"),
    ("/v1/compute", {"name": "x", "gpu_type": "y", "storage_id": "sto_x"}, 404, "NOT_FOUND", None),
    ("/v1/storage", {"name": "x", "size_gb": 20}, 400, "CREDENTIALS_MISSING", None),
    ("/v1/storage", {"name": "x", "size_gb": 9}, 400, "INVALID_REQUEST", "size_gb"),
    ("/v1/storage", {"name": "x", "size_gb": 4097}, 400, "INVALID_REQUEST", "size_gb"),
    ("/v1/templates", {"name": "x", "image": "y"}, 400, "CREDENTIALS_MISSING", None),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "status", "code", "member"), BODIES)
@ON_ITS_LOOP
async def test_rejects_a_faulty_body(
    shared_wire: Wire,
    path: str,
    body: dict[str, object],
    status: int,
    code: str,
    member: str | None,
) -> None:
    """Given a faulty body, then status, code and path name the fault, and no row is created."""
    before = await shared_wire.rows()
    answer = await shared_wire.send("POST", path, json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code), answer.text
    assert error["message"].endswith(".")
    assert error["request_id"] == answer.headers["X-Request-Id"]
    if member is not None:
        assert member in [detail["path"] for detail in error["details"]]
    assert await shared_wire.rows() == before


async def test_rejects_a_large_body_before_reading_it(wire: Wire) -> None:
    """Given a body over 1 MiB, with or without a length, then 413; a body of 1 MiB is read."""
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


async def test_rejects_new_work_while_draining(wire: Wire) -> None:
    """Given an engine that stops, then new work is rejected, and reads go on."""
    assert (await wire.http.get("/v1/health?ready=true")).json()["status"] == "ok"
    wire.engine.drain()
    answer = await wire.send("POST", RUNS, json=RUN)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "UNAVAILABLE")
    assert int(answer.headers["Retry-After"]) > 0
    assert (await wire.send("GET", RUNS)).status_code == 200
    assert (await wire.http.get("/v1/health")).json()["status"] == "draining"
    answer = await wire.http.get("/v1/health?ready=true")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "UNAVAILABLE")
    assert (await wire.http.get("/v1/health?ready=1")).status_code == 400


async def test_answers_held_requests_at_shutdown(settings: Settings) -> None:
    """Given held requests, when the server stops, then they are answered with the current state."""
    async with open_wire(settings, load_slow_registry()) as wire:
        nap = {"name": "test.nap", "target": "capability", "input": {"seconds": 60}}
        naps = build_nap_workflow(2, 60).to_dict()
        bodies = {"/v1/runs": nap, "/v1/workflows": naps}

        async def list_running() -> list[str]:
            lists = {path: await wire.send("GET", path) for path in bodies}
            return [
                f"{path}/{item['id']}"
                for path, answer in lists.items()
                for item in answer.json()["data"]["items"]
                if item["status"] == "running"
            ]

        async def has_started() -> bool:
            return len(await list_running()) == 2

        creations = [
            asyncio.create_task(wire.send("POST", path, json=body, headers={"Prefer": "wait=60"}))
            for path, body in bodies.items()
        ]
        async with asyncio.timeout(PATIENCE_S):
            await wait_until_async(has_started)
            polls = [
                asyncio.create_task(wire.send("GET", f"{path}/events?after=1000&wait=30"))
                for path in await list_running()
            ]
            watch = Watch()
            wire.engine.drain()
            records = await asyncio.gather(*creations)
            events = await asyncio.gather(*polls)
        assert watch.measure_elapsed_s() < 10
    assert [answer.json()["data"]["items"] for answer in events] == [[], []]
    assert [answer.json()["data"]["status"] for answer in records] == ["running", "running"]


async def test_internal_error_reveals_nothing(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a bug, then the answer is INTERNAL, with the request id of the log line."""

    async def raise_error(*_: object) -> None:
        raise RuntimeError("a secret detail")

    monkeypatch.setattr(type(wire.engine.runs), "get", raise_error)
    answer = await wire.send("GET", "/v1/runs/run_x")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "INTERNAL")
    assert answer.headers["X-Request-Id"] == answer.json()["error"]["request_id"]
    assert "secret detail" not in answer.text
