"""The sandbox: its clouds, seeds and schemas."""

import json
import subprocess
import sys
import time
from typing import Any, TypeAlias

import httpx
import jsonschema
import pytest

from tests.planning.sample_capabilities import build_view
from tests.sandbox.conftest import client_for
from toolkit.capabilities import load_capabilities
from toolkit.planning.llm_planner import ModelRequest, build_planner_input
from toolkit.planning.model_reply import read_plan_reply
from toolkit.planning.plan_validator import PlanRules
from toolkit.planning.review.judge import JudgeBrief, JudgedText, build_judge_input
from toolkit.plugins.fencing import fence_text
from toolkit.sandbox import create_app
from toolkit.sandbox.state import SandboxState
from toolkit.sandbox.text.chat import ChatTurn, generate_reply

CHAT = "/openai/v1/chat/completions"

BODY = {"model": "gpt-6-luna", "messages": [{"role": "user", "content": "One line about tea"}]}

RUN = "/runpod-jobs/v2/black-forest-labs-flux-1-dev/run"


async def record_script(seed: int) -> list[bytes]:
    """Record the answers of a fresh cloud, and their ids."""
    app = create_app(seed)
    seen = []
    async with client_for(app, "OPENAI_API_KEY") as client:
        for _ in range(2):
            reply = await client.post(CHAT, json=BODY)
            seen += [reply.content, reply.headers["x-request-id"].encode()]
    async with client_for(app, "RUNPOD_API_KEY") as client:
        for _ in range(2):
            seen.append((await client.post(RUN, json={"input": {"prompt": "sea"}})).content)
    return seen


async def test_seed_decides_every_byte() -> None:
    """Given clouds of the same seed, then each byte is the same; another seed differs."""
    first, second, different = [await record_script(seed) for seed in (1, 1, 2)]
    assert first == second
    assert first[0] != different[0]
    assert first[0] == first[2], "the same chat gives the same body"
    assert first[1] != first[3], "each request has its own id"
    assert first[4] != first[5], "each submission is its own job"


async def test_same_upload_gives_same_id() -> None:
    """Given another boundary of the same upload, then the ids are the same."""
    ids = []
    for boundary in ("aaaa1111", "bbbb2222"):
        body = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nx\r\n'
            f"--{boundary}--\r\n"
        )
        async with client_for(create_app(), "MINIMAX_API_KEY") as client:
            kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
            reply = await client.post("/minimax/v1/files/upload", content=body, headers=kind)
            ids.append(reply.json()["trace_id"])
    assert ids[0] == ids[1]


async def test_logs_calls(
    openai: httpx.AsyncClient, anonymous: httpx.AsyncClient, state: SandboxState
) -> None:
    """Given calls, then the log has their vendor, path, status and whether they were billed."""
    await openai.post(CHAT, json=BODY)
    await anonymous.post(CHAT, json=BODY)
    calls = (await anonymous.get("/_sandbox/calls")).json()["calls"]
    assert [(c["n"], c["status"], c["billed"]) for c in calls] == [(1, 200, True), (2, 401, False)]
    assert calls[0]["path"] == "/v1/chat/completions"
    assert calls[0]["vendor"] == "openai"
    assert calls[0]["digest"] == calls[1]["digest"]
    assert len(state.calls) == 2
    assert (await anonymous.delete("/_sandbox/calls")).status_code == 204
    assert state.calls == []


async def test_fault_applies_as_often_as_ordered(openai: httpx.AsyncClient) -> None:
    """Given a fault for two calls, then the third call succeeds."""
    fault = {"vendor": "openai", "status": 429, "headers": {"Retry-After": "2"}, "times": 2}
    assert (await openai.post("/_sandbox/faults", json=fault)).status_code == 201
    replies = [await openai.post(CHAT, json=BODY) for _ in range(3)]
    assert [reply.status_code for reply in replies] == [429, 429, 200]
    assert replies[0].headers["retry-after"] == "2"


async def test_fault_matches_vendor_and_path(
    openai: httpx.AsyncClient, state: SandboxState
) -> None:
    """Given a fault for another vendor or path, then a call succeeds."""
    state.faults.fail("minimax", status=500, times=1)
    state.faults.fail("openai", path_contains="/models", status=500, times=1)
    assert (await openai.post(CHAT, json=BODY)).status_code == 200
    assert (await openai.get("/openai/v1/models")).status_code == 500
    assert len((await openai.get("/_sandbox/faults")).json()["faults"]) == 1
    await openai.delete("/_sandbox/faults")
    assert len(state.faults) == 0


async def test_fault_has_any_body(openai: httpx.AsyncClient, state: SandboxState) -> None:
    """Given broken JSON, a page or a vendor's error as a body, then it is sent and not billed."""
    for status, body in [
        (200, '{"choices": ['),
        (502, "<html><h1>Bad gateway</h1></html>"),
        (500, {"error": {"code": "server_error"}}),
    ]:
        state.faults.fail("openai", status=status, body=body, times=1)
    broken, page, error = [await openai.post(CHAT, json=BODY) for _ in range(3)]
    assert broken.text == '{"choices": ['
    assert page.headers["content-type"] == "text/html"
    assert error.json()["error"]["code"] == "server_error"
    assert not any(call.billed for call in state.calls)


async def test_delays_an_answer(openai: httpx.AsyncClient, state: SandboxState) -> None:
    """Given a latency, then the vendor's own answer comes after it."""
    state.faults.latency("openai", mean_ms=30, times=1)
    before = time.monotonic()
    reply = await openai.post(CHAT, json=BODY)
    assert time.monotonic() - before >= 0.03
    assert reply.status_code == 200


