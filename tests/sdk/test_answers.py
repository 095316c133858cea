"""Answers of the sandbox, validated by the types that each vendor's SDK is generated with.

Required members must be there, unknown members must not, and choices are those of the SDK. Answers
that no SDK describes are compared with the vendor's document, kept in `tests/vendors/facts`.
"""

from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from tests.sdk.conftest import Order, skip_without
from tests.sdk.published_schemas import (
    Check,
    anthropic_error,
    converse_error,
    converse_output,
    each_item,
    elevenlabs_error,
    events,
    google_error,
    google_models,
    job,
    minimax_error,
    minimax_ok,
    nothing,
    of,
    openai_error,
    plain_error,
    schema,
)
from tests.support.recordings import make_silent_wav
from toolkit.sandbox import SANDBOX_KEYS

pytestmark = skip_without("anthropic", "boto3", "elevenlabs", "google.genai", "openai")

HELLO = [{"role": "user", "content": "Write two sentences about tides."}]
BEDROCK = [{"role": "user", "content": [{"text": "Write two sentences about tides."}]}]
GOOGLE = {"contents": [{"role": "user", "parts": [{"text": "Two sentences about tides."}]}]}
ENDPOINT = {
    "name": "pictures",
    "type": "QUEUE",
    "scaling": {"type": "QUEUE_DELAY", "queueDelay": 4},
    "gpu": {"pools": ["ADA_24"], "count": 1},
    "image": "example/sdxl:1",
}
POD = {"name": "easel", "image": "x/y", "gpu": {"id": "NVIDIA A40"}}
TEMPLATE = {"name": "shared", "image": "x/y", "serverless": True}
VOLUME = {"name": "weights", "size": 20, "dataCenter": "EU-RO-1"}
PICTURE = {"input": {"prompt": "tides", "width": 256, "height": 256}}
FLUX = "/runpod-jobs/v2/black-forest-labs-flux-1-dev"


@dataclass(frozen=True)
class Case:
    """One operation of a wire, and the check of its answer."""

    path: str
    check: Check
    body: dict[str, Any] | None = None
    status: int = 200
    method: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    files: dict[str, Any] | None = None
    before: tuple[str, dict[str, Any]] | None = (
        None  # a resource to create first; its id replaces {id}
    )
    fault: int | None = None


