"""Echoes of a key in answers of a vendor, in any form and place, over a real socket."""

import base64
import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from tests.support.loopback_server import JsonHandler, LoopbackServer
from tests.support.service_account import write_account
from toolkit import Client
from toolkit.settings import Settings

KEY = "sk-q7Zt/81+LmXc0RwV9aPcYdH3nUfGe5"
RAW = KEY.encode()
FORMS = {
    "whole": KEY,
    "its last 12 characters": KEY[-12:],
    "its first 12 characters": KEY[:12],
    "12 from its middle": KEY[9:21],
    "its reverse": KEY[::-1],
    "a part of its reverse": KEY[::-1][3:18],
    "base64": base64.b64encode(RAW).decode(),
    "base64 without padding": base64.b64encode(RAW).decode().rstrip("="),
    "base64 of its end without padding": base64.b64encode(RAW[-17:]).decode().rstrip("="),
    "base64 of basic": base64.b64encode(b"user:" + RAW).decode().rstrip("="),
    "hex": RAW.hex(),
}
# Parts shorter than 16 characters also occur in unrelated texts, so answers keep them.
LONG_FORMS = {name: form for name, form in FORMS.items() if len(form) > 16}

# The redaction of forms, spellings and places in JSON is independent of each other.
SPELLED_FORMS = [
    *((name, "plain", "value") for name in LONG_FORMS),
    *product(["whole"], ["plain", "escaped", "slashes"], ["name", "inner name"]),
    *product(["whole"], ["escaped", "slashes"], ["value"]),
]


class Echo(LoopbackServer):
    """A vendor with an answer that a test chooses.

    Attributes:
        status: the status of the answer.
        body: the body of the answer.
    """

    def __init__(self) -> None:
        self.status = 200
        self.body: Any = {}
        echo = self

        class Handler(JsonHandler):
            def answer_get(self) -> None:
                self.send_json(echo.status, echo.body)

            def answer_post(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
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
    echo = Echo()
    yield echo
    echo.close()


@pytest.fixture(scope="module")
def client(echo: Echo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of an engine that calls the vendor with the key."""
    settings = Settings(
        data_dir=tmp_path_factory.mktemp("echo"),
        vendors={
            "openai": {"base_urls": {"api": echo.url}},
            "runpod": {"base_urls": {"api": echo.url}},
            "vertex": {"base_urls": {"token": echo.url}},
        },
        connection_test_s=0,
        retries=0,
        breaker_failures=1_000_000,
        max_cooldown_wait_s=0,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ECHOED", KEY)
        patch.setenv("ACCOUNT", write_account())
        with Client.local(settings=settings) as client:
            for provider in ("openai", "runpod"):
                client.connections.create(provider, "environment", "ECHOED")
            client.connections.create("vertex", "environment", "ACCOUNT")
            yield client


def run(client: Client, provider: str = "openai", **fields: object) -> Any:
    """Run at the vendor, and return the record."""
    fields = {"objective": "What is my key?", **fields}
    run = client.runs.create("llm.generate", fields, provider=provider, cache=False)
    return run.wait(check=False, progress=False).record


def find_pieces(text: str, form: str, length: int) -> list[str]:
    """Find the pieces of a form, of a length, that are in a text."""
    pieces = (form[at : at + length] for at in range(len(form) - length + 1))
    return [piece for piece in pieces if piece in text]


@pytest.mark.parametrize("name", FORMS)
def test_errors_have_no_piece_of_a_key(client: Client, echo: Echo, name: str) -> None:
    """Given a rejection that echoes the key, then no message has 8 characters of the echo."""
    echo.status, echo.body = 400, {"error": {"message": f"Bad key {FORMS[name]}, is it not"}}
    record = run(client)
    ids = {connection.record.provider: connection.id for connection in client.connections.list()}
    test = client.connections.test(ids["openai"]).record
    for message in (record.error.message, test.error.message):
        assert "Bad key [key]" in message
        assert not find_pieces(message, FORMS[name], 8)
    assert not find_pieces(record.model_dump_json(), FORMS[name], 8)


@pytest.mark.parametrize(("name", "spelling", "place"), SPELLED_FORMS)
def test_json_answers_have_no_key(
    client: Client, echo: Echo, name: str, spelling: str, place: str
) -> None:
    """Given JSON with the key as a name or a value, in any spelling, then it is removed."""
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


def test_the_catalogue_has_no_key(client: Client, echo: Echo) -> None:
    """Given a catalogue of GPUs that echoes the key, then it is removed from each member."""
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
def test_errors_of_infrastructure_have_no_key(client: Client, echo: Echo, name: str) -> None:
    """Given a rejected endpoint with an echo of the key, then the error has no piece of it."""
    echo.status, echo.body = 400, {"error": f"Bad key {FORMS[name]}, is it not"}
    error = client.endpoints.create().record.error
    assert error is not None
    assert "Bad key [key]" in error.message
    assert not find_pieces(error.message, FORMS[name], 8)


def test_errors_of_a_sign_in_have_no_key(client: Client, echo: Echo) -> None:
    """Given a refused sign-in with an echo of a service account's key, then no error shows it."""
    lines = json.loads(write_account())["private_key"].splitlines()
    echo.status = 400
    echo.body = {"error": "invalid_request", "error_description": f"Bad key {lines[2]}, is it not"}
    record = run(client, "vertex")
    (connection,) = [c for c in client.connections.list() if c.provider == "vertex"]
    for message in (record.error.message, connection.test().record.error.message):
        assert "Bad key [key]" in message
        assert not find_pieces(message, lines[2], 8)
