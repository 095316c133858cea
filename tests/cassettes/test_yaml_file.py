"""The file of a cassette: it has no secret and every byte of an answer, or is rejected."""

import asyncio
import base64
import gzip
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capabilities.conftest import mp3
from tests.cassettes.conftest import cut_off, read_exchanges
from tests.test_canaries import TAIL, VARIABLES
from tests.vendors.conftest import PNG
from toolkit import Client, ServiceError, WorkError, Workflow
from toolkit.cassettes import Cassette, CassetteMode, yaml_file
from toolkit.cassettes.matching import RequestKey
from toolkit.settings import Settings

RUNS: dict[str, tuple[str, dict[str, object]]] = {
    **dict.fromkeys(
        ("openai", "anthropic", "google", "minimax", "aws"), ("llm.generate", {"objective": "Tea"})
    ),
    "elevenlabs": ("speech.generate", {"text": "Tea."}),
    "runpod": ("image.generate", {"prompt": "Tea"}),
}
Handler = Callable[[httpx.Request], Any]


def open_tape(tape: Path, name: str, mode: Any = "replay") -> Client:
    """A client of the real vendors, with nothing set up."""
    settings = Settings(data_dir=tape.parent / name, retries=0, max_cooldown_wait_s=0)
    return Client.local(settings=settings, cassette=tape, mode=mode)


def answer_by(monkeypatch: pytest.MonkeyPatch, handler: Handler) -> None:
    """Replace the network by a handler, and provide a key for it."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890")
    monkeypatch.setattr(
        "toolkit.engine.transport.checking_transport.CheckingTransport",
        lambda: httpx.MockTransport(handler),
    )


def run_capability(client: Client, vendor: str, **fields: object) -> Any:
    """Connect a vendor and run its capability."""
    client.connections.create(vendor, "environment", VARIABLES[vendor][0])
    capability, values = RUNS[vendor]
    run = client.runs.create(capability, {**values, **fields}, provider=vendor).wait(progress=False)
    return run.record.cost_usd, client.artifacts.get(run.artifact_id).record.size_bytes


def chat(text: str) -> dict[str, Any]:
    """An answer in which each of the LLM vendors finds its text."""
    usage = {"prompt_tokens": 5, "completion_tokens": 7, "inputTokens": 5, "outputTokens": 7}
    return {
        "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
        "content": [{"type": "text", "text": text}],
        "candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}],
        "output": {"message": {"content": [{"text": text}]}},
        "usage": {**usage, "input_tokens": 5, "output_tokens": 7},
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 7},
    }


def quote_request(request: httpx.Request) -> httpx.Response:
    """A working vendor that echoes each part of the request in its answers."""
    echo = f"{list(request.headers.values())} {request.url}"
    keys = [v for pair in VARIABLES.values() for v in (pair[1], json.dumps(pair[1])) if pair[1]]
    echo += " ".join([*keys, *(httpx.QueryParams({"k": key}).get("k") for key in keys)])
    headers = {
        "x-request-id": "req-1", "cf-ray": "ray-1", "set-cookie": "session=cookie-1",
        "date": "Sat, 01 Jan 2000 00:00:00 GMT", "x-cost-note": echo.replace('"', "'"),
        "character-cost": "4", "x-private": "private-1",
    }  # fmt: skip
    if "text-to-speech" in request.url.path:
        return httpx.Response(200, headers={**headers, "content-type": "audio/mpeg"}, content=SOUND)
    image = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    body = {**chat(echo), "request_id": "req-2", "nested": [{"Trace-Id": "req-3", "echo": echo}]}
    if request.url.path.endswith("/run"):
        body = {"id": "job-7", "status": "IN_QUEUE", "echo": echo}
    elif "/status/" in request.url.path:
        output = {"image_url": image, "echo": echo}
        body = {"id": "job-7", "status": "COMPLETED", "output": output}
    return httpx.Response(200, headers=headers, json=body)


SOUND = mp3(1.0)
LINES = 5


@pytest.mark.parametrize("vendor", RUNS)
def test_records_no_secret_and_no_id_of_a_call(
    tape: Path, monkeypatch: pytest.MonkeyPatch, vendor: str
) -> None:
    """Given a vendor that echoes its key, then the file has no secret, and replays without it."""
    answer_by(monkeypatch, quote_request)
    for name, secret in VARIABLES.values():
        monkeypatch.setenv(name, secret)
    mine = VARIABLES[vendor][1]
    monkeypatch.setattr("tests.cassettes.test_yaml_file.VARIABLES", {vendor: VARIABLES[vendor]})
    with open_tape(tape, "a", "record") as client:
        cost, _ = run_capability(client, vendor)
    text = tape.read_text(encoding="utf-8")
    assert TAIL not in text
    assert mine[:12] not in text
    for scrubbed in ("req-1", "req-2", "req-3", "ray-1", "cookie-1", "private-1", "Jan 2000"):
        assert scrubbed not in text
    assert "x-request-id: scrubbed" in text
    assert ("job-7" in text) == (vendor == "runpod")
    assert tape.stat().st_mode & 0o777 == 0o600
    assert not list(tape.parent.glob(".run.yaml*"))
    monkeypatch.delenv(VARIABLES[vendor][0])
    with cut_off(), open_tape(tape, "b") as client:
        assert run_capability(client, vendor)[0] == cost


def test_records_a_compressed_answer_as_text(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given an answer in gzip, then the file has its text, and the replay too."""
    packed = gzip.compress(json.dumps(chat("Tea is served.")).encode())
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    answer_by(monkeypatch, lambda _: httpx.Response(200, headers=headers, content=packed))
    with open_tape(tape, "a", "record") as client:
        first = run_capability(client, "openai")
    assert "Tea is served." in tape.read_text(encoding="utf-8")
    with cut_off(), open_tape(tape, "b") as client:
        assert run_capability(client, "openai") == first