def build_cases() -> dict[str, Case]:
    """Build the build_cases: every operation of every wire, and its refusals."""
    voice = "21m00Tcm4TlvDq8ikWAM"
    narrator = {"role": "narrator", "content": "x"}
    chat = {"model": "gpt-6-luna", "messages": HELLO}
    message = {"model": "claude-haiku-5-5", "max_tokens": 50, "messages": HELLO}
    spoken = {"model": "speech-2.8-turbo", "text": "x", "voice_setting": {"voice_id": "nobody"}}
    thought = (
        "name", "audio_content", "reasoning_content", "reasoning_details", "total_characters",
        "input_sensitive", "output_sensitive", "input_sensitive_type", "output_sensitive_type",
        "output_sensitive_int", "base_resp",
    )  # fmt: skip
    converse = "/aws/model/us.amazon.nova-2-lite-v1%3A0/converse"
    gemini = "/google/v1/models/gemini-3.8-flash"
    cases = {
        "openai models": Case("/openai/v1/models", each_item("data", "openai.types.Model")),
        "openai chat": Case(
            "/openai/v1/chat/completions", of("openai.types.chat.ChatCompletion"), chat
        ),
        "openai stream": Case(
            "/openai/v1/chat/completions", events("openai.types.chat.ChatCompletionChunk"),
            {**chat, "stream": True, "stream_options": {"include_usage": True}},
        ),
        "openai bad": Case(
            "/openai/v1/chat/completions", openai_error, {**chat, "messages": [narrator]}, 400
        ),
        "openai no model": Case(
            "/openai/v1/chat/completions", openai_error, {**chat, "model": "none"}, 404
        ),
        "anthropic models": Case(
            "/anthropic/v1/models", each_item("data", "anthropic.types.ModelInfo")
        ),
        "anthropic message": Case("/anthropic/v1/messages", of("anthropic.types.Message"), message),
        "anthropic stream": Case(
            "/anthropic/v1/messages", events("anthropic.types.RawMessageStreamEvent"),
            {**message, "stream": True},
        ),
        "anthropic bad": Case(
            "/anthropic/v1/messages", anthropic_error, {**message, "temperature": 1}, 400
        ),
        "anthropic no model": Case(
            "/anthropic/v1/messages", anthropic_error, {**message, "model": "none"}, 404
        ),
        "google models": Case("/google/v1/models", google_models),
        "google content": Case(
            f"{gemini}:generateContent", of("google.genai.types.GenerateContentResponse"), GOOGLE
        ),
        "google bad": Case(f"{gemini}:generateContent", google_error, {"contents": 3}, 400),
        "google no model": Case(
            "/google/v1/models/none:generateContent", google_error, GOOGLE, 404
        ),
        "aws converse": Case(converse, converse_output, {"messages": BEDROCK}),
        "aws bad": Case(converse, converse_error, {"messages": []}, 400),
        "aws build_key_headers id": Case(
            converse.replace("us.", ""), converse_error, {"messages": BEDROCK}, 400
        ),
        "minimax chat": Case(
            "/minimax/v1/chat/completions", of("openai.types.chat.ChatCompletion", *thought),
            {"model": "MiniMax-M3", "messages": HELLO, "reasoning_split": True},
        ),
        "minimax bad": Case("/minimax/v1/chat/completions", minimax_error, {"model": "none"}),
        "minimax speech": Case(
            "/minimax/v1/t2a_v2", minimax_ok("data", "extra_info", "trace_id"),
            {**spoken, "voice_setting": {"voice_id": "English_Graceful_Lady"}},
        ),
        "minimax no voice": Case("/minimax/v1/t2a_v2", minimax_error, spoken),
        "minimax voices": Case(
            "/minimax/v1/get_voice", minimax_ok("system_voice"), {"voice_type": "system"}
        ),
        "elevenlabs voices": Case(
            "/elevenlabs/v1/voices",
            each_item(
                "voices", "elevenlabs.Voice", "available_for_tiers", "high_quality_base_model_ids"
            ),
        ),
        "elevenlabs clone": Case(
            "/elevenlabs/v1/voices/add", of("elevenlabs.AddVoiceIvcResponseModel"),
            files={"files": ("a.wav", make_silent_wav(11), "audio/wav"), "name": (None, "Ada")},
        ),
        "elevenlabs speech": Case(
            f"/elevenlabs/v1/text-to-speech/{voice}", lambda answer: None,
            {"text": "Tides turn.", "model_id": "eleven_flash_v2_5"},
        ),
        "elevenlabs no voice": Case(
            "/elevenlabs/v1/text-to-speech/nobody", elevenlabs_error, {"text": "x"}, 404
        ),
        "elevenlabs bad": Case(f"/elevenlabs/v1/text-to-speech/{voice}", elevenlabs_error, {}, 422),
        "runpod gpus": Case("/runpod/v2/catalog/gpus", schema("GpuType", "gpus")),
        "runpod bad json": Case("/runpod/v2/pods", schema("ErrorResponse"), {"name": "x"}, 400),
        "runpod job": Case(f"{FLUX}/runsync", job, PICTURE),
        "runpod queued job": Case(f"{FLUX}/run", job, PICTURE),
        "runpod bad job": Case(f"{FLUX}/run", plain_error, {}, 400),
        "runpod no job": Case(f"{FLUX}/status/none", plain_error, status=404),
    }  # fmt: skip
    for kind, name, body in (
        ("serverless", "Endpoint", ENDPOINT),
        ("pods", "Pod", POD),
        ("templates", "Template", TEMPLATE),
        ("network-volumes", "NetworkVolume", VOLUME),
    ):
        lists = {"serverless": "endpoints", "network-volumes": "networkVolumes"}
        at = f"/runpod/v2/{kind}"
        before = (kind, body)
        renamed = {**body, "name": f"{kind}-made"}
        cases |= {
            f"runpod make {kind}": Case(at, schema(name), renamed, 201),
            f"runpod list {kind}": Case(at, schema(name, lists.get(kind, kind)), before=before),
            f"runpod read {kind}": Case(f"{at}/{{id}}", schema(name), before=before),
            f"runpod delete {kind}": Case(
                f"{at}/{{id}}", nothing, status=204, method="DELETE", before=before
            ),
            f"runpod no {kind}": Case(f"{at}/none", schema("ErrorResponse"), status=404),
            f"runpod unknown field {kind}": Case(
                at, schema("ErrorResponse"), {**body, "colour": "red"}, 422
            ),
        }  # fmt: skip
    errors = {
        "openai": ("/openai/v1/models", openai_error),
        "anthropic": ("/anthropic/v1/models", anthropic_error),
        "google": ("/google/v1/models", google_error),
        "elevenlabs": ("/elevenlabs/v1/voices", elevenlabs_error),
        "runpod": ("/runpod/v2/pods", schema("ErrorResponse")),
        "runpod-jobs": (f"{FLUX}/health", plain_error),
    }
    for vendor, (path, check) in errors.items():
        status = 400 if vendor == "google" else 401
        cases[f"{vendor} wrong key"] = Case(
            path, check, status=status, headers=build_key_headers("wrong")
        )
        for code in (429, 500, 503, *((529,) if vendor == "anthropic" else ())):
            cases[f"{vendor} fault {code}"] = Case(path, check, status=code, fault=code)
    for code in (401, 402, 429, 500, 503, 529):
        status = {401: 403, 402: 400, 529: 503}.get(code, code)
        body = {"messages": BEDROCK}
        cases[f"aws fault {code}"] = Case(converse, converse_error, body, status, fault=code)
        minimax = Case("/minimax/v1/get_voice", minimax_error, {"voice_type": "all"}, fault=code)
        if code != 529:
            cases[f"minimax fault {code}"] = minimax
    return cases


