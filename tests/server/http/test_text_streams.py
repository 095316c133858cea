"""Texts as they are written: `event: delta` on the event stream of a run, a workflow or a job."""

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
# The calls of each vendor that are asked for a stream, where the path says so.
STREAMING_PATHS = {"google": "streamGenerateContent", "aws": "converse-stream"}


@pytest.fixture
def client(settings: Settings, faults: Faults) -> Iterator[Client]:
    """A client of a served sandbox that has connected every vendor."""
    server = Server(settings, faults)
    with Client(base_url=server.url, api_key=server.sign_up(*POINTERS)) as client:
        yield client
    server.close()


def post(client: Client, path: str, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    """POST, and the record that is answered."""
    sent = {"Authorization": f"Bearer {read_key(client)}", **headers}
    answer = httpx.post(client.access.base_url + path, json=body, headers=sent, timeout=PATIENCE_S)
    assert answer.status_code < 300, answer.text
    record: dict[str, Any] = answer.json()["data"]
    return record


def ask(provider: str, **more: Any) -> dict[str, Any]:
    """The body of a run that asks a provider for text."""
    given = {"objective": "Write two sentences about tides."}
    return {"name": "llm.generate", "input": given, "options": {"provider": provider}, **more}


def join_texts(told: Iterable[tuple[str, dict[str, Any]]]) -> dict[int, str]:
    """The text of each attempt."""
    texts: dict[int, str] = {}
    for name, data in told:
        if name == "delta":
            texts[data["attempt"]] = texts.get(data["attempt"], "") + data["text"]
    return texts


def watch(
    client: Client, path: str, body: dict[str, Any]
) -> tuple[dict[str, Any], list[tuple[str, dict[str, Any]]]]:
    """Work that is to be watched, and its stream."""
    work = post(client, path, body, Prefer="stream")
    return work, list(read_stream(client, f"{path}/{work['id']}/events"))


@pytest.mark.parametrize("provider", LLMS)
def test_text_comes_as_it_is_written(client: Client, faults: Faults, provider: str) -> None:
    """Given a run that is to be watched, then its pieces come before its end, and are its text."""
    faults.pace(provider, piece_ms=20)
    run, told = watch(client, "/runs", ask(provider))
    done = client.runs.get(run["id"])
    assert done.status == "completed", done.error
    assert join_texts(told) == {1: done.output["text"]}
    names = [name for name, _ in told]
    assert names.count("delta") >= 1
    assert names[-1] == "run.completed"
    assert {data["resource_id"] for _, data in told} == {run["id"]}
    # They were for those who watched: neither the list nor a stream has them later.
    assert "delta" not in {event.type for event in done.events()}
    assert join_texts(read_stream(client, f"/runs/{run['id']}/events")) == {}


def test_nobody_watches(client: Client, faults: Faults) -> None:
    """Given a run that nobody watches, then the vendor is not asked to stream."""
    for provider, path in STREAMING_PATHS.items():
        post(client, "/runs", ask(provider), Prefer="wait=30")
        post(client, "/runs", ask(provider), Prefer="wait=30, stream")
        asked = [path in c.path for c in faults.calls if c.vendor == provider and c.billed]
        assert asked == [False, True]


def test_a_stream_that_breaks_is_an_attempt(client: Client, faults: Faults) -> None:
    """Given a stream that breaks off, then the next attempt begins anew, and both are paid."""
    faults.mangle("openai", "truncate", times=1)
    run, told = watch(client, "/runs", ask("openai"))
    done = client.runs.get(run["id"])
    texts = join_texts(told)
    assert texts[2] == done.output["text"]
    assert texts[2].startswith(texts.get(1, ""))  # which is gone, if the second was over early
    assert texts[2] != texts.get(1)
    first, second = client.jobs.get(str(run["job_id"])).attempts
    assert (first.status, second.status) == ("failed", "completed")
    assert first.error is not None
    assert first.error.code == "PROVIDER_UNAVAILABLE"
    assert first.cost_usd == first.reservation_usd > 0  # it may have been billed
    assert second.cost_usd is not None


@pytest.mark.parametrize("cut", [1, 6])
def test_a_key_that_is_echoed_in_halves(client: Client, faults: Faults, cut: int) -> None:
    """Given a vendor that echoes the key in two pieces, then neither of them is shown."""
    key = SANDBOX_KEYS["OPENAI_API_KEY"]
    pieces = ("Your key is ", key[:cut], key[cut:], ", Ada.")
    chunks = [{"choices": [{"index": 0, "delta": {"content": one}}]} for one in pieces]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    body = "".join(f"data: {json.dumps(one)}\n\n" for one in [*chunks, end])
    faults.add(Fault("openai", body=body, headers={"content-type": "text/event-stream"}, times=1))
    run, told = watch(client, "/runs", ask("openai"))
    assert re.fullmatch(r"Your key is .{0,3}\[key\], Ada\.", join_texts(told)[1])
    assert client.runs.get(run["id"]).output["text"] == "Your key is [key], Ada."
