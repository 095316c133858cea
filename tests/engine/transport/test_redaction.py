"""Redaction of the vendor's key in answers that echo it."""

import asyncio
import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.support.engine_accounts import connect_account, run_to_end
from toolkit.engine import Engine
from toolkit.engine.transport.redaction import REDACTED, StreamRedactor, redact_reply
from toolkit.plugins import Cost, Reply
from toolkit.plugins.key_redaction import list_key_forms
from toolkit.settings import Settings, VendorSettings

KEY = "k-3vTq/81+LmZx0Rw=9aPcYd"
RAW = KEY.encode()
ECHOES = {
    "whole": KEY,
    "in a word": f"x{KEY}y",
    "its beginning": KEY[:18],
    "its end": KEY[-17:],
    "its middle": KEY[4:21],
    "percent": quote(KEY, safe=""),
    "hex": RAW.hex(),
    "base64": base64.b64encode(RAW).decode(),
    "base64 of basic": base64.b64encode(b"u:" + RAW).decode(),
    "base64 for addresses": base64.urlsafe_b64encode(b"api:" + RAW).decode(),
    "twice": f"{KEY} {KEY}",
}


def redact_text(text: str, secret: str = KEY) -> str:
    """Redact a text as a single piece."""
    redactor = StreamRedactor(list_key_forms(secret))
    return redactor.add(text) + redactor.finish()


@dataclass(frozen=True, slots=True, kw_only=True)
class Nested(Reply):
    """A reply of a third-party vendor, with nested values."""

    within: Any


@pytest.mark.parametrize(
    "wrap",
    [
        lambda key: [key],
        lambda key: {"a": [{"b": (1, key)}]},
        lambda key: {key: 1},
        lambda key: Cost(units={key: 1.0}),
        lambda key: (Cost(units={key: 1.0}), key.encode()),
    ],
)
def test_redacts_nested_values_of_a_reply(wrap: Callable[[str], Any]) -> None:
    """Given a key in a nested value, then it is removed, and other values stay."""
    reply = Nested(model="m", within=wrap(KEY))
    assert redact_reply(reply, list_key_forms(KEY)) == Nested(model="m", within=wrap(REDACTED))


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
def test_redacts_every_form_of_a_key_in_pieces_of_any_size(echo: str) -> None:
    """Given a key in any form, then no 16 characters of it are left, and other text is.

    Pieces of any size leave at most three more characters than the whole text.
    """
    text = f"The key is {echo}, {KEY[:9]} is it not? {KEY[3:]}{KEY[-3:]}"
    whole = redact_text(text)
    assert whole.startswith("The key is ")
    assert " is it not? " in whole
    for start in range(len(echo) - 15):
        assert echo[start : start + 16] not in whole
    parts = whole.split(REDACTED)
    assert len(parts) > 1
    pattern = re.compile(f".{{0,3}}{re.escape(REDACTED)}".join(map(re.escape, parts)))
    for size in range(1, len(text) + 1):
        redactor = StreamRedactor(list_key_forms(KEY))
        pieces = [redactor.add(text[at : at + size]) for at in range(0, len(text), size)]
        assert pattern.fullmatch("".join((*pieces, redactor.finish())))


@pytest.mark.parametrize("secret", [KEY, json.dumps({"access_key": KEY, "region": "eu-west-1"})])
def test_leaves_other_text_unchanged(secret: str) -> None:
    """Given a text without a part of the key, then it is unchanged, also if the secret is JSON."""
    text = 'In {"access_key": "eu-west-1"} there is k-3vTq and no more, ' + "a" * 500
    assert redact_text(text, secret) == text
    assert redact_text(f"so {KEY}.", secret) == f"so {REDACTED}."


async def test_stores_no_echo_of_a_key(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a vendor that answers with the key, then output, artifact, events, database lack it."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    content = f"Your key is {KEY}, or {ECHOES['base64']}."

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"] == f"Bearer {KEY}"
        message = {"role": "assistant", "content": content}
        return httpx.Response(
            200,
            headers={"x-request-id": KEY},
            json={
                "id": KEY, "model": KEY, "choices": [{"message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 3, "completion_tokens": 9},
            },
        )  # fmt: skip

    openai = VendorSettings(base_urls={"api": "http://vendor.test/v1"})
    real = settings.model_copy(update={"sandbox": False, "vendors": {"openai": openai}})
    engine = await Engine.open(real, transport=httpx.MockTransport(answer))
    context = await connect_account(engine, "openai")
    run = await run_to_end(engine, context, "llm.generate", {"objective": "What is my key?"})
    assert run.status == "completed", run.error
    assert REDACTED in str(run.output)
    await engine.close(0)
    for file in await asyncio.to_thread(lambda: [*Path(settings.data_dir).rglob("*")]):
        if file.is_file():
            stored = file.read_bytes()
            assert RAW not in stored
            assert ECHOES["base64"].encode()[:24] not in stored
