"""Text by the two vendors that share the chat wire."""

import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.vendors.conftest import SECRET, TEXT, VendorDrive, flow, ok
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import Cost, ProviderError, TextReply, TextRequest

CLOSED: dict[str, object] = {
    "type": "object",
    "properties": {"title": {"type": "string"}},
    "required": ["title"],
    "additionalProperties": False,
}
both = pytest.mark.parametrize("vendor", ["minimax", "openai"])


def chat(
    content: object = "Because of the moon.",
    finish: str = "stop",
    *,
    message: dict[str, object] | None = None,
    usage: object = None,
) -> dict[str, Any]:
    """A chat completion, transcribed from the vendor's reference."""
    return {
        "id": "chatcmpl-1",
        "model": "model-2026",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "message": {"role": "assistant", "content": content, **(message or {})},
            }
        ],
        "usage": usage or {"prompt_tokens": 19, "completion_tokens": 6, "total_tokens": 25},
    }


def refusal(param: str | None, code: str = "unsupported_parameter") -> httpx.Response:
    """A 400 that names what it is about."""
    error = {"message": "No.", "type": "invalid_request_error", "param": param, "code": code}
    return httpx.Response(400, json={"error": error})


@both
def test_text_with_its_usage(drive: VendorDrive, vendor: str) -> None:
    """Given a plain answer, the reply has text, model, tokens and the vendor's id of the call."""
    reply = drive(flow(vendor, TEXT), ok(chat(), x_request_id="req_9"))
    assert reply == TextReply(
        text="Because of the moon.",
        finish="stop",
        model="model-2026",
        vendor_request_id="req_9",
        cost=Cost({"input_tokens": 19.0, "output_tokens": 6.0}),
    )
    sent = drive.body()
    assert sent["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Why do tides turn?"},
    ]
    assert sent["max_completion_tokens"] == 64
    assert "temperature" not in sent
    assert drive.requests[0].url.path == "/v1/chat/completions"


@both
def test_temperature_is_sent_where_given(drive: VendorDrive, vendor: str) -> None:
    """Given a temperature and no system text, both show in the request."""
    drive(flow(vendor, TextRequest(prompt="Hi", temperature=0.2)), ok(chat()))
    assert drive.body()["temperature"] == 0.2
    assert [one["role"] for one in drive.body()["messages"]] == ["user"]


@both
@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<think>\nThe moon pulls.\n</think>\n\nThe moon.", "The moon."),
        ("The moon, <think> as they say </think>.", "The moon, <think> as they say </think>."),
        ([{"type": "text", "text": "The "}, {"type": "text", "text": "moon."}], "The moon."),
        ("  The moon.\n", "The moon."),
        ("The\x00 moon\ud800.", "The moon?."),
        (None, ""),
    ],
    ids=["thoughts", "words about thoughts", "parts", "blanks", "NUL and surrogate", "null"],
)
def test_content_becomes_text(drive: VendorDrive, vendor: str, content: object, text: str) -> None:
    """Given content in any documented form, the reply has only the answer's own text."""
    assert drive(flow(vendor, TEXT), _answer_in_ascii(chat(content))).text == text


def _answer_in_ascii(body: object) -> httpx.Response:
    """JSON in ASCII, as only so it can carry a lone surrogate."""
    return httpx.Response(
        200, content=json.dumps(body).encode(), headers={"content-type": "application/json"}
    )


@both
@pytest.mark.parametrize("content", ["", None, "<think>The moon pulls, and"])
def test_cut_off_before_the_first_word(drive: VendorDrive, vendor: str, content: object) -> None:
    """Given nothing but the limit, the flow reports the truncation and not a success."""
    with pytest.raises(ProviderError, match="truncated before its first word") as caught:
        drive(flow(vendor, TEXT), ok(chat(content, "length")))
    assert caught.value.code is ErrorCode.PROVIDER_BAD_RESPONSE
    assert caught.value.retryable is False


@both
def test_cut_off_text_is_kept(drive: VendorDrive, vendor: str) -> None:
    """Given a text that ends at the limit, the reply says `length`."""
    reply = drive(flow(vendor, TEXT), ok(chat("Because of", "length")))
    assert (reply.text, reply.finish) == ("Because of", "length")


@both
@pytest.mark.parametrize(
    "body",
    [
        chat(None, message={"refusal": "I can't help with that."}),
        chat("", "content_filter"),
    ],
    ids=["refusal", "content filter"],
)
def test_refusal(drive: VendorDrive, vendor: str, body: dict[str, Any]) -> None:
    """Given a refusal or a filter's cut, the flow ends as rejected, not to be tried again."""
    with pytest.raises(ProviderError, match="refused to answer") as caught:
        drive(flow(vendor, TEXT), ok(body))
    assert caught.value.code is ErrorCode.PROVIDER_REJECTED
    assert caught.value.vendor_request_id == "chatcmpl-1"