def test_replays_without_the_region_of_the_credentials(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given credentials with a region, then a replay without them has the same calls and costs."""
    hosts: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        hosts.append(request.url.host)
        return httpx.Response(200, json=chat("Tea."))

    answer_by(monkeypatch, answer)
    name, secret = VARIABLES["aws"]
    monkeypatch.setenv(name, json.dumps({**json.loads(secret), "region": "eu-west-1"}))
    with open_tape(tape, "a", "record") as client:
        first = run_capability(client, "aws")
    assert hosts == ["bedrock-runtime.eu-west-1.amazonaws.com"]
    with cut_off(), open_tape(tape, "b") as client:
        assert run_capability(client, "aws") == first
        job = client.jobs.list()[0].record
        assert job.model == "eu.amazon.nova-2-lite-v1:0"
        with pytest.raises(WorkError, match=r"POST bedrock-runtime\.\*\.amazonaws\.com/model/"):
            run_capability(client, "aws", system="Be brief.")


def test_repeated_requests_replay_in_order(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given two answers to the same request, then a third replay repeats the second answer."""
    numbers = itertools.count(1)
    answer_by(monkeypatch, lambda _: httpx.Response(200, json=chat("x" * next(numbers))))
    with open_tape(tape, "a", "record") as client:
        assert [run_capability(client, "openai")[1] for _ in range(2)] == [1, 2]
    with cut_off(), open_tape(tape, "b") as client:
        assert [run_capability(client, "openai")[1] for _ in range(4)] == [1, 2, 2, 2]


def test_records_crossing_answers_in_request_order(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given answers that overtake each other, then the file has the order of the requests."""
    texts: list[str] = []
    answered = [asyncio.Event() for _ in range(LINES)]

    async def cross(request: httpx.Request) -> httpx.Response:
        text = json.loads(request.content)["messages"][0]["content"]
        place = len(texts)
        texts.append(text)
        if place % 2 == 0 and place + 1 < LINES:
            await answered[place + 1].wait()
        answered[place].set()
        return httpx.Response(200, json=chat(text))

    answer_by(monkeypatch, cross)
    wf = Workflow("lines")
    for i in range(LINES):
        wf.add(f"n{i}", "llm.generate", objective=f"Line {i}")
    with open_tape(tape, "a", "record") as client:
        client.connections.create("openai", "environment", "OPENAI_API_KEY")
        client.workflows.submit(wf).wait(progress=False)
    bodies = [json.loads(exchange["request"]["body"]) for exchange in read_exchanges(tape)]
    assert [body["messages"][0]["content"] for body in bodies] == texts
    with cut_off(), open_tape(tape, "b") as client:
        client.connections.create("openai", "environment", "OPENAI_API_KEY")
        workflow = client.workflows.submit(wf).wait(progress=False)
        replayed = {node.id: workflow.artifact(node.id).text() for node in workflow.nodes}
    assert replayed == {f"n{i}": f"Line {i}" for i in range(LINES)}


def test_auto_without_a_key_sends_nothing(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given `auto` and no key, then known requests are answered, and no other request is sent."""
    answer_by(monkeypatch, lambda _: httpx.Response(200, json=chat("Tea.")))
    with open_tape(tape, "a", "auto") as client:
        first = run_capability(client, "openai")
    sent: list[httpx.Request] = []
    answer_by(monkeypatch, lambda request: sent.append(request) or httpx.Response(500))
    monkeypatch.delenv("OPENAI_API_KEY")
    with open_tape(tape, "b", "auto") as client:
        assert run_capability(client, "openai") == first
        with pytest.raises(WorkError, match="SECRET_UNRESOLVED"):
            run_capability(client, "openai", system="Be brief.")
    assert not sent


def test_record_replaces_a_damaged_cassette(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a damaged cassette, when it is recorded again, then it is whole."""
    tape.write_text("version: 1\nexchanges: [", encoding="utf-8")
    answer_by(monkeypatch, lambda _: httpx.Response(200, json=chat("Tea.")))
    for name in ("a", "b"):
        with open_tape(tape, name, "record") as client:
            run_capability(client, "openai")
        assert len(read_exchanges(tape)) == 1


@pytest.mark.parametrize("mode", ["replay", "auto"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version: 1\nexchanges: [", r"is damaged in line [23]: record"),
        ("version: 1\nexchanges:\n- request: {method: GET}\n", "is damaged: exchange 1"),
        ("version: 1\nexchanges:\n- 7\n", "is damaged: exchange 1"),
        ("version: 1\nexchanges: !!python/object/apply:os.getcwd []\n", "is damaged"),
        ("version: 2\nexchanges: []\n", r"made by a later version of the toolkit \(format 2\)"),
        ("version: 1\nanswers:\n- {when: tea, text: Yes.}\n", "made by hand: add made_by"),
        ("version: 1\nmade_by: hand\nanswers:\n- {when: tea}\n", "answer 1 must have `when`"),
        ("version: 1\nmade_by: hand\nanswers: [{when: ' ', text: Y}]\n", "answer 1 has an empty"),
        ("exchanges: []\n", "is not a cassette"),
        ("tea\n", "is not a cassette"),
    ],
)
def test_rejects_an_unusable_cassette(tape: Path, text: str, message: str, mode: str) -> None:
    """Given a file that cannot be used, then one line says why, and the file stays unchanged."""
    tape.write_text(text, encoding="utf-8")
    with pytest.raises(ServiceError, match=message) as refused:
        open_tape(tape, "a", mode)
    assert "`run.yaml`" in refused.value.message
    assert str(tape.parent) not in str(refused.value)
    assert tape.read_text(encoding="utf-8") == text


def test_does_not_overwrite_another_kind_of_file(tape: Path) -> None:
    """Given a file that is no cassette, when it is to be recorded over, then it is kept."""
    tape.write_text("# My notes\n", encoding="utf-8")
    with pytest.raises(ServiceError, match="not overwritten"):
        open_tape(tape, "a", "record")
    assert tape.read_text(encoding="utf-8") == "# My notes\n"


def test_rejects_an_unknown_mode(tape: Path) -> None:
    """Given a misspelled mode, then the error lists the three modes."""
    with pytest.raises(ValueError, match="replay, record, auto"):
        open_tape(tape, "a", "rewind")


ODD = ["", "\n", " a\n  b\n\n", "a\r\nb\r", "\ta", "a\x85b\u2028c\ufeff", "🫖", "- a: 'b'\n"]


@given(st.binary() | st.text().map(str.encode) | st.sampled_from(ODD).map(str.encode))
def test_keeps_every_byte_of_an_answer(body: bytes) -> None:
    """Given any body, when it is written and read, then it is the same to the byte."""
    key = RequestKey("POST", "https://a.example/x", body.decode("latin-1"))
    exchange = yaml_file.RecordedExchange(key, 200, {"content-type": "text/plain"}, body)
    text = f"{yaml_file.FILE_HEADER}\n{yaml_file.as_yaml(exchange)}"
    assert yaml_file.parse_cassette(text, Path("x")) == ([exchange], [])


@pytest.mark.parametrize("mode", ["record", "auto", "replay"])
def test_rejects_a_directory(tmp_path: Path, mode: CassetteMode) -> None:
    """Given a directory in place of the file, then the error says so in one line."""
    with pytest.raises(ServiceError, match="is a directory: choose a file"):
        Cassette.open(tmp_path, mode)


def test_rejects_a_mode_without_a_cassette(tmp_path: Path) -> None:
    """Given a mode and no file, then the error names the missing argument."""
    with pytest.raises(ValueError, match="cassette="):
        Client.local(tmp_path, sandbox=True, mode="record")