@pytest.mark.parametrize(
    "fault",
    [
        {},
        {"vendor": "x"},
        {"vendor": "openai", "times": "2"},
        {"vendor": "openai", "share": 1.5},
        {"vendor": "openai", "mangle": "eat"},
        {"vendor": "openai", "rate_per_s": 0},
    ],
)
async def test_rejects_an_invalid_fault(
    openai: httpx.AsyncClient, fault: dict[str, object]
) -> None:
    """Given a fault without an effect or with an invalid field, then it is refused."""
    assert (await openai.post("/_sandbox/faults", json=fault)).status_code == 400


async def test_answers_an_unknown_path_in_json(openai: httpx.AsyncClient) -> None:
    """Given an unknown path or method, then the answer is 404 or 405 in JSON."""
    assert (await openai.get("/openai/v1/none")).status_code == 404
    assert (await openai.get("/nobody")).json()["error"]["code"] == 404
    assert (await openai.get(CHAT)).status_code == 405


def test_import_loads_no_server_library() -> None:
    """Given an import, then no server library is loaded, and the app loads only the sandbox."""
    code = (
        "import sys, toolkit.sandbox as s\n"
        "heavy = {'starlette', 'PIL', 'lameenc', 'httpx'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "s.create_app()\n"
        "ours = [m for m in sys.modules if m.startswith('toolkit.')]\n"
        "wrong = [m for m in ours if not m.startswith('toolkit.sandbox')]\n"
        "assert not wrong, wrong\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


Json: TypeAlias = dict[str, Any]

CAPABILITIES = load_capabilities()

RULES = PlanRules({capability.id: capability for capability in CAPABILITIES})


def ask_model(request: Json) -> str:
    """Return the answer to an input of `llm.generate`."""
    rule, material = fence_text(request.get("context", ""))
    system, user = f"{request['system']}\n\n{rule}", f"{request['objective']}\n\n{material}"
    turns = [ChatTurn("system", system), ChatTurn("user", user)]
    return generate_reply(turns, schema=request["output_schema"]).text


@pytest.mark.parametrize(
    ("objective", "nodes", "deliverables"),
    [
        ("Write a poem about tea", ["text"], ["text"]),
        ("A picture of a mill", ["picture"], ["picture"]),
        ("Facts about glaciers, and a summary of them", ["facts", "text"], ["text"]),
        ("A social card about tea with a picture", ["picture", "text", "card"], ["card"]),
        ("A card about tea, and read it aloud", ["text", "speech", "card"], ["card", "speech"]),
    ],
)
def test_plans_an_objective(objective: str, nodes: list[str], deliverables: list[str]) -> None:
    """Given the planner's request, then the answer is a valid plan."""
    request: Json = build_planner_input(ModelRequest(objective, CAPABILITIES, frozenset()))
    answer = ask_model(request)

    plan = json.loads(answer)
    jsonschema.validate(plan, request["output_schema"])
    assert [node["id"] for node in plan["nodes"]] == nodes
    assert plan["deliverables"] == deliverables
    assert read_plan_reply(answer, objective, build_view(CAPABILITIES), RULES).faults == []


def test_asks_about_an_objective_without_a_topic() -> None:
    """Given an objective that names no topic, then the answer is a question."""
    request = build_planner_input(ModelRequest("Make it", CAPABILITIES, frozenset()))
    plan = json.loads(ask_model(request))
    assert plan["nodes"] == []
    assert plan["question"]


@pytest.mark.parametrize("member", ["issues", "findings"])
def test_finds_nothing_as_a_judge(member: str) -> None:
    """Given the judge's request, then the answer is an empty list of any name."""
    texts = [JudgedText("copy", "Write about tides", "Tides turn twice a day.")]
    request: Json = build_judge_input(JudgeBrief("Write about tides", texts))
    (items,) = request["output_schema"]["properties"].values()
    schema = {"type": "object", "properties": {member: items}, "required": [member]}

    answer = json.loads(ask_model({**request, "output_schema": schema}))

    jsonschema.validate(answer, schema)
    assert answer == {member: []}


NODE = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "maxLength": 40},
        "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
    },
    "required": ["text", "next"],
}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "number", "exclusiveMaximum": -6},
        {"type": "integer", "minimum": 3, "maximum": 3},
        {"type": "integer", "minimum": 4, "multipleOf": 5},
        {"type": "string", "minLength": 80, "maxLength": 90},
        {"type": "string", "enum": ["calm", "bold"]},
        {"anyOf": [{"type": "string", "format": "uri"}, {"type": "null"}]},
        {"type": "number", "minimum": 0, "maximum": 1},
        {"type": "boolean"},
        {"properties": {"tags": {"type": "array", "items": {"type": "string"}}}},
        {"type": "array", "items": {"type": "string"}, "minItems": 7, "maxItems": 7},
        {"allOf": [{"properties": {"a": {"type": "integer"}}}, {"required": ["a"]}]},
        {"$ref": "#/$defs/node", "$defs": {"node": NODE}},
    ],
)
def test_fills_any_schema(schema: Json) -> None:
    """Given bounds, or a recursive schema, then the answer is valid."""
    root = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
    root["$defs"] = schema.get("$defs", {})
    text = generate_reply([ChatTurn("user", "Five facts about tea")], schema=root).text
    jsonschema.validate(json.loads(text), root)


@pytest.mark.parametrize(("words", "items"), [("Five facts", 5), ("Seven names", 7), ("Facts", 3)])
def test_list_has_the_requested_number_of_items(words: str, items: int) -> None:
    """Given a number of items, then a list has this many."""
    schema = {"type": "object", "properties": {"list": {"type": "array"}}, "required": ["list"]}
    text = generate_reply([ChatTurn("user", f"{words} about tea")], schema=schema).text
    assert len(json.loads(text)["list"]) == items