@both
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"choices": []},
        {"choices": None},
        {"choices": ["text"]},
        {"choices": [{}]},
        {"choices": [{"message": "text"}]},
    ],
)
def test_answer_without_a_message(drive: VendorDrive, vendor: str, body: dict[str, Any]) -> None:
    """Given JSON that is no completion, the flow ends as a bad response."""
    with pytest.raises(ProviderError) as caught:
        drive(flow(vendor, TEXT), ok(body))
    assert caught.value.code is ErrorCode.PROVIDER_BAD_RESPONSE
    assert caught.value.retryable


@both
@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 19},
        {"prompt_tokens": -1, "completion_tokens": 6},
        {"prompt_tokens": True, "completion_tokens": 6},
        {"prompt_tokens": "19", "completion_tokens": 6},
        {"prompt_tokens": 10**400, "completion_tokens": 6},
        [19, 6],
    ],
)
def test_senseless_usage_is_unknown(drive: VendorDrive, vendor: str, usage: object) -> None:
    """Given usage that cannot be counted, nothing is counted, so that the estimate stands."""
    assert drive(flow(vendor, TEXT), ok(chat(usage=usage))).cost == Cost()


def test_openai_asks_for_its_schema(drive: VendorDrive) -> None:
    """Given a schema that strict mode takes, it is asked for strictly; any other one loosely."""
    drive(flow("openai", replace(TEXT, schema=CLOSED)), ok(chat('{"title": "Tides"}')))
    asked = drive.body()["response_format"]
    assert asked["type"] == "json_schema"
    assert asked["json_schema"] == {"name": "answer", "strict": True, "schema": CLOSED}
    loose: dict[str, object] = {
        "type": "object",
        "properties": {"title": {"type": "string", "minLength": 1}},
    }
    drive(flow("openai", replace(TEXT, schema=loose)), ok(chat('{"title": "Tides"}')))
    assert drive.body()["response_format"]["json_schema"]["strict"] is False
    assert "schema" not in drive.body()["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CLOSED, True),
        ({**CLOSED, "required": []}, False),
        ({**CLOSED, "additionalProperties": True}, False),
        ({**CLOSED, "properties": {"title": {"type": "string", "format": "uri"}}}, False),
        ({**CLOSED, "properties": {"title": {"type": "array", "items": CLOSED}}}, True),
        ({**CLOSED, "properties": {"title": {"anyOf": [{"type": "object"}]}}}, False),
        ({**CLOSED, "$defs": {"part": {"type": "object"}}}, False),
    ],
)
def test_which_schemas_are_strict(
    drive: VendorDrive, schema: dict[str, object], strict: bool
) -> None:
    """Given a schema, strict mode is asked for only if all of it is closed and required."""
    drive(flow("openai", replace(TEXT, schema=schema)), ok(chat("{}")))
    assert drive.body()["response_format"]["json_schema"]["strict"] is strict


def test_minimax_asks_in_the_prompt(drive: VendorDrive) -> None:
    """Given a schema, it stands in the prompt, and thoughts are kept out of the answer."""
    drive(flow("minimax", replace(TEXT, schema=CLOSED)), ok(chat('{"title": "Tides"}')))
    sent = drive.body()
    assert '"additionalProperties": false' in sent["messages"][-1]["content"]
    assert "response_format" not in sent
    assert sent["reasoning_split"] is True
    assert sent["thinking"] == {"type": "disabled"}


def test_only_m3_can_stop_thinking(drive: VendorDrive) -> None:
    """Given an older model, the field it does not know is not sent."""
    drive(flow("minimax", TEXT, model="MiniMax-M2.5"), ok(chat()))
    assert "thinking" not in drive.body()
    assert drive.body()["model"] == "MiniMax-M2.5"


@both
@pytest.mark.parametrize(
    ("said", "text"),
    [
        ('```json\n{"title": "Tides"}\n```', '{"title": "Tides"}'),
        ('Here you are:\n{"title": "Tides"}\nEnjoy!', '{"title": "Tides"}'),
        ('{"title": "Tides"}', '{"title": "Tides"}'),
        ('{"title": "Ti', '{"title": "Ti'),
        ("I would rather not.", "I would rather not."),
    ],
    ids=["fence", "words around", "bare", "cut off", "no JSON"],
)
def test_json_is_taken_out_of_an_answer(
    drive: VendorDrive, vendor: str, said: str, text: str
) -> None:
    """Given a schema, the reply's text is the JSON alone; without JSON it is what was said."""
    assert drive(flow(vendor, replace(TEXT, schema=CLOSED)), ok(chat(said))).text == text


