"""Large uploads and vendor answers do not block the loop (promise P36).

They are processed in threads, which block the loop if they hold the interpreter lock. So each test
measures the processor time of the whole process between two turns of a loop that is never idle for
long. `test_loop_blocking` explains the unit of comparison.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server.conftest import Wire
from tests.server.responsiveness.test_loop_blocking import (
    MAX_MS,
    PROMISED_MS,
    TRIES,
    UNIT_MS,
    unit_s,
)
from tests.support.timing import yield_turns
from toolkit.contract.connections import ConnectionCreate
from toolkit.contract.runs import Run, RunCreate
from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext
from toolkit.settings import Settings, VendorSettings

MIB = 1024 * 1024
UPLOADED, REPLIED = 49 * MIB, 60 * MIB
TICK_S = 0.002
FORM = (
    b'--frontier\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n',
    b"\r\n--frontier--\r\n",
)
KIND = "multipart/form-data; boundary=frontier"


def repeat_unit(unit: bytes, size: int) -> bytes:
    """Return a repeated unit of at most a size."""
    return unit * (size // len(unit))


async def longest_ms(work: Callable[[], Coroutine[Any, Any, None]]) -> float:
    """Return the longest time between two turns of the loop during some work, in promised ms."""
    tries = []
    for _ in range(TRIES):
        units = [unit_s()]
        longest, working = 0.0, asyncio.ensure_future(work())
        while not working.done():
            began = time.process_time()
            await asyncio.sleep(TICK_S)
            longest = max(longest, time.process_time() - began)
        await working
        units.append(unit_s())
        # Copying bytes takes as long on a machine whose other work is faster.
        tries.append(longest * min(1000, UNIT_MS / max(units)))
        if tries[-1] < PROMISED_MS * 0.8:
            break
    return min(tries)


UPLOADS: dict[str, tuple[Callable[[], bytes], str]] = {
    "bytes": (lambda: repeat_unit(b"\xff\0", UPLOADED), "application/octet-stream"),
    "letters": (lambda: repeat_unit("\u6f6e".encode(), UPLOADED), "text/plain"),
    "boundaries that are none": (lambda: repeat_unit(b"\r\n--frontie", UPLOADED), "text/plain"),
    "brackets": (lambda: repeat_unit(b"[", UPLOADED) + b"]", "text/plain"),
    "lists": (lambda: b"[" + repeat_unit(b"[],", UPLOADED) + b"0]", "application/json"),
}


@pytest.mark.parametrize("name", UPLOADS)
async def test_no_upload_blocks_the_loop(wire: Wire, name: str) -> None:
    """Given the largest upload, sent as fast as possible, then the loop has its turns."""
    make, media_type = UPLOADS[name]
    data, tries = make(), 0

    async def body() -> AsyncIterator[bytes]:
        yield FORM[0]
        for at in range(0, len(data), MIB):
            yield data[at : at + MIB]
            await yield_turns()
        yield FORM[1]

    async def upload() -> None:
        nonlocal tries
        tries += 1
        headers = {"Content-Type": KIND, "Idempotency-Key": str(tries)}
        answer = await wire.send("POST", "/v1/artifacts", content=body(), headers=headers)
        assert answer.status_code == 201, answer.text
        assert answer.json()["data"]["media_type"] == media_type

    assert await longest_ms(upload) < MAX_MS


def build_chat_answer(content: bytes) -> bytes:
    """Build an answer of a chat."""
    usage = b'"usage":{"prompt_tokens":3,"completion_tokens":9}'
    message = b'{"role":"assistant","content":"' + content + b'"}'
    choices = b'"choices":[{"finish_reason":"stop","message":' + message + b"}]"
    return b'{"id":"a","model":"MiniMax-M3",' + choices + b"," + usage + b"}"


def build_speech_answer(audio: bytes) -> bytes:
    """Build an answer with audio."""
    return b'{"data":{"audio":"' + audio + b'"},"base_resp":{"status_code":0}}'


SAY = ("speech.generate", {"text": "Tea"})
WRITE = ("llm.generate", {"objective": "Tea"})
BAD = "PROVIDER_BAD_RESPONSE"
MP3 = b"fffb9064" + b"00" * 413
REPLIES: dict[str, tuple[tuple[str, dict[str, object]], Callable[[], bytes], str]] = {
    "speech": (SAY, lambda: build_speech_answer(repeat_unit(MP3, 40 * MIB)), "completed"),
    "an audio of letters": (SAY, lambda: build_speech_answer(repeat_unit(b"z", REPLIED)), BAD),
    "lists": (WRITE, lambda: b"[" + repeat_unit(b"[],", REPLIED) + b"0]", BAD),
    "texts": (WRITE, lambda: b"[" + repeat_unit(b'"t",', REPLIED) + b"0]", BAD),
    "a long text": (WRITE, lambda: build_chat_answer(repeat_unit(b"tea ", 4 * MIB)), "completed"),
    "too long a text": (WRITE, lambda: build_chat_answer(repeat_unit(b'\\"a', 24 * MIB)), BAD),
}  # fmt: skip


class LargeAnswerTransport(httpx.AsyncBaseTransport):
    """A vendor that answers with many bytes."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def handle_async_request(self, _request: httpx.Request) -> httpx.Response:
        """Answer piece by piece, as vendors do."""

        async def pieces() -> AsyncIterator[bytes]:
            for at in range(0, len(self._body), 64 * 1024):
                yield self._body[at : at + 64 * 1024]
                await yield_turns()

        return httpx.Response(200, headers={"Content-Type": "application/json"}, content=pieces())


@pytest.mark.parametrize("name", REPLIES)
async def test_no_answer_blocks_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Given the largest vendor answer, usable or not, then the loop has its turns."""
    (capability, fields), make, expected = REPLIES[name]
    monkeypatch.setenv("MINIMAX_API_KEY", "a-key-of-some-length-that-may-be-echoed")
    vendor = VendorSettings(base_urls={"api": "http://vendor.test"})
    settings = Settings(data_dir=tmp_path / "data", vendors={"minimax": vendor}, retries=0)
    engine = await Engine.open(settings, transport=LargeAnswerTransport(make()))
    owner, _ = await engine.accounts.open_local_account()
    context = RequestContext(owner.id)
    pointer = ConnectionCreate(
        provider="minimax", connection_type="environment", secret_ref="MINIMAX_API_KEY"
    )
    await engine.connections.create(context, pointer, tested=False)
    runs: list[Run] = []

    async def run() -> None:
        created = await engine.runs.create(context, RunCreate(name=capability, input=fields))
        await engine.wait(context, created.id, 60)
        runs.append(await engine.runs.get(context, created.id))

    longest = await longest_ms(run)
    await engine.close(0)
    outcomes = {run.error.code if run.error else run.status for run in runs}
    assert outcomes == {expected}, json.dumps([run.model_dump(mode="json") for run in runs])[:2000]
    assert longest < MAX_MS
