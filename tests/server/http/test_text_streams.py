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