def test_json_array_is_taken_out(drive: VendorDrive) -> None:
    """Given a schema of an array, what is taken out is the array."""
    asked = replace(TEXT, schema={"type": "array", "items": {"type": "object"}})
    assert drive(flow("minimax", asked), ok(chat('Two: [{"a": 1}, {}]'))).text == '[{"a": 1}, {}]'


@pytest.mark.parametrize(
    ("param", "code", "gone", "instead"),
    [
        ("temperature", "unsupported_value", "temperature", None),
        ("temperature", "unsupported_parameter", "temperature", None),
        ("max_completion_tokens", "unknown_parameter", "max_completion_tokens", "max_tokens"),
    ],
)
def test_refused_field_is_dropped(
    drive: VendorDrive, param: str, code: str, gone: str, instead: str | None
) -> None:
    """Given a 400 that names an optional field, the request goes again without it."""
    asked = replace(TEXT, temperature=0.3, schema=CLOSED)
    drive(flow("openai", asked), refusal(param, code), ok(chat('{"title": "Tides"}')))
    first, second = drive.body(0), drive.body(1)
    assert gone in first
    assert gone not in second
    assert instead is None or second[instead] == 64
    assert second["response_format"] == first["response_format"]


@pytest.mark.parametrize(
    ("param", "code"),
    [("response_format", "invalid_json_schema"), ("response_format.json_schema.schema", "x")],
)
def test_refused_schema_is_said_otherwise(drive: VendorDrive, param: str, code: str) -> None:
    """Given refused schemas, then any JSON object is asked for, at last in words alone."""
    answers = refusal(param, code), refusal(param, code), ok(chat('{"title": "Tides"}'))
    drive(flow("openai", replace(TEXT, schema=CLOSED)), *answers)
    native, loose, words = drive.body(0), drive.body(1), drive.body(2)
    assert native["response_format"]["type"] == "json_schema"
    assert loose["response_format"] == {"type": "json_object"}
    assert "response_format" not in words
    for told in (loose, words):
        assert '"additionalProperties": false' in told["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("param", "code"),
    [
        ("messages", "unsupported_value"),
        ("model", "unsupported_parameter"),
        (None, "unsupported_parameter"),
        ("temperature", "decimal_above_max_value"),
    ],
)
def test_what_is_needed_is_never_dropped(drive: VendorDrive, param: str | None, code: str) -> None:
    """Given a 400 about anything else, the flow ends as rejected after one request."""
    with pytest.raises(ProviderError) as caught:
        drive(flow("openai", replace(TEXT, temperature=9.0)), refusal(param, code))
    assert caught.value.code is ErrorCode.PROVIDER_REJECTED
    assert len(drive.requests) == 1


def test_a_request_without_a_limit_is_never_sent(drive: VendorDrive) -> None:
    """Given one refusal after another, each is obeyed once; without any limit nothing is asked."""
    answers = [refusal("temperature"), refusal("max_completion_tokens"), refusal("max_tokens")]
    with pytest.raises(ProviderError) as caught:
        drive(flow("openai", replace(TEXT, temperature=0.3)), *answers)
    assert caught.value.code is ErrorCode.PROVIDER_REJECTED
    assert len(drive.requests) == 3
    assert {"max_tokens", "max_completion_tokens"} & set(drive.body()) == {"max_tokens"}


@pytest.mark.parametrize(
    "body",
    [{name: "model not loaded"} for name in ("error", "message", "detail")],
)
def test_compatible_servers_say_it_their_way(drive: VendorDrive, body: dict[str, str]) -> None:
    """Given another server's shape of error, its words are quoted all the same."""
    with pytest.raises(ProviderError, match="model not loaded"):
        drive(flow("openai", TEXT), httpx.Response(404, json=body))


def test_server_of_ones_own_needs_no_key(drive: VendorDrive) -> None:
    """Given a base URL and no secret, the request goes there without an Authorization header."""
    running = flow("openai", TEXT, base_urls={"api": "http://localhost:11434/v1/"}, secret="")
    reply = drive(running, ok({"choices": chat()["choices"]}))
    assert str(drive.requests[0].url) == "http://localhost:11434/v1/chat/completions"
    assert "authorization" not in drive.requests[0].headers
    assert (reply.model, reply.cost) == ("gpt-6-luna", Cost())


def test_ids_that_echo_the_key_are_cleaned(drive: VendorDrive) -> None:
    """Given a model or request id with the key in it, what is kept of it has no key."""
    body = {**chat(), "model": f"m-{SECRET}"}
    reply = drive(flow("openai", TEXT), ok(body, x_request_id=f"req-{SECRET}"))
    assert (reply.model, reply.vendor_request_id) == ("m-[key]", "req-[key]")
