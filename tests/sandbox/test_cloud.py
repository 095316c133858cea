"""The cloud itself: determinism, the call log, faults by HTTP, and imports."""

import subprocess
import sys
import time

import httpx
import pytest

from tests.sandbox.conftest import client_for
from toolkit.sandbox import create_app
from toolkit.sandbox.state import SandboxState

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
