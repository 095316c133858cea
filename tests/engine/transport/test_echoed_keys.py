"""A vendor that echoes a key, in any form and place, as a caller sees it over a real socket."""

import base64
import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from tests.support.loopback_server import JsonHandler, LoopbackServer
from toolkit import Client
from toolkit.settings import Settings

KEY = "sk-q7Zt/81+LmXc0RwV9aPcYdH3nUfGe5"
RAW = KEY.encode()
FORMS = {
    "whole": KEY,
    "its last 12 characters": KEY[-12:],
    "its first 12 characters": KEY[:12],
    "12 from its midst": KEY[9:21],
    "its reverse": KEY[::-1],
    "a part of its reverse": KEY[::-1][3:18],
    "base64": base64.b64encode(RAW).decode(),
    "base64 without padding": base64.b64encode(RAW).decode().rstrip("="),
    "base64 of its end without padding": base64.b64encode(RAW[-17:]).decode().rstrip("="),
    "base64 of basic": base64.b64encode(b"user:" + RAW).decode().rstrip("="),
    "hex": RAW.hex(),
}
# In an answer, what is shorter than 16 characters also occurs in unrelated texts.
LONG_FORMS = {name: form for name, form in FORMS.items() if len(form) > 16}

# What a form is, and how and where JSON spells it, are undone one after the other.
SPELLED_FORMS = [
    *((name, "plain", "value") for name in LONG_FORMS),
    *product(["whole"], ["plain", "escaped", "slashes"], ["name", "inner name"]),
    *product(["whole"], ["escaped", "slashes"], ["value"]),
]


class Echo(LoopbackServer):
    """A vendor whose next answer is chosen by the test.

    Attributes:
        status: the status of the answer.
        body: its body.
    """

    def __init__(self) -> None:
        self.status = 200
        self.body: Any = {}
        echo = self

        class Handler(JsonHandler):
            def answer_get(self) -> None:
                self.send_json(echo.status, echo.body)

            def answer_post(self) -> None:
                self.read_json()
                self.send_json(echo.status, echo.body)

        super().__init__(Handler)

    def say(self, text: str) -> None:
        """Answer with a text."""
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 3, "completion_tokens": 3}
        choice = {"message": message, "finish_reason": "stop"}
        self.status = 200
        self.body = {"id": "c-1", "model": "m", "choices": [choice], "usage": usage}


@pytest.fixture(scope="module")
def echo() -> Iterator[Echo]:
    """The vendor."""
    made = Echo()
    yield made
    made.close()


@pytest.fixture(scope="module")
def client(echo: Echo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of an engine that calls the vendor with the key."""
    settings = Settings(
        data_dir=tmp_path_factory.mktemp("echo"),
        vendors={name: {"base_urls": {"api": echo.url}} for name in ("openai", "runpod")},
        connection_test_s=0,
        retries=0,
        breaker_failures=1_000_000,
        max_cooldown_wait_s=0,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ECHOED", KEY)
        with Client.local(settings=settings) as client:
            for provider in ("openai", "runpod"):
                client.connections.create(provider, "environment", "ECHOED")
            yield client


def run(client: Client, **fields: object) -> Any:
    """Run something at the vendor, and return the record."""
    asked = {"objective": "What is my key?", **fields}
    run = client.runs.create("llm.generate", asked, provider="openai", cache=False)
    return run.wait(check=False, progress=False).record


def find_pieces(text: str, form: str, length: int) -> list[str]:
    """Find each piece of a form of that length that is in a text."""
    pieces = (form[at : at + length] for at in range(len(form) - length + 1))
    return [piece for piece in pieces if piece in text]


@pytest.mark.parametrize("name", FORMS)
def test_no_piece_of_a_key_is_in_an_error(client: Client, echo: Echo, name: str) -> None:
    """Given a refusal that echoes the key, then no 8 characters of the echo are in any message."""
    echo.status, echo.body = 400, {"error": {"message": f"Bad key {FORMS[name]}, is it not"}}
    record = run(client)
    asked = {one.record.provider: one.id for one in client.connections.list()}
    tested = client.connections.test(asked["openai"]).record
    for message in (record.error.message, tested.error.message):
        assert "Bad key [key]" in message
        assert not find_pieces(message, FORMS[name], 8)
    assert not find_pieces(record.model_dump_json(), FORMS[name], 8)


@pytest.mark.parametrize(("name", "spelling", "place"), SPELLED_FORMS)
def test_a_key_is_in_no_member_of_a_json_answer(
    client: Client, echo: Echo, name: str, spelling: str, place: str
) -> None:
    """Given JSON with the key as a name or a value, spelled in any way, then it is nowhere."""
    form = LONG_FORMS[name]
    spelled = {
        "plain": form,
        "escaped": "".join(f"\\u{ord(letter):04x}" for letter in form),
        "slashes": form.replace("/", "\\/"),
    }[spelling]
    echo.say(
        {
            "name": f'{{"{spelled}": 1}}',
            "value": f'{{"a": "{spelled}"}}',
            "inner name": f'{{"a": [{{"is {spelled}": {{}}}}]}}',
        }[place]
    )
    record = run(client, output_schema={"type": "object"})
    assert record.status == "completed"
    assert not find_pieces(json.dumps(record.output), form, 16)
    assert "[key]" in json.dumps(record.output["json"])
    echo.say(f'{{"{spelled}": 1}}')
    strict = {"type": "object", "additionalProperties": {"type": "string"}}
    failed = run(client, output_schema=strict)
    assert failed.status == "failed"
    assert not find_pieces(failed.model_dump_json(), form, 12)


def test_a_key_is_in_no_catalogue(client: Client, echo: Echo) -> None:
    """Given a catalogue of GPUs that echoes the key, then it is in no member of it."""
    echo.status = 200
    echo.body = {
        "gpus": [
            {"id": name, "name": f"A GPU of {form}", "pool": form, "price": {form: 1.0}}
            for name, form in LONG_FORMS.items()
        ]
    }
    gpus = {gpu.id: gpu.record for gpu in client.catalog.gpus()}
    for name, form in LONG_FORMS.items():
        assert gpus[name].name.startswith("A GPU of")
        assert not find_pieces(gpus[name].model_dump_json(), form, 16)


@pytest.mark.parametrize("name", FORMS)
def test_a_key_is_in_no_error_of_infrastructure(client: Client, echo: Echo, name: str) -> None:
    """Given a refusal to create an endpoint that echoes the key, then the error has none of it."""
    echo.status, echo.body = 400, {"error": f"Bad key {FORMS[name]}, is it not"}
    error = client.endpoints.create().record.error
    assert error is not None
    assert "Bad key [key]" in error.message
    assert not find_pieces(error.message, FORMS[name], 8)
