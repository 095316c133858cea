"""The file of a cassette: no secret in it, every byte of an answer, and what is refused."""

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
from tests.cassettes.test_cassettes import cut_off, exchanges
from tests.test_canaries import TAIL, VARIABLES
from tests.vendors.conftest import PNG
from toolkit import Client, ServiceError, WorkError, Workflow
from toolkit.cassettes import Cassette, CassetteMode, yaml_file
from toolkit.cassettes.matching import RequestKey
from toolkit.settings import Settings

ASKED: dict[str, tuple[str, dict[str, object]]] = {
    **dict.fromkeys(
        ("openai", "anthropic", "google", "minimax", "aws"), ("llm.generate", {"objective": "Tea"})
    ),
    "elevenlabs": ("speech.generate", {"text": "Tea."}),
    "runpod": ("image.generate", {"prompt": "Tea"}),
}
Handler = Callable[[httpx.Request], Any]


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """Where a cassette goes."""
    return tmp_path / "run.yaml"


def open_tape(tape: Path, name: str, mode: Any = "replay") -> Client:
    """A client of the real vendors, with nothing set up."""
    settings = Settings(data_dir=tape.parent / name, retries=0, max_cooldown_wait_s=0)
    return Client.local(settings=settings, cassette=tape, mode=mode)


def answer_by(monkeypatch: pytest.MonkeyPatch, handler: Handler) -> None:
    """Put a handler in the place of the network."""
    monkeypatch.setattr(
        "toolkit.engine.transport.checking_transport.CheckingTransport",
        lambda: httpx.MockTransport(handler),
    )


def run_capability(client: Client, vendor: str, **more: object) -> Any:
    """Connect a vendor and run what it is for."""
    client.connections.create(vendor, "environment", VARIABLES[vendor][0])
    capability, asked = ASKED[vendor]
    run = client.runs.create(capability, {**asked, **more}, provider=vendor).wait(progress=False)
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
    """A vendor that works, and quotes all it was sent wherever it can."""
    said = f"{list(request.headers.values())} {request.url}"
    keys = [v for pair in VARIABLES.values() for v in (pair[1], json.dumps(pair[1])) if pair[1]]
    said += " ".join([*keys, *(httpx.QueryParams({"k": key}).get("k") for key in keys)])
    headers = {
        "x-request-id": "req-1", "cf-ray": "ray-1", "set-cookie": "session=cookie-1",
        "date": "Sat, 01 Jan 2000 00:00:00 GMT", "x-cost-note": said.replace('"', "'"),
        "character-cost": "4", "x-private": "private-1",
    }  # fmt: skip
    if "text-to-speech" in request.url.path:
        return httpx.Response(200, headers={**headers, "content-type": "audio/mpeg"}, content=SOUND)
    image = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    body = {**chat(said), "request_id": "req-2", "nested": [{"Trace-Id": "req-3", "echo": said}]}
    if request.url.path.endswith("/run"):
        body = {"id": "job-7", "status": "IN_QUEUE", "echo": said}
    elif "/status/" in request.url.path:
        output = {"image_url": image, "echo": said}
        body = {"id": "job-7", "status": "COMPLETED", "output": output}
    return httpx.Response(200, headers=headers, json=body)


SOUND = mp3(1.0)
LINES = 5


@pytest.mark.parametrize("vendor", ASKED)
def test_no_secret_and_no_calls_own_id_is_recorded(
    tape: Path, monkeypatch: pytest.MonkeyPatch, vendor: str
) -> None:
    """Given a vendor that quotes its key, then the file has none, and replays without one."""
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
    with cut_off(monkeypatch), open_tape(tape, "b") as client:
        assert run_capability(client, vendor)[0] == cost