def build_key_headers(key: str) -> dict[str, str]:
    """Return a key in every header that some vendor reads."""
    return {
        "authorization": f"Bearer {key}",
        "x-api-key": key,
        "x-goog-api-key": key,
        "xi-api-key": key,
        "anthropic-version": "2026-10-21",
    }


CASES = build_cases()
VARIABLES = {"google": "GEMINI_API_KEY", "aws": "AWS_BEARER_TOKEN_BEDROCK"}


@pytest.mark.parametrize("name", CASES)
def test_answer_has_the_published_shape(cloud_url: str, order: Order, name: str) -> None:
    """Given an operation or a refusal of a wire, then its answer is as the vendor publishes."""
    case = CASES[name]
    wire = case.path.split("/")[1]
    vendor = wire.partition("-")[0]
    key = SANDBOX_KEYS[VARIABLES.get(vendor, f"{vendor.upper()}_API_KEY")]
    headers = {**build_key_headers(key), **case.headers}
    path = case.path
    if case.before is not None:
        kind, body = case.before
        body = {**body, "name": f"{name} first"}
        creation = httpx.post(f"{cloud_url}/runpod/v2/{kind}", json=body, headers=headers)
        assert creation.status_code == 201, creation.text
        path = path.replace("{id}", creation.json()["id"])
    if case.fault is not None:
        order(wire, status=case.fault)
    method = case.method or ("GET" if case.body is None and case.files is None else "POST")
    answer = httpx.request(
        method, cloud_url + path, json=case.body, files=case.files, headers=headers
    )
    assert answer.status_code == case.status, answer.text
    case.check(answer)
