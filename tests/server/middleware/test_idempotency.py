"""`Idempotency-Key`: a request that is sent several times is executed once."""

import asyncio
import contextlib
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.server.conftest import Wire, connect_caller, open_service, open_wire
from tests.support.timing import wait_until_async
from toolkit.contract.base import format_rfc3339
from toolkit.contract.operations.table import OPERATIONS
from toolkit.engine.services.idempotency import IdempotencyStore
from toolkit.sandbox import Faults
from toolkit.settings import Settings
from toolkit.store import UpdateRow

WAIT = {"Prefer": "wait=60"}
RUN = {"target": "capability", "name": "llm.generate", "input": {"objective": "One line on tea"}}
TASK = {"objective": "A social card about tea"}
FLOW = {"name": "tea", "nodes": [{"id": "a", "capability": "llm.generate", "input": RUN["input"]}]}
MAP = {
    "capability": "llm.generate@1",
    "input": {"objective": "One line on {n}"},
    "rows": [{"n": 1}],
}
LONG = {
    "name": "long",
    "nodes": [
        {"id": f"n{i}", "capability": "llm.generate", "input": RUN["input"], "depends_on": after}
        for i, after in enumerate([[], *([f"n{i}"] for i in range(99))])
    ],
}
# A body for each path that accepts POST; CREATED has the resources that `{}` names.
POSTS: dict[str, Any] = {
    "/v1/runs": RUN,
    "/v1/route": RUN,
    "/v1/maps": MAP,
    "/v1/workflows": FLOW,
    "/v1/plans": TASK,
    "/v1/tasks": TASK,
    "/v1/compute": {"name": "easel", "gpu_type": "NVIDIA GeForce RTX 4090"},
    "/v1/endpoints": {"name": "studio"},
    "/v1/storage": {"name": "weights", "size_gb": 20},
    "/v1/templates": {"name": "worker", "image": "example/worker:1"},
    "/v1/artifacts": "a file",
    "/v1/providers/connections": {
        "provider": "openai",
        "connection_type": "environment",
        "secret_ref": "OPENAI_API_KEY",
    },
    "/v1/jobs": {
        "type": "image",
        "compute_id": "{compute}",
        "input": {"prompt": "a cup", "steps": 1, "width": 256, "height": 256},
    },
    "/v1/providers/connections/{connection}/test": None,
    "/v1/providers/connections/{connection}/trust": None,
    "/v1/providers/connections/{connection}/share": {"accounts": "all"},
    "/v1/runs/{run}/cancel": None,
    "/v1/runs/{run}/annotate": {"tags": ["tea"], "note": "Too formal."},
    "/v1/jobs/{job}/cancel": None,
    "/v1/maps/{map}/rows": {"rows": [{"n": 2}]},
    "/v1/maps/{map}/cancel": None,
    "/v1/maps/{map}/annotate": {"tags": ["tea"]},
    "/v1/workflows/{workflow}/cancel": None,
    "/v1/workflows/{workflow}/annotate": {"tags": ["tea"]},
    "/v1/workflows/{failed}/retry": None,
    "/v1/workflows/{done}/fork": {"from_node": "a"},
    "/v1/tasks/{task}/cancel": None,
    "/v1/tasks/{task}/annotate": {"note": "Too formal."},
    "/v1/tasks/{blocked}/resume": None,
    "/v1/tasks/{ended}/reviews": {"decision": "fail"},
    "/v1/agents": {"name": "summarist", "objective": "A summary of {topic}"},
}
COPIES = 16  # of a request, sent at once
EXCEPTED = {"/v1/account", "/v1/account/keys", "/v1/account/keys/{id}/rotate"}


# Resources that a path or a body names: the path, body and headers of their creation.
CREATED: dict[str, tuple[str, Any, dict[str, str]]] = {
    "run": ("/v1/runs", RUN, {}),
    "map": ("/v1/maps", MAP, {}),
    "workflow": ("/v1/workflows", FLOW, {}),
    "task": ("/v1/tasks", TASK, {}),
    "compute": ("/v1/compute", POSTS["/v1/compute"], {}),
    "failed": ("/v1/workflows", LONG, {}),
    "done": ("/v1/workflows", FLOW, WAIT),
    "ended": ("/v1/tasks", TASK, WAIT),
    "blocked": ("/v1/tasks", {"objective": "A spoken summary of tea, and an image of a cup"}, WAIT),
}


