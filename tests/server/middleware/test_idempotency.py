"""`Idempotency-Key`: whatever is posted, however often and whenever, is done once."""

import asyncio
import contextlib
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.server.conftest import Wire, connect_caller, open_wire, serve_wire
from tests.support.timing import wait_until_async
from toolkit.contract.base import format_rfc3339
from toolkit.contract.operations.table import OPERATIONS
from toolkit.engine.services.idempotency import IdempotencyStore
from toolkit.local import open_engine
from toolkit.sandbox import Faults
from toolkit.settings import Settings
from toolkit.store import UpdateRow

WAIT = {"Prefer": "wait=60"}
RUN = {
    "target": "capability",
    "name": "llm.generate",
    "input": {"objective": "One line on tea"},
}
TASK = {"objective": "A social card about tea"}
FLOW = {"name": "tea", "nodes": [{"id": "a", "capability": "llm.generate", "input": RUN["input"]}]}
LONG = {
    "name": "long",
    "nodes": [
        {"id": f"n{i}", "capability": "llm.generate", "input": RUN["input"], "depends_on": after}
        for i, after in enumerate([[], *([f"n{i}"] for i in range(99))])
    ],
}
# A body for every path that can be posted to; `MADE` is what has to be there before.
POSTS: dict[str, Any] = {
    "/v1/runs": RUN,
    "/v1/route": RUN,
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
COPIES = 16  # of a request that is sent at once
EXCEPTED = {"/v1/account", "/v1/account/keys", "/v1/account/keys/{id}/rotate"}


# What a path or a body names, and how it is made before.
MADE: dict[str, tuple[str, Any, dict[str, str]]] = {
    "run": ("/v1/runs", RUN, {}),
    "workflow": ("/v1/workflows", FLOW, {}),
    "task": ("/v1/tasks", TASK, {}),
    "compute": ("/v1/compute", POSTS["/v1/compute"], {}),
    "failed": ("/v1/workflows", LONG, {}),
    "done": ("/v1/workflows", FLOW, WAIT),
    "ended": ("/v1/tasks", TASK, WAIT),
    "blocked": ("/v1/tasks", {"objective": "A spoken summary of tea, and an image of a cup"}, WAIT),
}


async def prepare_post(wire: Wire, path: str, body: Any) -> tuple[str, dict[str, Any]]:
    """The path and options of a post, with what they name made before."""
    names: dict[str, str] = {}
    text = f"{path} {body}"
    for name, (where, what, headers) in MADE.items():
        if "{" + name + "}" in text:
            made = await wire.send("POST", where, json=what, headers=headers)
            names[name] = made.json()["id"]
    if "{failed}" in text:
        await wire.send("POST", f"/v1/workflows/{names['failed']}/cancel")
    if "{job}" in text:
        names["job"] = (await wire.send("POST", "/v1/runs", json=RUN)).json()["data"]["job_id"]
    if "{connection}" in text:
        listed = await wire.send("GET", "/v1/providers/connections")
        names["connection"] = listed.json()["data"]["items"][0]["id"]
    if path.endswith("/share"):  # for operators
        own = (await wire.send("GET", "/v1/account")).json()["id"]
        await wire.engine.core.store.write([UpdateRow("accounts", own, {"operator": True})])
    for name, value in names.items():
        path = path.replace("{" + name + "}", value)
    if body == "a file":
        return path, {"files": {"file": ("a.txt", b"tea leaves")}}
    if body is None:
        return path, {}
    return path, {"json": {k: names.get(str(v).strip("{}"), v) for k, v in body.items()}}


def test_every_post_is_in_the_table() -> None:
    """Given the routes, then each that can be posted to is tried below, or excepted."""
    posts = {operation.path for operation in OPERATIONS if operation.method == "POST"}
    shape = {path.split("{")[0] + path.rpartition("}")[2] for path in posts - EXCEPTED}
    assert shape == {path.split("{")[0] + path.rpartition("}")[2] for path in POSTS}


@pytest.mark.parametrize("path", POSTS)
async def test_many_at_once_do_the_work_once(wire: Wire, path: str) -> None:
    """Given a key, when its request is sent many times at once, then all have the first answer."""
    if "{blocked}" in path:  # as nothing is connected
        path_, options = await prepare_post(wire, path, POSTS[path])
        await connect_caller(wire)
    else:
        await connect_caller(wire)
        path_, options = await prepare_post(wire, path, POSTS[path])
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


async def test_vendors_are_called_once(settings: Settings) -> None:
    """Given sixteen copies of a run, then the vendor is called, and paid, once."""
    faults = Faults()
    async with open_wire(settings, faults=faults) as wire:
        await connect_caller(wire)
        headers = {"Idempotency-Key": "once", "Prefer": "wait=60"}
        sent = [wire.send("POST", "/v1/runs", json=RUN, headers=headers) for _ in range(16)]
        assert {answer.json()["status"] for answer in await asyncio.gather(*sent)} == {"completed"}
        assert sum(call.billed for call in faults.calls) == 1


@pytest.mark.parametrize("path", [p for p in POSTS if "{" not in p and p != "/v1/route"])
async def test_a_crash_before_the_answer(
    settings: Settings, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a process that dies before it answers, then the next one does not do it again."""
    async with open_wire(settings) as wire:
        await connect_caller(wire)
        path, options = await prepare_post(wire, path, POSTS[path])
        headers = {"Idempotency-Key": "once"}

        async def dies(*_: object) -> None:
            raise RuntimeError("the process died here")

        monkeypatch.setattr(IdempotencyStore, "save", dies)
        assert (await wire.send("POST", path, headers=headers, **options)).status_code == 500
        monkeypatch.undo()
        before = await wire.rows()

    engine = await open_engine(settings)
    async with serve_wire(engine) as again:
        again.headers = wire.headers
        answer = await again.send("POST", path, headers=headers, **options)
        assert answer.status_code in (201, 202), answer.text
        assert answer.headers["idempotency-replayed"] == "true"
        here = await again.send("GET", f"{path}/{answer.json()['id']}")
        assert here.status_code == 200
        made = path.removeprefix("/v1/").replace("providers/", "").replace("runs", "jobs")
        assert (await again.rows())[made] == before[made]
    await engine.close(0)


async def test_two_processes_do_it_once(settings: Settings) -> None:
    """Given two engines on one directory, when both are asked at once, then one of them does it."""
    engines = [await open_engine(settings) for _ in range(2)]
    async with contextlib.AsyncExitStack() as stack:
        wires = [await stack.enter_async_context(serve_wire(engine)) for engine in engines]
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
    for engine in engines:
        await engine.close(0)


async def test_the_same_key_for_something_else(wire: Wire) -> None:
    """Given a key that was used, then another body or path is refused, and another account not."""
    await connect_caller(wire)
    headers = {"Idempotency-Key": "once"}
    first = await wire.send("POST", "/v1/runs", json=RUN, headers=headers)
    for path, body in (("/v1/runs", {**RUN, "input": {"objective": "Milk"}}), ("/v1/route", RUN)):
        refused = await wire.send("POST", path, json=body, headers=headers)
        assert refused.status_code == 422
        assert refused.json()["error"]["code"] == "IDEMPOTENCY_CONFLICT"
    other = Wire(wire.http, wire.engine, await wire.sign_up("grace@example.org"))
    await connect_caller(other)
    theirs = await other.send("POST", "/v1/runs", json=RUN, headers=headers)
    assert theirs.json()["id"] != first.json()["id"]


async def test_what_was_refused_may_be_sent_again(wire: Wire) -> None:
    """Given a refusal, then nothing is kept of it: the same key works once it can be done."""
    headers = {"Idempotency-Key": "once"}
    refused = await wire.send("POST", "/v1/runs", json=RUN, headers=headers)
    assert refused.json()["error"]["code"] == "CREDENTIALS_MISSING"
    await connect_caller(wire)
    assert (await wire.send("POST", "/v1/runs", json=RUN, headers=headers)).status_code == 202


async def test_the_first_answer_stays(wire: Wire) -> None:
    """Given a run that has ended since, then its key still has the first answer."""
    await connect_caller(wire)
    headers = {"Idempotency-Key": "once"}
    first = await wire.send("POST", "/v1/runs", json=RUN, headers=headers)
    await wire.send("GET", f"/v1/runs/{first.json()['id']}/events?wait=5")
    assert (await wire.send("POST", "/v1/runs", json=RUN, headers=headers)).content == first.content


@pytest.mark.parametrize("path", ["/v1/runs", "/v1/agents", "/v1/route"])
async def test_an_earlier_version_shares_the_directory(wire: Wire, path: str) -> None:
    """Given an answer, then its row is what earlier versions replay, and theirs is replayed."""
    await connect_caller(wire)
    headers = {"Idempotency-Key": "once"}
    first = await wire.send("POST", path, json=POSTS[path], headers=headers)
    store = wire.engine.core.store
    (row,) = await store.find_rows("idempotency")
    assert (row["status"], row["body"]) == (first.status_code, first.text)
    theirs = {"status": 201, "body": '{"id":"run_1","data":{"id":"run_1","then":"more"}}'}
    await store.write([UpdateRow("idempotency", row["id"], theirs)])
    again = await wire.send("POST", path, json=POSTS[path], headers=headers)
    assert (again.status_code, again.text) == (theirs["status"], theirs["body"])


@pytest.mark.parametrize(("hours", "kept"), [(24, True), (26, False)])
async def test_how_long_a_key_is_kept(wire: Wire, hours: int, kept: bool) -> None:
    """Given a key of a day ago, then it holds; of longer ago, then it is new again."""
    await connect_caller(wire)
    headers = {"Idempotency-Key": "once"}
    first = await wire.send("POST", "/v1/runs", json=RUN, headers=headers)
    store = wire.engine.core.store
    await store.write([])
    (row,) = await store.find_rows("idempotency")
    then = datetime.fromisoformat(row["created_at"]) - timedelta(hours=hours)
    await store.write([UpdateRow("idempotency", row["id"], {"created_at": format_rfc3339(then)})])
    again = await wire.send("POST", "/v1/runs", json=RUN, headers=headers)
    assert (again.json()["id"] == first.json()["id"]) is kept


async def test_accounts_are_excepted_and_strangers_refused(wire: Wire) -> None:
    """Given a key, then an account is opened each time, and nobody without a key is answered."""
    headers = {"Idempotency-Key": "once"}
    for email in ("b@example.org", "c@example.org"):
        made = await wire.http.post("/v1/account", json={"email": email}, headers=headers)
        assert made.status_code == 201
    assert (await wire.http.post("/v1/runs", json=RUN, headers=headers)).status_code == 401
    assert "sk_live_" not in str(await wire.engine.core.store.find_rows("idempotency"))


async def test_old_answers_are_swept_up(wire: Wire) -> None:
    """Given an answer of the day before yesterday, then it is forgotten without being asked for."""
    await connect_caller(wire)
    await wire.send("POST", "/v1/runs", json=RUN, headers={"Idempotency-Key": "old"})
    await wire.send("POST", "/v1/runs", json=RUN, headers={"Idempotency-Key": "new"})
    store = wire.engine.core.store
    first = (await store.find_rows("idempotency"))[0]
    await store.write([UpdateRow("idempotency", first["id"], {"created_at": "2020-01-01"})])
    sweeper = asyncio.create_task(wire.engine.idempotency.sweep_expired())

    async def is_swept() -> bool:
        return len(await store.find_rows("idempotency")) == 1

    await wait_until_async(is_swept)
    sweeper.cancel()
    assert (await store.find_rows("idempotency"))[0]["id"] != first["id"]
