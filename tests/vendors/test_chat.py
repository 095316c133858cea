"""Text by the vendors that share the chat wire."""

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
both_vendors = pytest.mark.parametrize("vendor", ["minimax", "openai"])


def chat(
    content: object = "Because of the moon.",
    finish: str = "stop",
    *,
    message: dict[str, object] | None = None,
    usage: object = None,
) -> dict[str, Any]:
    """Return a chat completion, as in the vendor's reference."""
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
    """Return a 400 that names its parameter and code."""
    error = {"message": "No.", "type": "invalid_request_error", "param": param, "code": code}
    return httpx.Response(400, json={"error": error})


@both_vendors
def test_reads_text_with_its_usage(drive: VendorDrive, vendor: str) -> None:
    """Given a plain answer, then the reply has text, model, tokens and the vendor's id."""
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


@both_vendors
def test_sends_a_temperature(drive: VendorDrive, vendor: str) -> None:
    """Given a temperature and no system text, then the request has exactly these."""
    drive(flow(vendor, TextRequest(prompt="Hi", temperature=0.2)), ok(chat()))
    assert drive.body()["temperature"] == 0.2
    assert drive.body()["messages"] == [{"role": "user", "content": "Hi"}]


@both_vendors
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
def test_reads_text_from_any_content(
    drive: VendorDrive, vendor: str, content: object, text: str
) -> None:
    """Given content in any documented form, then the reply has only the answer's own text."""
    # `json.dumps` writes ASCII, which alone can carry a lone surrogate.
    body, headers = json.dumps(chat(content)), {"content-type": "application/json"}
    response = httpx.Response(200, content=body, headers=headers)
    assert drive(flow(vendor, TEXT), response).text == text


@both_vendors
@pytest.mark.parametrize(
    "body",
    [
        chat(None, message={"refusal": "I can't help with that."}),
        chat("", "content_filter"),
    ],
    ids=["refusal", "content filter"],
)
def test_rejects_a_refusal(drive: VendorDrive, vendor: str, body: dict[str, Any]) -> None:
    """Given a refusal or a filtered answer, then the flow fails for good."""
    with pytest.raises(ProviderError, match="refused to answer") as caught:
        drive(flow(vendor, TEXT), ok(body))
    assert caught.value.code is ErrorCode.PROVIDER_REJECTED
    assert caught.value.vendor_request_id == "chatcmpl-1"


@both_vendors
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
def test_ignores_invalid_usage(drive: VendorDrive, vendor: str, usage: object) -> None:
    """Given invalid usage, then no unit is counted, so that the estimate stays."""
    assert drive(flow(vendor, TEXT), ok(chat(usage=usage))).cost == Cost()


def test_openai_requests_a_schema_natively(drive: VendorDrive) -> None:
    """Given a schema, then it is sent as the response format and not in the prompt."""
    drive(flow("openai", replace(TEXT, schema=CLOSED)), ok(chat('{"title": "Tides"}')))
    assert drive.body()["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": True, "schema": CLOSED},
    }
    assert "schema" not in drive.body()["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CLOSED, True),
        ({"type": "object", "properties": {"title": {"type": "string"}}}, False),
        ({**CLOSED, "required": []}, False),
        ({**CLOSED, "additionalProperties": True}, False),
        ({**CLOSED, "properties": {"title": {"type": "string", "format": "uri"}}}, False),
        ({**CLOSED, "properties": {"title": {"type": "array", "items": CLOSED}}}, True),
        ({**CLOSED, "properties": {"title": {"anyOf": [{"type": "object"}]}}}, False),
        ({**CLOSED, "$defs": {"part": {"type": "object"}}}, False),
    ],
)
def test_strict_mode_needs_a_closed_schema(
    drive: VendorDrive, schema: dict[str, object], strict: bool
) -> None:
    """Given a schema, then strict mode is used only if all of it is closed and required."""
    drive(flow("openai", replace(TEXT, schema=schema)), ok(chat("{}")))
    assert drive.body()["response_format"]["json_schema"]["strict"] is strict


def test_minimax_requests_a_schema_in_the_prompt(drive: VendorDrive) -> None:
    """Given a schema, then it is in the prompt, and thoughts are separate from the answer."""
    drive(flow("minimax", replace(TEXT, schema=CLOSED)), ok(chat('{"title": "Tides"}')))
    sent = drive.body()
    assert '"additionalProperties": false' in sent["messages"][-1]["content"]
    assert "response_format" not in sent
    assert sent["reasoning_split"] is True
    assert sent["thinking"] == {"type": "disabled"}


def test_only_m3_can_stop_thinking(drive: VendorDrive) -> None:
    """Given an older model, then the field that it does not know is omitted."""
    drive(flow("minimax", TEXT, model="MiniMax-M2.5"), ok(chat()))
    assert "thinking" not in drive.body()
    assert drive.body()["model"] == "MiniMax-M2.5"


@both_vendors
@pytest.mark.parametrize(
    ("content", "text"),
    [
        ('```json\n{"title": "Tides"}\n```', '{"title": "Tides"}'),
        ('Here you are:\n{"title": "Tides"}\nEnjoy!', '{"title": "Tides"}'),
        ('{"title": "Tides"}', '{"title": "Tides"}'),
        ('{"title": "Ti', '{"title": "Ti'),
        ("I would rather not.", "I would rather not."),
    ],
    ids=["fence", "words around", "bare", "cut off", "no JSON"],
)
def test_extracts_json_from_an_answer(
    drive: VendorDrive, vendor: str, content: str, text: str
) -> None:
    """Given a schema, then the reply is the JSON alone, or the whole text if it has no JSON."""
    assert drive(flow(vendor, replace(TEXT, schema=CLOSED)), ok(chat(content))).text == text


