"""Particulars of each wire: bodies, answers, refusals, and billed units."""

import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.vendors.conftest import CLONE, SPEECH, TEXT, VendorDrive, flow, ok
from tests.vendors.test_chat import chat
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import ProviderError, TextRequest
from toolkit.vendors.google import VENDOR

AUTH = ErrorCode.PROVIDER_AUTH_FAILED
RATE = ErrorCode.PROVIDER_RATE_LIMITED
REFUSED = ErrorCode.PROVIDER_REJECTED
DOWN = ErrorCode.PROVIDER_UNAVAILABLE
BAD = ErrorCode.PROVIDER_BAD_RESPONSE
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
JSON_TEXT = TextRequest(prompt="Outline tides.", temperature=0.3, max_tokens=50, schema=SCHEMA)

MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "model": "claude-haiku-5-5",
    "content": [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "Tides "},
        {"type": "something_new", "text": "?"},
        {"type": "text", "text": "turn."},
    ],
    "stop_reason": "end_turn",
    "usage": {
        "input_tokens": 10,
        "cache_creation_input_tokens": 5,
        "cache_read_input_tokens": 2,
        "output_tokens": 4,
        "output_tokens_details": {"thinking_tokens": 1},
    },
}
CANDIDATE: dict[str, Any] = {
    "candidates": [
        {
            "content": {"parts": [{"text": "hm", "thought": True}, {"text": "Tides turn."}]},
            "finishReason": "STOP",
        }
    ],
    "usageMetadata": {
        "promptTokenCount": 17,
        "promptTokensDetails": [
            {"modality": "TEXT", "tokenCount": 5},
            {"modality": "IMAGE", "tokenCount": 12},
        ],
        "candidatesTokenCount": 3,
        "thoughtsTokenCount": 1,
    },
    "modelVersion": "gemini-3.8-flash",
    "responseId": "abc",
}
CONVERSED = {
    "output": {"message": {"role": "assistant", "content": [{"text": "Tides turn."}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 17, "outputTokens": 4, "totalTokens": 21},
}
ANSWERS: dict[str, Any] = {"anthropic": MESSAGE, "google": CANDIDATE, "aws": CONVERSED}
PARTS = {
    "anthropic": {
        "cached_input_tokens": 2.0, "cache_write_tokens": 5.0, "reasoning_tokens": 1.0,
    },
    "google": {"image_tokens": 12.0, "reasoning_tokens": 1.0},
}  # fmt: skip


@pytest.mark.parametrize("vendor", ANSWERS)
def test_reads_the_documented_answer(drive: VendorDrive, vendor: str) -> None:
    """Given the documented answer, then text, model and every billed token are read."""
    reply = drive(flow(vendor, TEXT), ok(ANSWERS[vendor]))
    assert (reply.text, reply.finish) == ("Tides turn.", "stop")
    units = {"input_tokens": 17.0, "output_tokens": 4.0, **PARTS.get(vendor, {})}
    assert reply.cost.units == units
    assert reply.model


def test_builds_the_body_of_anthropic(drive: VendorDrive) -> None:
    """Given all fields, then the body is the vendor's, without a temperature."""
    drive(flow("anthropic", JSON_TEXT), ok(MESSAGE))
    request = drive.requests[0]
    assert request.headers["anthropic-version"] == "2026-10-21"
    assert drive.body() == {
        "model": "claude-haiku-5-5",
        "max_tokens": 50,
        "messages": [{"role": "user", "content": "Outline tides."}],
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
        "service_tier": "standard_only",
    }


def test_builds_the_body_of_google(drive: VendorDrive) -> None:
    """Given all fields, then the body is the vendor's; an alias goes to the beta version."""
    drive(flow("google", JSON_TEXT), ok(CANDIDATE))
    assert drive.requests[0].url.path == "/v1/models/gemini-3.8-flash:generateContent"
    assert drive.body()["generationConfig"] == {
        "maxOutputTokens": 50,
        "temperature": 0.3,
        "responseMimeType": "application/json",
        "responseJsonSchema": SCHEMA,
        "thinkingConfig": {"thinkingBudget": 512},
    }
    assert drive.body()["serviceTier"] == "standard"
    drive(flow("google", TEXT, model="gemini-flash-latest"), ok(CANDIDATE))
    assert drive.requests[1].url.path.startswith("/v1beta/")
    assert drive.body()["systemInstruction"] == {"parts": [{"text": "Be brief."}]}


@pytest.mark.parametrize("reasoning", [None, "none", 100, "low", "high", 24_576])
def test_the_bound_of_google_covers_the_thoughts_that_are_allowed(
    drive: VendorDrive, reasoning: str | int | None
) -> None:
    """Given any level of reasoning, then the reserved output covers the answer and its thoughts."""
    operation = replace(JSON_TEXT, reasoning=reasoning)
    drive(flow("google", operation), ok(CANDIDATE))
    config = drive.body()["generationConfig"]
    model = next(model for model in VENDOR.models if model.id == "gemini-3.8-flash")
    units = VENDOR.bounds[TextRequest].units(operation, model)
    assert units is not None
    allowed = config["maxOutputTokens"] + config["thinkingConfig"]["thinkingBudget"]
    assert allowed <= units["output_tokens"] <= allowed + 16


def test_builds_the_body_of_aws(drive: VendorDrive) -> None:
    """Given all fields, then the body is the vendor's, and the colon is encoded."""
    drive(flow("aws", JSON_TEXT), ok(CONVERSED))
    assert drive.requests[0].url.raw_path == b"/model/us.amazon.nova-2-lite-v1%3A0/converse"
    body = drive.body()
    assert body["inferenceConfig"] == {"maxTokens": 50, "temperature": 0.3}
    assert body["serviceTier"] == {"type": "default"}
    structure = body["outputConfig"]["textFormat"]["structure"]
    assert json.loads(structure["jsonSchema"]["schema"]) == SCHEMA
    drive(flow("aws", JSON_TEXT, model="anthropic.claude-haiku-5-5"), ok(CONVERSED))
    assert "temperature" not in drive.body()["inferenceConfig"]


@pytest.mark.parametrize(
    ("vendor", "words"),
    [
        ("anthropic", {"error": {"message": "output_config.format.schema: too deep"}}),
        ("google", {"error": {"message": "Invalid JSON schema", "status": "INVALID_ARGUMENT"}}),
        ("aws", {"message": "outputConfig is not supported by this model"}),
    ],
)
def test_moves_a_refused_schema_into_the_prompt(
    drive: VendorDrive, vendor: str, words: dict[str, Any]
) -> None:
    """Given a refused schema, then it is described in the prompt, once."""
    reply = drive(flow(vendor, JSON_TEXT), httpx.Response(400, json=words), ok(ANSWERS[vendor]))
    assert reply.text
    assert "matching this JSON schema" in json.dumps(drive.body())
    with pytest.raises(ProviderError) as refused:
        drive(flow(vendor, JSON_TEXT), *[httpx.Response(400, json=words) for _ in range(2)])
    assert refused.value.code is REFUSED


def refuse(vendor: str, words: str) -> httpx.Response:
    """Return a 400 in the vendor's format."""
    error = {"message": words}
    return httpx.Response(400, json=error if vendor == "aws" else {"error": error})


@pytest.mark.parametrize(
    ("vendor", "words", "field"),
    [
        ("anthropic", "service_tier: Extra inputs are not permitted", "service_tier"),
        ("aws", "This model does not support the requested service tier.", "serviceTier"),
        ("google", "Unsupported value of service_tier for this model.", "serviceTier"),
    ],
)
def test_drops_a_refused_tier(drive: VendorDrive, vendor: str, words: str, field: str) -> None:
    """Given a refused tier, then it is omitted, also by later calls of this connection."""
    refusals: set[str] = set()
    drive(flow(vendor, TEXT, refusals=refusals), refuse(vendor, words), ok(ANSWERS[vendor]))
    assert [field in drive.body(place) for place in (0, 1)] == [True, False]
    drive(flow(vendor, TEXT, refusals=refusals), ok(ANSWERS[vendor]))
    assert field not in drive.body()


@pytest.mark.parametrize(
    ("vendor", "words", "flex"),
    [
        ("openai", "Unsupported value: 'service_tier'.", {"service_tier": "flex"}),
        ("aws", "This model does not support the requested service tier.",
         {"serviceTier": {"type": "flex"}}),
        ("google", "Unsupported value of service_tier for this model.", {"serviceTier": "flex"}),
    ],
)  # fmt: skip
def test_a_refused_flex_tier_is_final(
    drive: VendorDrive, vendor: str, words: str, flex: dict[str, Any]
) -> None:
    """Given the flex tier at a vendor that refuses it, then no dearer tier is asked instead."""
    with pytest.raises(ProviderError) as refused:
        drive(flow(vendor, TEXT, tier="flex"), refuse(vendor, words))
    assert refused.value.code is REFUSED
    assert drive.body().items() >= flex.items()


def test_uses_the_beta_version_for_an_unknown_field(
    drive: VendorDrive,
) -> None:
    """Given an unknown field, then the beta version is asked, with a limit on the thoughts."""
    words = "Unknown name \"thinkingConfig\" at 'generation_config': Cannot find field."
    refusals: set[str] = set()
    drive(flow("google", TEXT, refusals=refusals), refuse("google", words), ok(CANDIDATE))
    drive(flow("google", TEXT, refusals=refusals), ok(CANDIDATE))
    assert [request.url.path.split("/")[1] for request in drive.requests] == [
        "v1",
        "v1beta",
        "v1beta",
    ]
    assert "thinkingConfig" in drive.body()["generationConfig"]


def test_drops_a_refused_thinking_budget(drive: VendorDrive) -> None:
    """Given a model without a budget, then the cap alone limits its thoughts and answer."""
    words = "Thinking budget is not supported for this model."
    drive(flow("google", TEXT), refuse("google", words), ok(CANDIDATE))
    assert drive.body()["generationConfig"] == {"maxOutputTokens": TEXT.max_tokens}


@pytest.mark.parametrize(
    ("vendor", "answer", "headers", "tier"),
    [
        ("anthropic", {"usage": {**MESSAGE["usage"], "service_tier": "priority"}}, {}, "priority"),
        ("aws", {"serviceTier": {"type": "default"}}, {}, "standard"),
        ("aws", {"serviceTier": {"type": "flex"}}, {}, "flex"),
        ("google", {}, {"x-gemini-service-tier": "priority"}, "priority"),
        ("google", {}, {}, None),
        ("anthropic", {}, {}, None),
    ],
)
def test_reads_the_billed_tier(
    drive: VendorDrive,
    vendor: str,
    answer: dict[str, Any],
    headers: dict[str, str],
    tier: str | None,
) -> None:
    """Given an answer that names a tier, then the reply has it by our name."""
    response = httpx.Response(200, json={**ANSWERS[vendor], **answer}, headers=headers)
    assert drive(flow(vendor, TEXT), response).tier == tier


SPENT = {"error": {"details": {"error_code": "enforced_spend_limit_reached"}}}


@pytest.mark.parametrize(
    ("vendor", "status", "body", "code", "retryable"),
    [
        *(
            ("openai", 200, chat(content, "length"), BAD, False)
            for content in ("", None, "<think>The moon pulls, and")
        ),
        *(
            ("openai", 200, {"choices": choices}, BAD, True)
            for choices in (None, [], ["text"], [{}], [{"message": "text"}])
        ),
        ("anthropic", 200, {**MESSAGE, "stop_reason": "refusal"}, REFUSED, False),
        ("anthropic", 200, {**MESSAGE, "content": None}, BAD, True),
        ("anthropic", 200, {**MESSAGE, "content": [], "stop_reason": "max_tokens"}, BAD, False),
        ("anthropic", 402, {"error": {"type": "billing_error", "message": "pay"}}, RATE, False),
        ("anthropic", 429, SPENT, RATE, False),
        ("anthropic", 429, {"error": {}}, RATE, True),
        ("google", 200, {"promptFeedback": {"blockReason": "SAFETY"}}, REFUSED, False),
        ("google", 200, {"candidates": [{"finishReason": "RECITATION"}]}, REFUSED, False),
        ("google", 200, {"candidates": []}, BAD, True),
        ("google", 200, {"candidates": [{"finishReason": "MAX_TOKENS"}]}, BAD, False),
        ("google", 400, {"error": {"details": [{"reason": "API_KEY_INVALID"}]}}, AUTH, False),
        ("google", 400, {"error": {"status": "FAILED_PRECONDITION"}}, RATE, False),
        ("google", 400, {"error": {"details": "?"}}, REFUSED, False),
        ("aws", 200, {**CONVERSED, "stopReason": "guardrail_intervened"}, REFUSED, False),
        ("aws", 200, {**CONVERSED, "stopReason": "malformed_model_output"}, BAD, True),
        ("aws", 200, {**CONVERSED, "output": {}}, BAD, True),
        ("aws", 429, {"__type": "a#ModelNotReadyException"}, DOWN, True),
        ("aws", 400, {"__type": "a#ServiceQuotaExceededException"}, RATE, False),
        ("aws", 424, {}, DOWN, True),
    ],
)
def test_maps_failures_of_text_vendors(
    drive: VendorDrive,
    vendor: str,
    status: int,
    body: dict[str, Any],
    code: ErrorCode,
    retryable: bool,
) -> None:
    """Given a vendor's own failure, then it has the matching code."""
    with pytest.raises(ProviderError) as failed:
        drive(flow(vendor, TEXT), httpx.Response(status, json=body))
    assert (failed.value.code, failed.value.retryable) == (code, retryable)


def test_reads_the_error_name_in_a_header_of_aws(drive: VendorDrive) -> None:
    """Given an error name in the header, with an address, then it decides the code."""
    headers = {"x-amzn-errortype": "ModelNotReadyException:http://internal.amazon.com/"}
    with pytest.raises(ProviderError) as failed:
        drive(flow("aws", TEXT), httpx.Response(429, headers=headers, json={}))
    assert failed.value.code is DOWN


CUT_OFF: dict[str, dict[str, Any]] = {
    "openai": chat("Tides", "length"),
    "minimax": chat("Tides", "length"),
    "anthropic": {**MESSAGE, "stop_reason": "max_tokens"},
    "google": {"candidates": [{**CANDIDATE["candidates"][0], "finishReason": "MAX_TOKENS"}]},
    "aws": {**CONVERSED, "stopReason": "max_tokens"},
}


@pytest.mark.parametrize("vendor", CUT_OFF)
def test_reports_a_cut_off_answer(drive: VendorDrive, vendor: str) -> None:
    """Given an answer cut off by the limit, then its text has the finish `length`."""
    reply = drive(flow(vendor, TEXT), ok(CUT_OFF[vendor]))
    assert (reply.finish, reply.text[:5]) == ("length", "Tides")


@pytest.mark.parametrize(
    ("status", "detail", "code", "retryable"),
    [
        (401, {"status": "invalid_api_key", "message": "no"}, AUTH, False),
        (401, {"status": "quota_exceeded", "message": "pay"}, RATE, False),
        (400, {"status": "max_character_limit_exceeded"}, REFUSED, False),
        (429, {"status": "system_busy", "message": "busy"}, RATE, True),
        (422, [{"loc": ["body", "text"], "msg": "Field required"}], REFUSED, False),
        (500, "oops", DOWN, True),
        (400, [], REFUSED, False),
    ],
)
def test_reads_failures_of_elevenlabs(
    drive: VendorDrive, status: int, detail: object, code: ErrorCode, retryable: bool
) -> None:
    """Given a detail that is an object, a list or a text, then it has the matching code."""
    for operation in (SPEECH, CLONE):
        with pytest.raises(ProviderError) as failed:
            drive(flow("elevenlabs", operation), httpx.Response(status, json={"detail": detail}))
        assert (failed.value.code, failed.value.retryable) == (code, retryable)


def test_reads_speech_of_elevenlabs(drive: VendorDrive) -> None:
    """Given audio, then it is billed by the vendor's own count of characters."""
    headers = {"content-type": "audio/mpeg", "character-cost": "12", "request-id": "r1"}
    reply = drive(flow("elevenlabs", SPEECH), httpx.Response(200, content=b"ID3", headers=headers))
    assert (reply.audio, reply.vendor_request_id) == (b"ID3", "r1")
    assert reply.cost.units == {"characters": 12.0}
    url = drive.requests[0].url
    assert url.path == "/v1/text-to-speech/21m00Tcm4TlvDq8ikWAM"
    assert url.params["output_format"] == "mp3_44100_128"
    for content, kind in ((b"", "audio/mpeg"), (b"{}", "application/json")):
        answer = httpx.Response(200, content=content, headers={"content-type": kind})
        with pytest.raises(ProviderError) as failed:
            drive(flow("elevenlabs", SPEECH), answer)
        assert failed.value.code is BAD


@pytest.mark.parametrize(
    "answer", [{}, {"voice_id": 7}, {"voice_id": "v", "requires_verification": True}]
)
def test_rejects_an_unusable_clone_of_elevenlabs(
    drive: VendorDrive, answer: dict[str, Any]
) -> None:
    """Given no voice, or a voice that a person must verify first, then the clone fails."""
    with pytest.raises(ProviderError):
        drive(flow("elevenlabs", CLONE), ok(answer))