async def prepare_post(wire: Wire, path: str, body: Any) -> tuple[str, dict[str, Any]]:
    """Return the path and options of a post, after creating the resources that it names."""
    names: dict[str, str] = {}
    text = f"{path} {body}"
    for name, (collection, content, headers) in CREATED.items():
        if "{" + name + "}" in text:
            resource = await wire.send("POST", collection, json=content, headers=headers)
            names[name] = resource.json()["id"]
    if "{failed}" in text:
        await wire.send("POST", f"/v1/workflows/{names['failed']}/cancel")
    if "{job}" in text:
        names["job"] = (await wire.send("POST", "/v1/runs", json=RUN)).json()["data"]["job_id"]
    if "{connection}" in text:
        listed = await wire.send("GET", "/v1/providers/connections")
        names["connection"] = listed.json()["data"]["items"][0]["id"]
    if path.endswith("/share"):  # only operators share
        account_id = (await wire.send("GET", "/v1/account")).json()["id"]
        await wire.engine.core.store.write([UpdateRow("accounts", account_id, {"operator": True})])
    for name, value in names.items():
        path = path.replace("{" + name + "}", value)
    if body == "a file":
        return path, {"files": {"file": ("a.txt", b"tea leaves")}}
    if body is None:
        return path, {}
    return path, {"json": {k: names.get(str(v).strip("{}"), v) for k, v in body.items()}}


def test_table_has_every_post() -> None:
    """Given the routes, then each route that accepts POST is in the table, or excepted."""

    def get_shape(path: str) -> str:
        return path.partition("{")[0] + path.rpartition("}")[2]

    posts = {operation.path for operation in OPERATIONS if operation.method == "POST"}
    assert {get_shape(path) for path in posts - EXCEPTED} == {get_shape(path) for path in POSTS}


@pytest.mark.parametrize("path", POSTS)
async def test_concurrent_copies_are_executed_once(wire: Wire, path: str) -> None:
    """Given a key, when its request is sent many times at once, then all get the first answer."""
    if "{blocked}" not in path:  # a task is blocked only without a connection
        await connect_caller(wire)
    path_, options = await prepare_post(wire, path, POSTS[path])
    if "{blocked}" in path:
        await connect_caller(wire)
    before = await wire.rows()
    headers = {"Idempotency-Key": "once"}
    answers = await asyncio.gather(
        *[wire.send("POST", path_, headers=headers, **options) for _ in range(COPIES)]
    )
    assert {answer.status_code for answer in answers} <= {200, 201, 202}, answers[0].text
    assert len({answer.content for answer in answers}) == 1
    assert len({answer.headers["x-request-id"] for answer in answers}) == COPIES
    assert sum("idempotency-replayed" in answer.headers for answer in answers) == COPIES - 1
    table = path.removeprefix("/v1/").replace("providers/", "")
    table = {"runs": "jobs"}.get(table, table)
    if table in before:
        assert (await wire.rows())[table] == before[table] + 1


async def test_concurrent_copies_are_paid_once(settings: Settings) -> None:
    """Given sixteen copies of a run, then the vendor is called, and paid, once."""
    faults = Faults()
    async with open_wire(settings, faults=faults) as wire:
        await connect_caller(wire)
        headers = {"Idempotency-Key": "once", "Prefer": "wait=60"}
        sent = [wire.send("POST", "/v1/runs", json=RUN, headers=headers) for _ in range(16)]
        assert {answer.json()["status"] for answer in await asyncio.gather(*sent)} == {"completed"}
        assert sum(call.billed for call in faults.calls) == 1


