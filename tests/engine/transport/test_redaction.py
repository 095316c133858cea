"""A vendor that echoes the key in an answer that is none of an error."""

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
from toolkit.settings import Settings, VendorSettings

KEY = "k-3vTq/81+LmZx0Rw=9aPcYd"


def list_key_echoes() -> dict[str, str]:
    """List the forms that a vendor may echo the key in."""
    raw = KEY.encode()
    return {
        "whole": KEY,
        "in a word": f"x{KEY}y",
        "its beginning": KEY[:18],
        "its end": KEY[-17:],
        "its midst": KEY[4:21],
        "percent": quote(KEY, safe=""),
        "hex": raw.hex(),
        "base64": base64.b64encode(raw).decode(),
        "base64 of basic": base64.b64encode(b"u:" + raw).decode(),
        "base64 for addresses": base64.urlsafe_b64encode(b"api:" + raw).decode(),
        "twice": f"{KEY} {KEY}",
    }


def redact_text(text: str, secret: str) -> str:
    """The text without the key, given as a whole."""
    redactor = StreamRedactor(secret)
    return redactor.add(text) + redactor.finish()


@pytest.mark.parametrize("form", list_key_echoes())
def test_no_piece_of_a_key_is_left(form: str) -> None:
    """Given a key in any form, then nothing of it is left that is long enough to be known by."""
    said = list_key_echoes()[form]
    left = redact_text(f"The key is {said}, is it not?", KEY)
    assert left.startswith("The key is ")
    assert left.endswith(", is it not?")
    assert REDACTED in left
    for start in range(len(said) - 15):
        assert said[start : start + 16] not in left


@dataclass(frozen=True, slots=True, kw_only=True)
class Nested(Reply):
    """A reply of a vendor of one's own, with values in values."""

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
def test_no_value_in_a_reply_has_a_key(wrap: Callable[[str], Any]) -> None:
    """Given a key in a value of a value, then it is removed, and the rest is as it was."""
    reply = Nested(model="m", within=wrap(KEY))
    assert redact_reply(reply, KEY) == Nested(model="m", within=wrap(REDACTED))


@pytest.mark.parametrize("form", list_key_echoes())
def test_a_text_in_pieces_is_redacted_as_the_whole(form: str) -> None:
    """Given a text that is cut anywhere, then no more of a key is shown than three characters."""
    said = list_key_echoes()[form]
    text = f"The key is {said}, {KEY[:9]} is it not? {KEY[3:]}{KEY[-3:]}"
    kept = redact_text(text, KEY).split(REDACTED)
    shown = re.compile(f".{{0,3}}{re.escape(REDACTED)}".join(map(re.escape, kept)))
    for size in range(1, len(text) + 1):
        redactor = StreamRedactor(KEY)
        pieces = [redactor.add(text[at : at + size]) for at in range(0, len(text), size)]
        assert shown.fullmatch("".join((*pieces, redactor.finish())))


@pytest.mark.parametrize("secret", [KEY, json.dumps({"access_key": KEY, "region": "eu-west-1"})])
def test_other_words_stay(secret: str) -> None:
    """Given a text that has nothing of the key, then it is as it was: also where JSON holds it."""
    text = 'In {"access_key": "eu-west-1"} there is k-3vTq and no more, ' + "a" * 500
    assert redact_text(text, secret) == text
    assert redact_text(f"so {KEY}.", secret) == f"so {REDACTED}."


async def test_an_echo_is_stored_nowhere(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a vendor that answers with the key, then output, artifact, events, database lack it."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    said = f"Your key is {KEY}, or {base64.b64encode(KEY.encode()).decode()}."

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"] == f"Bearer {KEY}"
        message = {"role": "assistant", "content": said}
        return httpx.Response(
            200,
            headers={"x-request-id": KEY},
            json={
                "id": KEY, "model": KEY, "choices": [{"message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 3, "completion_tokens": 9},
            },
        )  # fmt: skip

    own = VendorSettings(base_urls={"api": "http://vendor.test/v1"})
    real = settings.model_copy(update={"sandbox": False, "vendors": {"openai": own}})
    engine = await Engine.open(real, transport=httpx.MockTransport(answer))
    context = await connect_account(engine, "openai")
    done = await run_to_end(engine, context, "llm.generate", {"objective": "What is my key?"})
    assert done.status == "completed", done.error
    assert REDACTED in str(done.output)
    await engine.close(0)
    for file in await asyncio.to_thread(lambda: [*Path(settings.data_dir).rglob("*")]):
        if file.is_file():
            held = file.read_bytes()
            assert KEY.encode() not in held
            assert base64.b64encode(KEY.encode())[:24] not in held
