"""Texts while they are written: `event: delta` on the event streams of work."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import httpx
import pytest

from tests.conftest import POINTERS, Server
from tests.contract.conftest import read_key
from tests.server.conftest import read_stream
from tests.support.timing import PATIENCE_S
from toolkit import Client
from toolkit.sandbox import SANDBOX_KEYS, Fault, Faults
from toolkit.settings import Settings

LLMS = ["openai", "anthropic", "google", "minimax", "aws", "runpod"]
# The paths of streamed calls, of vendors whose paths differ.
STREAMING_PATHS = {"google": "streamGenerateContent", "aws": "converse-stream"}


@pytest.fixture
def client(settings: Settings, faults: Faults) -> Iterator[Client]:
    """A client of a served sandbox, connected to every vendor."""
    server = Server(settings, faults)
    with Client(base_url=server.url, api_key=server.sign_up(*POINTERS)) as client:
        yield client
    server.close()


def post(client: Client, path: str, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    """Post a body, and return the record."""
    request_headers = {"Authorization": f"Bearer {read_key(client)}", **headers}
    answer = httpx.post(
        client.access.base_url + path, json=body, headers=request_headers, timeout=PATIENCE_S
    )
    assert answer.status_code < 300, answer.text
    record: dict[str, Any] = answer.json()["data"]
    return record


def build_run(provider: str) -> dict[str, Any]:
    """Build the body of a run that asks a provider for text."""
    fields = {"objective": "Write two sentences about tides."}
    return {"name": "llm.generate", "input": fields, "options": {"provider": provider}}


def join_texts(events: Iterable[tuple[str, dict[str, Any]]]) -> dict[int, str]:
    """Return the text of each attempt."""
    texts: dict[int, str] = {}
    for name, data in events:
        if name == "delta":
            texts[data["attempt"]] = texts.get(data["attempt"], "") + data["text"]
    return texts


def watch(client: Client, provider: str) -> tuple[dict[str, Any], list[tuple[str, dict[str, Any]]]]:
    """Create a run with streamed text, and return it with the events of its stream."""
    run = post(client, "/runs", build_run(provider), Prefer="stream")
    return run, list(read_stream(client, f"/runs/{run['id']}/events"))


@pytest.mark.parametrize("provider", LLMS)
def test_streams_the_text_of_each_vendor(client: Client, faults: Faults, provider: str) -> None:
    """Given a run with streamed text, then its pieces precede its end, and join to its text."""
    faults.pace(provider, piece_ms=20)
    run, events = watch(client, provider)
    result = client.runs.get(run["id"])
    assert result.status == "completed", result.error
    assert join_texts(events) == {1: result.output["text"]}
    names = [name for name, _ in events]
    assert names.count("delta") >= 1
    assert names[-1] == "run.completed"
    assert {data["resource_id"] for _, data in events} == {run["id"]}
    # Only a stream that is open has the pieces: neither the list nor a later stream.
    assert "delta" not in {event.type for event in result.events()}
    assert join_texts(read_stream(client, f"/runs/{run['id']}/events")) == {}


def test_streams_reasoning_and_tool_calls_as_events_of_their_own(client: Client) -> None:
    """Given reasoning and a tool call, then `delta` has text alone, and the others their events."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tool = {"name": "weather", "description": "the weather of a city", "parameters": schema}
    body = build_run("anthropic")
    body["input"] |= {"objective": "What is the weather in Rome?", "reasoning": "low"}
    asked = {**body, "input": {**body["input"], "tools": [tool]}}
    run = post(client, "/runs", asked, Prefer="stream")
    events = list(read_stream(client, f"/runs/{run['id']}/events"))
    record = client.runs.get(run["id"])
    texts: dict[str, str] = {}
    for name, data in events:
        if name.endswith("delta"):
            assert name == ("delta" if data["kind"] == "text" else f"{data['kind']}_delta")
            texts[name] = texts.get(name, "") + data["text"]
    assert texts.keys() == {"reasoning_delta", "tool_call_delta"}
    assert texts["reasoning_delta"] == record.reasoning
    assert json.loads(texts["tool_call_delta"]) == {"city": "Rome"}
    (call,) = record.tool_calls
    named = {"index": 0, "id": call.id, "name": "weather"}
    assert next(d["tool_call"] for n, d in events if n == "tool_call_delta") == named