@pytest.mark.parametrize("path", [p for p in POSTS if "{" not in p and p != "/v1/route"])
async def test_crash_before_the_answer_repeats_nothing(
    settings: Settings, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a process that dies before its answer, then the next does not repeat the work."""
    async with open_wire(settings) as wire:
        await connect_caller(wire)
        path, options = await prepare_post(wire, path, POSTS[path])
        headers = {"Idempotency-Key": "once"}

        async def fail(*_: object) -> None:
            raise RuntimeError("the process died here")

        monkeypatch.setattr(IdempotencyStore, "save", fail)
        assert (await wire.send("POST", path, headers=headers, **options)).status_code == 500
        monkeypatch.undo()
        before = await wire.rows()

    async with open_service(settings) as again:
        again.headers = wire.headers
        answer = await again.send("POST", path, headers=headers, **options)
        assert answer.status_code in (201, 202), answer.text
        assert answer.headers["idempotency-replayed"] == "true"
        record = await again.send("GET", f"{path}/{answer.json()['id']}")
        assert record.status_code == 200
        table = path.removeprefix("/v1/").replace("providers/", "").replace("runs", "jobs")
        assert (await again.rows())[table] == before[table]


async def test_two_engines_execute_a_request_once(settings: Settings) -> None:
    """Given two engines on a directory, when both get a request at once, then one executes it."""
    async with contextlib.AsyncExitStack() as stack:
        wires = [await stack.enter_async_context(open_service(settings)) for _ in range(2)]
        headers = await wires[0].sign_up("ada@example.org")
        for wire in wires:
            wire.headers = headers
        await connect_caller(wires[0])
        for turn in range(10):
            key = {"Idempotency-Key": f"turn {turn}"}
            sent = [wire.send("POST", "/v1/runs", json=RUN, headers=key) for wire in wires * 4]
            answers = await asyncio.gather(*sent)
            assert {answer.status_code for answer in answers} == {202}
            assert len({answer.json()["id"] for answer in answers}) == 1
        assert (await wires[0].rows())["jobs"] == 10


async def test_rejects_a_key_that_another_request_used(wire: Wire) -> None:
    """Given a used key, then another body or path is rejected; another account may use the key."""
    await connect_caller(wire)
    headers = {"Idempotency-Key": "once"}
    first = await wire.send("POST", "/v1/runs", json=RUN, headers=headers)
    for path, body in (("/v1/runs", {**RUN, "input": {"objective": "Milk"}}), ("/v1/route", RUN)):
        refused = await wire.send("POST", path, json=body, headers=headers)
        assert refused.status_code == 422
        assert refused.json()["error"]["code"] == "IDEMPOTENCY_CONFLICT"
    stranger = Wire(wire.http, wire.engine, await wire.sign_up("grace@example.org"))
    await connect_caller(stranger)
    theirs = await stranger.send("POST", "/v1/runs", json=RUN, headers=headers)
    assert theirs.json()["id"] != first.json()["id"]


async def test_stores_no_answer_of_a_rejected_request(wire: Wire) -> None:
    """Given a rejected request, then its key works once the request can be executed."""
    headers = {"Idempotency-Key": "once"}
    refused = await wire.send("POST", "/v1/runs", json=RUN, headers=headers)
    assert refused.json()["error"]["code"] == "CREDENTIALS_MISSING"
    await connect_caller(wire)
    assert (await wire.send("POST", "/v1/runs", json=RUN, headers=headers)).status_code == 202


async def test_replays_the_first_answer_after_the_end(wire: Wire) -> None:
    """Given a run that has ended, then its key still gets the first answer."""
    await connect_caller(wire)
    headers = {"Idempotency-Key": "once"}
    first = await wire.send("POST", "/v1/runs", json=RUN, headers=headers)
    await wire.send("GET", f"/v1/runs/{first.json()['id']}/events?wait=5")
    assert (await wire.send("POST", "/v1/runs", json=RUN, headers=headers)).content == first.content


@pytest.mark.parametrize(("hours", "is_replayed"), [(24, True), (26, False)])
async def test_key_expires_after_a_day(wire: Wire, hours: int, is_replayed: bool) -> None:
    """Given a key that is a day old, then its answer is replayed; an older key is new again."""
    await connect_caller(wire)
    headers = {"Idempotency-Key": "once"}
    first = await wire.send("POST", "/v1/runs", json=RUN, headers=headers)
    store = wire.engine.core.store
    await store.write([])
    (row,) = await store.find_rows("idempotency")
    created_at = datetime.fromisoformat(row["created_at"]) - timedelta(hours=hours)
    update = {"created_at": format_rfc3339(created_at)}
    await store.write([UpdateRow("idempotency", row["id"], update)])
    again = await wire.send("POST", "/v1/runs", json=RUN, headers=headers)
    assert (again.json()["id"] == first.json()["id"]) is is_replayed


async def test_replays_no_account_and_needs_an_api_key(wire: Wire) -> None:
    """Given a key, then each request opens an account; a request without an API key gets 401."""
    headers = {"Idempotency-Key": "once"}
    for email in ("b@example.org", "c@example.org"):
        answer = await wire.http.post("/v1/account", json={"email": email}, headers=headers)
        assert answer.status_code == 201
    assert (await wire.http.post("/v1/runs", json=RUN, headers=headers)).status_code == 401
    assert "sk_live_" not in str(await wire.engine.core.store.find_rows("idempotency"))


async def test_deletes_expired_answers(wire: Wire) -> None:
    """Given an answer older than a day, then a sweep deletes it."""
    await connect_caller(wire)
    for key in ("old", "new"):
        await wire.send("POST", "/v1/runs", json=RUN, headers={"Idempotency-Key": key})
    store = wire.engine.core.store
    first = (await store.find_rows("idempotency"))[0]
    await store.write([UpdateRow("idempotency", first["id"], {"created_at": "2020-01-01"})])
    sweeper = asyncio.create_task(wire.engine.idempotency.sweep_expired())

    async def is_swept() -> bool:
        return [row["id"] == first["id"] for row in await store.find_rows("idempotency")] == [False]

    await wait_until_async(is_swept)
    sweeper.cancel()