def test_a_packed_answer_is_recorded_as_what_is_in_it(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given an answer in gzip, then its text is in the file, and is what is replayed."""
    packed = gzip.compress(json.dumps(chat("Tea is served.")).encode())
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    answer_by(monkeypatch, lambda _: httpx.Response(200, headers=headers, content=packed))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890")
    with open_tape(tape, "a", "record") as client:
        first = run_capability(client, "openai")
    assert "Tea is served." in tape.read_text(encoding="utf-8")
    with cut_off(monkeypatch), open_tape(tape, "b") as client:
        assert run_capability(client, "openai") == first


def test_the_region_of_a_signing_secret_is_not_needed(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given credentials that name a region, then a replay, which has none, asks and costs alike."""
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
    with cut_off(monkeypatch), open_tape(tape, "b") as client:
        assert run_capability(client, "aws") == first
        job = client.jobs.list()[0].record
        assert job.model == "eu.amazon.nova-2-lite-v1:0"
        with pytest.raises(WorkError, match=r"POST bedrock-runtime\.\*\.amazonaws\.com/model/"):
            run_capability(client, "aws", system="Be brief.")


def test_the_same_request_is_answered_in_order_and_then_by_the_last(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given two answers to the same request, then the third time is as the second."""
    numbers = itertools.count(1)
    answer_by(monkeypatch, lambda _: httpx.Response(200, json=chat("x" * next(numbers))))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890")
    with open_tape(tape, "a", "record") as client:
        assert [run_capability(client, "openai")[1] for _ in range(2)] == [1, 2]
    with cut_off(monkeypatch), open_tape(tape, "b") as client:
        assert [run_capability(client, "openai")[1] for _ in range(4)] == [1, 2, 2, 2]


def test_answers_that_cross_are_kept_in_the_order_of_the_requests(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given every other answer after the next one, then the file is as they were asked for."""
    asked: list[str] = []
    answered = [asyncio.Event() for _ in range(LINES)]

    async def cross(request: httpx.Request) -> httpx.Response:
        text = json.loads(request.content)["messages"][0]["content"]
        place = len(asked)
        asked.append(text)
        if place % 2 == 0 and place + 1 < LINES:
            await answered[place + 1].wait()
        answered[place].set()
        return httpx.Response(200, json=chat(text))

    answer_by(monkeypatch, cross)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890")
    wf = Workflow("lines")
    for i in range(LINES):
        wf.add(f"n{i}", "llm.generate", objective=f"Line {i}")
    with open_tape(tape, "a", "record") as client:
        client.connections.create("openai", "environment", "OPENAI_API_KEY")
        client.workflows.submit(wf).wait(progress=False)
    bodies = [json.loads(each["request"]["body"]) for each in exchanges(tape)]
    assert [body["messages"][0]["content"] for body in bodies] == asked
    with cut_off(monkeypatch), open_tape(tape, "b") as client:
        client.connections.create("openai", "environment", "OPENAI_API_KEY")
        done = client.workflows.submit(wf).wait(progress=False)
        texts = {node.id: client.artifacts.get(node.artifact_id).text() for node in done.nodes}
    assert texts == {f"n{i}": f"Line {i}" for i in range(5)}


def test_auto_without_a_key_replays_and_sends_nothing(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given `auto` and no key, then what is known is answered, and what is new is not sent."""
    answer_by(monkeypatch, lambda _: httpx.Response(200, json=chat("Tea.")))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890")
    with open_tape(tape, "a", "auto") as client:
        first = run_capability(client, "openai")
    monkeypatch.delenv("OPENAI_API_KEY")
    sent: list[httpx.Request] = []
    answer_by(monkeypatch, lambda request: sent.append(request) or httpx.Response(500))
    with open_tape(tape, "b", "auto") as client:
        assert run_capability(client, "openai") == first
        with pytest.raises(WorkError, match="SECRET_UNRESOLVED"):
            run_capability(client, "openai", system="Be brief.")
    assert not sent


def test_record_begins_anew(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a damaged cassette, when it is recorded again, then it is whole."""
    tape.write_text("version: 1\nexchanges: [", encoding="utf-8")
    answer_by(monkeypatch, lambda _: httpx.Response(200, json=chat("Tea.")))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890")
    for name in ("a", "b"):
        with open_tape(tape, name, "record") as client:
            run_capability(client, "openai")
        assert len(exchanges(tape)) == 1


@pytest.mark.parametrize("mode", ["replay", "auto"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version: 1\nexchanges: [", r"is damaged in line [23]: record"),
        ("version: 1\nexchanges:\n- request: {method: GET}\n", "is damaged: exchange 1"),
        ("version: 1\nexchanges:\n- 7\n", "is damaged: exchange 1"),
        ("version: 1\nexchanges: !!python/object/apply:os.getcwd []\n", "is damaged"),
        ("version: 2\nexchanges: []\n", r"made by a later version of the toolkit \(format 2\)"),
        ("version: 1\nanswers:\n- {when: tea, text: Yes.}\n", "made by hand: add made_by"),
        ("version: 1\nmade_by: hand\nanswers:\n- {when: tea}\n", "answer 1 must have `when`"),
        (
            "version: 1\nmade_by: hand\nanswers:\n- {when: ' ', text: Yes.}\n",
            "answer 1 has an empty",
        ),
        ("exchanges: []\n", "is not a cassette"),
        ("tea\n", "is not a cassette"),
    ],
)
def test_what_is_no_sound_cassette_is_refused(tape: Path, text: str, said: str, mode: str) -> None:
    """Given a file that cannot be used, then one line says why, and it stays as it was."""
    tape.write_text(text, encoding="utf-8")
    with pytest.raises(ServiceError, match=said) as refused:
        open_tape(tape, "a", mode)
    assert "`run.yaml`" in refused.value.message
    assert str(tape.parent) not in str(refused.value)
    assert tape.read_text(encoding="utf-8") == text


def test_another_kind_of_file_is_not_overwritten(tape: Path) -> None:
    """Given a file that is no cassette, when it is to be recorded over, then that is refused."""
    tape.write_text("# My notes\n", encoding="utf-8")
    with pytest.raises(ServiceError, match="not overwritten"):
        open_tape(tape, "a", "record")
    assert tape.read_text(encoding="utf-8") == "# My notes\n"


def test_a_mode_that_there_is_not_is_refused(tape: Path) -> None:
    """Given a misspelled mode, then the three that there are are named."""
    with pytest.raises(ValueError, match="replay, record, auto"):
        open_tape(tape, "a", "rewind")


ODD = [
    "",
    "\n",
    " a\n  b\n\n",
    "a\r\nb\r",
    "\ta",
    "a\x85b\u2028c\ufeff",
    "🫖",
    "- a: 'b'\n",
    "a \nb ",
]


@given(st.binary() | st.text().map(str.encode) | st.sampled_from(ODD).map(str.encode))
def test_every_byte_of_an_answer_comes_back(body: bytes) -> None:
    """Given any body, when it was written and read, then it is the same to the byte."""
    key = RequestKey("POST", "https://a.example/x", body.decode("latin-1"))
    kept = yaml_file.RecordedExchange(key, 200, {"content-type": "text/plain"}, body)
    text = f"{yaml_file.FILE_HEADER}\n{yaml_file.as_yaml(kept)}"
    assert yaml_file.parse_cassette(text, Path("x")) == ([kept], [])


@pytest.mark.parametrize("mode", ["record", "auto", "replay"])
def test_a_directory_is_no_cassette(tmp_path: Path, mode: CassetteMode) -> None:
    """Given a directory where the file should be, then the error says so in one line."""
    with pytest.raises(ServiceError, match="is a directory: choose a file"):
        Cassette.open(tmp_path, mode)


def test_a_mode_without_a_cassette(tmp_path: Path) -> None:
    """Given a mode and no file, then nothing is passed over: the error names what lacks."""
    with pytest.raises(ValueError, match="cassette="):
        Client.local(tmp_path, sandbox=True, mode="record")
