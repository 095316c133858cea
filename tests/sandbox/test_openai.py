"""The `openai` wire: replies, structured output, streams and every refusal."""

import json
from typing import Any

import httpx
import jsonschema
import pytest

from toolkit.sandbox.state import SandboxState

CHAT = "/openai/v1/chat/completions"
ASK = [{"role": "user", "content": "A 20-word teaser about tidal power"}]
SCHEMA = {
    "type": "object",
    "properties": {
        "headline": {"type": "string", "maxLength": 60},
        "body": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 4},
        "tone": {"type": "string", "enum": ["calm", "bold"]},
        "score": {"type": "number", "minimum": 0, "maximum": 1},
        "priority": {"type": "integer", "minimum": 1, "maximum": 5},
        "link": {"anyOf": [{"type": "string", "format": "uri"}, {"type": "null"}]},
        "part": {"$ref": "#/$defs/part"},
    },
    "required": ["headline", "body", "tags", "tone", "score", "priority", "link", "part"],
    "additionalProperties": False,
    "$defs": {
        "part": {
            "type": "object",
            "properties": {"title": {"type": "string"}, "done": {"type": "boolean"}},
            "required": ["title", "done"],
            "additionalProperties": False,
        }
    },
}


def build_response_format(schema: dict[str, Any], strict: bool = True) -> dict[str, Any]:
    """A response_format for a schema."""
    spec = {"name": "answer", "strict": strict, "schema": schema}
    return {"type": "json_schema", "json_schema": spec}