def test_extracts_a_json_array(drive: VendorDrive) -> None:
    """Given a schema of an array, then the reply is the array."""
    request = replace(TEXT, schema={"type": "array", "items": {"type": "object"}})
    assert drive(flow("minimax", request), ok(chat('Two: [{"a": 1}, {}]'))).text == '[{"a": 1}, {}]'


@pytest.mark.parametrize(
    ("param", "code", "substitute"),
    [
        ("temperature", "unsupported_value", None),
        ("temperature", "unsupported_parameter", None),
        ("max_completion_tokens", "unknown_parameter", "max_tokens"),
    ],
)
def test_drops_a_refused_field(
    drive: VendorDrive, param: str, code: str, substitute: str | None
) -> None:
    """Given a 400 that names an optional field, then the request is sent without it."""
    request = replace(TEXT, temperature=0.3, schema=CLOSED)
    drive(flow("openai", request), refusal(param, code), ok(chat('{"title": "Tides"}')))
    first, second = drive.body(0), drive.body(1)
    assert param in first
    assert param not in second
    assert substitute is None or second[substitute] == 64
    assert second["response_format"] == first["response_format"]


@pytest.mark.parametrize(
    ("param", "code"),
    [("response_format", "invalid_json_schema"), ("response_format.json_schema.schema", "x")],
)
def test_falls_back_from_a_refused_schema(drive: VendorDrive, param: str, code: str) -> None:
    """Given refused schemas, then any JSON object is requested, and finally the prompt alone."""
    answers = refusal(param, code), refusal(param, code), ok(chat('{"title": "Tides"}'))
    drive(flow("openai", replace(TEXT, schema=CLOSED)), *answers)
    native, loose, words = drive.body(0), drive.body(1), drive.body(2)
    assert native["response_format"]["type"] == "json_schema"
    assert loose["response_format"] == {"type": "json_object"}
    assert "response_format" not in words
    for body in (loose, words):
        assert '"additionalProperties": false' in body["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("param", "code"),
    [
        ("messages", "unsupported_value"),
        ("model", "unsupported_parameter"),
        (None, "unsupported_parameter"),
        ("temperature", "decimal_above_max_value"),
    ],
)
def test_never_drops_a_required_field(drive: VendorDrive, param: str | None, code: str) -> None:
    """Given a 400 about any other field, then the flow fails after one request."""
    with pytest.raises(ProviderError) as caught:
        drive(flow("openai", replace(TEXT, temperature=9.0)), refusal(param, code))
    assert caught.value.code is ErrorCode.PROVIDER_REJECTED
    assert len(drive.requests) == 1


def test_never_sends_a_request_without_a_limit(drive: VendorDrive) -> None:
    """Given refusals of each field, then each is dropped once, but never the last limit."""
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
def test_reads_errors_of_compatible_servers(drive: VendorDrive, body: dict[str, str]) -> None:
    """Given another server's shape of error, then its message is quoted."""
    with pytest.raises(ProviderError, match="model not loaded"):
        drive(flow("openai", TEXT), httpx.Response(404, json=body))


def test_own_server_needs_no_key(drive: VendorDrive) -> None:
    """Given a base URL and no secret, then the request has no Authorization header."""
    running = flow("openai", TEXT, base_urls={"api": "http://localhost:11434/v1/"}, secret="")
    reply = drive(running, ok({"choices": chat()["choices"]}))
    assert str(drive.requests[0].url) == "http://localhost:11434/v1/chat/completions"
    assert "authorization" not in drive.requests[0].headers
    assert (reply.model, reply.cost) == ("gpt-6-luna", Cost())


AZURE = "https://harbour.openai.azure.com/openai/v1/"


def test_azure_answers_by_its_v1_address(drive: VendorDrive) -> None:
    """Given Azure's v1 address, then the key is a bearer, and the model names the deployment.

    Its answers have members more (Azure's OpenAPI document, `azure-v1-v1-generated`).
    """
    harmless = {"hate": {"filtered": False, "severity": "safe"}}
    body = chat() | {"prompt_filter_results": [{"content_filter_results": harmless}]}
    body["choices"][0]["content_filter_results"] = harmless
    running = flow("openai", TEXT, base_urls={"api": AZURE}, model="my-deployment")
    reply = drive(running, ok(body, apim_request_id="a1"))
    (request,) = drive.requests
    assert str(request.url) == f"{AZURE}chat/completions"
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert (drive.body()["model"], reply.text) == ("my-deployment", "Because of the moon.")
    assert reply.vendor_request_id == "a1"


def test_a_prompt_that_azure_filters_is_rejected(drive: VendorDrive) -> None:
    """Given a prompt that Azure's filter stops, then it is refused once, in Azure's words."""
    error = {
        "message": "The response was filtered.", "type": None, "param": "prompt",
        "code": "content_filter", "status": 400,
        "innererror": {"code": "ResponsibleAIPolicyViolation"},
    }  # fmt: skip
    with pytest.raises(ProviderError, match="was filtered") as refused:
        drive(
            flow("openai", TEXT, base_urls={"api": AZURE}),
            httpx.Response(400, json={"error": error}),
        )
    assert refused.value.code is ErrorCode.PROVIDER_REJECTED
    assert len(drive.requests) == 1


def test_removes_the_key_from_ids(drive: VendorDrive) -> None:
    """Given a model or request id that contains the key, then the reply has no key."""
    body = {**chat(), "model": f"m-{SECRET}"}
    reply = drive(flow("openai", TEXT), ok(body, x_request_id=f"req-{SECRET}"))
    assert (reply.model, reply.vendor_request_id) == ("m-[key]", "req-[key]")