def test_a_late_stream_begins_with_each_part_so_far(client: Client, faults: Faults) -> None:
    """Given a stream that opens amid a text, then it begins with the whole reasoning and text."""
    faults.pace("anthropic", piece_ms=100)
    body = build_run("anthropic")
    body["input"] |= {"reasoning": "low"}
    run = post(client, "/runs", body, Prefer="stream")
    early = read_stream(client, f"/runs/{run['id']}/events")
    next(name for name, _ in early if name == "delta")
    late = list(read_stream(client, f"/runs/{run['id']}/events"))
    record = client.runs.get(run["id"])
    deltas = [(name, data["text"]) for name, data in late if name.endswith("delta")]
    assert deltas[0] == ("reasoning_delta", record.reasoning)
    assert {name for name, _ in deltas[1:]} == {"delta"}
    assert join_texts(late) == {1: record.output["text"]}
    assert list(early)[-1][0] == "run.completed"


def test_streams_only_on_request(client: Client, faults: Faults) -> None:
    """Given a run without `Prefer: stream`, then the vendor is not asked to stream."""
    for provider, path in STREAMING_PATHS.items():
        post(client, "/runs", build_run(provider), Prefer="wait=30")
        post(client, "/runs", build_run(provider), Prefer="wait=30, stream")
        is_streamed = [path in c.path for c in faults.calls if c.vendor == provider and c.billed]
        assert is_streamed == [False, True]


def test_broken_stream_is_a_failed_attempt(client: Client, faults: Faults) -> None:
    """Given a stream that breaks off, then the next attempt starts again, and both are paid."""
    faults.mangle("openai", "truncate", times=1)
    run, events = watch(client, "openai")
    texts = join_texts(events)
    assert texts[2] == client.runs.get(run["id"]).output["text"]
    assert texts[2].startswith(texts.get(1, ""))  # empty if the second attempt ended first
    assert texts[2] != texts.get(1)
    first, second = client.jobs.get(str(run["job_id"])).attempts
    assert (first.status, second.status) == ("failed", "completed")
    assert first.error is not None
    assert first.error.code == "PROVIDER_UNAVAILABLE"
    assert first.cost_usd == first.reservation_usd > 0  # it may have been billed
    assert second.cost_usd is not None


@pytest.mark.parametrize("cut", [1, 6])
@pytest.mark.parametrize("is_escaped", [False, True], ids=["plain", "escaped"])
def test_removes_a_key_from_reasoning_and_tool_calls(
    client: Client, faults: Faults, cut: int, is_escaped: bool
) -> None:
    """Given a vendor that echoes the key in other kinds of pieces, then no event has it.

    JSON may spell the key by escapes, of which each may be cut.
    """
    key = SANDBOX_KEYS["OPENAI_API_KEY"]
    deltas: list[dict[str, Any]] = [
        {"reasoning_content": f"The key is {key[:cut]}"},
        {"content": "Wait."},
        {"reasoning_content": f"{key[cut:]}."},
    ]
    letters = [f"\\u{ord(letter):04x}" if is_escaped else letter for letter in key]
    spelled = f'{{"key": "{"".join(letters)}"}}'
    function = {"name": f"tool-{key}", "arguments": spelled[: 9 + cut]}
    deltas.append({"tool_calls": [{"index": 0, "id": key, "function": function}]})
    rest = {"index": 0, "function": {"arguments": spelled[9 + cut :]}}
    deltas.append({"tool_calls": [rest]})
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in [*chunks, end])
    faults.add(Fault("openai", body=body, headers={"content-type": "text/event-stream"}, times=1))
    _, events = watch(client, "openai")
    assert {name for name, _ in events} >= {"delta", "reasoning_delta", "tool_call_delta"}
    shown = json.dumps(events)
    assert "[key]" in shown
    assert key[cut:] not in shown
    arguments = "".join(data["text"] for name, data in events if name == "tool_call_delta")
    assert re.fullmatch(r".{0,3}\[key\]", json.loads(arguments)["key"])


@pytest.mark.parametrize("cut", [1, 6])
def test_removes_a_key_that_is_echoed_in_two_pieces(
    client: Client, faults: Faults, cut: int
) -> None:
    """Given a vendor that echoes the key in two pieces, then the text has neither."""
    key = SANDBOX_KEYS["OPENAI_API_KEY"]
    pieces = ("Your key is ", key[:cut], key[cut:], ", Ada.")
    chunks = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in [*chunks, end])
    faults.add(Fault("openai", body=body, headers={"content-type": "text/event-stream"}, times=1))
    run, events = watch(client, "openai")
    assert re.fullmatch(r"Your key is .{0,3}\[key\], Ada\.", join_texts(events)[1])
    assert client.runs.get(run["id"]).output["text"] == "Your key is [key], Ada."