async def test_reply_has_the_vendors_shape(openai: httpx.AsyncClient) -> None:
    """A completion names the sandbox model, counts tokens and writes about the words asked for."""
    reply = await openai.post(CHAT, json={"model": "gpt-6-luna", "messages": ASK})
    body = reply.json()
    assert reply.status_code == 200
    assert reply.headers["x-request-id"].startswith("req_")
    assert body["model"] == "gpt-6-luna-sandbox"
    assert body["object"] == "chat.completion"
    text = body["choices"][0]["message"]["content"]
    assert len(text.split()) == pytest.approx(20, rel=0.2)
    assert "tidal power" in text.lower()
    usage = body["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 0
    assert body["choices"][0]["finish_reason"] == "stop"


async def test_sandbox_name_is_accepted(openai: httpx.AsyncClient) -> None:
    """The sandbox name of a model may be sent too."""
    reply = await openai.post(CHAT, json={"model": "gpt-6-luna-sandbox", "messages": ASK})
    assert reply.json()["model"] == "gpt-6-luna-sandbox"


UNCLOSED = build_response_format({"type": "object", "properties": {}})
LONG_TURN = {"role": "user", "content": "word " * 140_000}
EXPLICIT: dict[str, Any] = {"prompt_cache_options": {"mode": "explicit"}}
MISSING, UNSUPPORTED = "missing_required_parameter", "unsupported_parameter"


@pytest.mark.parametrize(
    ("change", "code", "param"),
    [
        ({"model": "gpt-none"}, "model_not_found", None),
        ({"model": None}, MISSING, "model"),
        ({"model": 3}, "invalid_type", "model"),
        ({"messages": None}, MISSING, "messages"),
        ({"messages": []}, "empty_array", "messages"),
        ({"messages": ["x"]}, "invalid_type", "messages[0]"),
        ({"messages": [{"role": "king", "content": "x"}]}, "invalid_value", "messages[0].role"),
        ({"messages": [{"role": "user"}]}, MISSING, "messages[0].content"),
        ({"messages": [{"role": "user", "content": 1}]}, "invalid_type", "messages[0].content"),
        ({"max_tokens": 5}, UNSUPPORTED, "max_tokens"),
        ({"temperature": 0.3}, "unsupported_value", "temperature"),
        ({"temperature": 3}, "decimal_above_max_value", "temperature"),
        ({"top_p": -0.1}, "decimal_below_min_value", "top_p"),
        ({"service_tier": "cheap"}, "invalid_value", "service_tier"),
        ({"prompt_cache_options": {"mode": "no"}}, "invalid_value", "prompt_cache_options.mode"),
        ({"model": "gpt-4o", **EXPLICIT}, UNSUPPORTED, "prompt_cache_options"),
        ({"max_completion_tokens": 0}, "integer_below_min_value", "max_completion_tokens"),
        ({"colour": "red"}, "unknown_parameter", "colour"),
        ({"response_format": {"type": "xml"}}, "invalid_value", "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, MISSING, "response_format.json_schema"),
        ({"response_format": UNCLOSED}, "invalid_json_schema", "response_format"),
        ({"messages": [LONG_TURN]}, "context_length_exceeded", "messages"),
    ],
)
async def test_refusals(
    openai: httpx.AsyncClient, change: dict[str, Any], code: str, param: str | None
) -> None:
    """Each fault is answered with the vendor's status, code and param."""
    body = {"model": "gpt-6-luna", "messages": ASK, **change}
    reply = await openai.post(CHAT, json={k: v for k, v in body.items() if v is not None})
    error = reply.json()["error"]
    assert reply.status_code == (404 if code == "model_not_found" else 400)
    assert (error["code"], error["param"]) == (code, param)
    assert set(error) == {"message", "type", "param", "code"}


async def test_older_models_take_max_tokens(openai: httpx.AsyncClient) -> None:
    """An older model takes max_tokens and temperature, and the limit cuts its text."""
    body = {"model": "gpt-4o-mini", "messages": ASK, "max_tokens": 4, "temperature": 0.3}
    reply = (await openai.post(CHAT, json=body)).json()
    assert reply["choices"][0]["finish_reason"] == "length"
    assert len(reply["choices"][0]["message"]["content"].split()) <= 4


async def test_reasoning_may_eat_the_limit(openai: httpx.AsyncClient) -> None:
    """A small cap with much reasoning leaves no text and says so."""
    body = {"model": "gpt-6-luna", "messages": ASK, "max_completion_tokens": 30}
    reply = (await openai.post(CHAT, json={**body, "reasoning_effort": "high"})).json()
    assert reply["choices"][0]["message"]["content"] == ""
    assert reply["choices"][0]["finish_reason"] == "length"


async def test_keys(anonymous: httpx.AsyncClient) -> None:
    """A missing and a wrong key are both 401, with different codes."""
    missing = await anonymous.post(CHAT, json={})
    wrong = await anonymous.get("/openai/v1/models", headers={"Authorization": "Bearer nope"})
    assert (missing.status_code, missing.json()["error"]["code"]) == (401, None)
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (401, "invalid_api_key")


async def test_models(openai: httpx.AsyncClient) -> None:
    """The list holds sandbox names only, and each can be read alone."""
    listed = (await openai.get("/openai/v1/models")).json()
    assert all(model["id"].endswith("-sandbox") for model in listed["data"])
    one = await openai.get(f"/openai/v1/models/{listed['data'][0]['id']}")
    assert one.json() == listed["data"][0]
    assert (await openai.get("/openai/v1/models/none")).status_code == 404


async def test_bad_json_body(openai: httpx.AsyncClient) -> None:
    """A body that is not JSON is a 400 in the vendor's shape."""
    reply = await openai.post(CHAT, content=b"{oops")
    assert reply.status_code == 400
    assert reply.json()["error"]["type"] == "invalid_request_error"


async def test_json_schema_is_obeyed(openai: httpx.AsyncClient) -> None:
    """A structured reply validates against its schema and speaks of the topic."""
    body = {
        "model": "gpt-6-luna",
        "messages": ASK,
        "response_format": build_response_format(SCHEMA),
    }
    reply = await openai.post(CHAT, json=body)
    value = json.loads(reply.json()["choices"][0]["message"]["content"])
    jsonschema.validate(value, SCHEMA)
    assert "tidal" in value["headline"].lower()


async def test_json_object(openai: httpx.AsyncClient) -> None:
    """json_object wants the word json in the messages, and then gives an object."""
    body: dict[str, Any] = {"model": "gpt-6-luna", "response_format": {"type": "json_object"}}
    refused = await openai.post(CHAT, json={**body, "messages": ASK})
    assert refused.status_code == 400
    ask = [{"role": "user", "content": "Answer in JSON about glaciers"}]
    reply = await openai.post(CHAT, json={**body, "messages": ask})
    assert isinstance(json.loads(reply.json()["choices"][0]["message"]["content"]), dict)


async def test_stream_joins_to_the_same_text(openai: httpx.AsyncClient) -> None:
    """A stream's pieces are the whole text, then usage, then the end mark."""
    body = {"model": "gpt-6-luna", "messages": ASK}
    whole = (await openai.post(CHAT, json=body)).json()["choices"][0]["message"]["content"]
    options = {"stream": True, "stream_options": {"include_usage": True}}
    reply = await openai.post(CHAT, json={**body, **options})
    assert reply.headers["content-type"].startswith("text/event-stream")
    lines = [line[6:] for line in reply.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] > 0
    pieces = [c["choices"][0]["delta"].get("content", "") for c in chunks[:-1]]
    assert "".join(pieces) == whole
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"


LONG = "The tide turns twice a day, and mills along the coast were built for that. " * 80


async def ask_usage(openai: httpx.AsyncClient, prompt: str, **fields: Any) -> dict[str, int]:
    """Return what a prompt is billed: all its tokens, those read from the cache, and written."""
    body = {"model": "gpt-6-luna", "messages": [{"role": "user", "content": prompt}], **fields}
    usage = (await openai.post(CHAT, json=body)).json()["usage"]
    details = usage["prompt_tokens_details"]
    names = ("cached_tokens", "cache_write_tokens")
    return {"prompt_tokens": usage["prompt_tokens"], **{name: details[name] for name in names}}


async def test_writes_a_long_prompt_to_the_cache_and_reads_it_again(
    openai: httpx.AsyncClient,
) -> None:
    """Given the default mode, then a long prompt is written once, and read when it comes again."""
    first, second = [await ask_usage(openai, LONG) for _ in range(2)]
    whole = first["prompt_tokens"]
    assert whole > 1024
    assert (first["cached_tokens"], first["cache_write_tokens"]) == (0, whole)
    assert (second["cached_tokens"], second["cache_write_tokens"]) == (whole, 0)


async def test_reads_a_cached_beginning_of_a_conversation(openai: httpx.AsyncClient) -> None:
    """Given a conversation that goes on, then its cached part is read, and the rest is written."""
    turns = [{"role": "user", "content": LONG}]
    whole = (await ask_usage(openai, LONG))["prompt_tokens"]
    turns += [{"role": "assistant", "content": "So it is."}, {"role": "user", "content": "Why?"}]
    body = {"model": "gpt-6-luna", "messages": turns}
    details = (await openai.post(CHAT, json=body)).json()["usage"]["prompt_tokens_details"]
    assert details["cached_tokens"] == whole
    assert 0 < details["cache_write_tokens"] < 50


@pytest.mark.parametrize("prompt", ["Tides?", LONG], ids=["short", "long"])
async def test_writes_nothing_that_no_breakpoint_marks(
    openai: httpx.AsyncClient, prompt: str
) -> None:
    """Given the mode `explicit` and no breakpoint, then nothing is written, and nothing read."""
    for _ in range(2):
        usage = await ask_usage(openai, prompt, **EXPLICIT)
        assert (usage["cached_tokens"], usage["cache_write_tokens"]) == (0, 0)


async def test_a_short_prompt_is_not_written(openai: httpx.AsyncClient) -> None:
    """Given a prompt below the least length, then the default mode writes nothing."""
    assert (await ask_usage(openai, "Tides?"))["cache_write_tokens"] == 0


@pytest.mark.parametrize(
    ("project", "asked", "served"),
    [
        (None, None, "default"),
        ("priority", None, "priority"),
        ("priority", "auto", "priority"),
        ("priority", "default", "default"),
        ("priority", "flex", "flex"),
        (None, "fast", "priority"),
    ],
)
async def test_serves_the_tier_that_is_asked_for_or_the_projects(
    openai: httpx.AsyncClient,
    state: SandboxState,
    project: str | None,
    asked: str | None,
    served: str,
) -> None:
    """Given a project's tier, then it serves the requests that do not name another."""
    if project is not None:
        state.faults.project_tier("openai", project)
    body = {"model": "gpt-6-luna", "messages": ASK, **({"service_tier": asked} if asked else {})}
    assert (await openai.post(CHAT, json=body)).json()["service_tier"] == served
