"""The `openai` wire: replies, structured output, caching, tiers and refusals."""

import json
from typing import Any

import httpx
import pytest

from toolkit.sandbox.state import SandboxState

CHAT = "/openai/v1/chat/completions"
ASK = [{"role": "user", "content": "A 20-word teaser about tidal power"}]


def build_response_format(schema: dict[str, Any], strict: bool = True) -> dict[str, Any]:
    """Return a response_format for a schema."""
    spec = {"name": "answer", "strict": strict, "schema": schema}
    return {"type": "json_schema", "json_schema": spec}


async def test_accepts_the_sandbox_name_of_a_model(openai: httpx.AsyncClient) -> None:
    """Given the sandbox name of a model, then it is accepted."""
    reply = await openai.post(CHAT, json={"model": "gpt-6-luna-sandbox", "messages": ASK})
    assert reply.json()["model"] == "gpt-6-luna-sandbox"


UNCLOSED = build_response_format({"type": "object", "properties": {}})
CHOICE = {"anyOf": [{"type": "object", "properties": {}}]}
UNCLOSED_CHOICE = build_response_format(
    {
        "type": "object",
        "properties": {"a": CHOICE},
        "required": ["a"],
        "additionalProperties": False,
    }
)
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
        ({"response_format": UNCLOSED_CHOICE}, "invalid_json_schema", "response_format"),
        ({"messages": [LONG_TURN]}, "context_length_exceeded", "messages"),
    ],
)
async def test_rejects_an_invalid_request(
    openai: httpx.AsyncClient, change: dict[str, Any], code: str, param: str | None
) -> None:
    """Given an invalid field, then the error has the vendor's status, code and param."""
    body = {"model": "gpt-6-luna", "messages": ASK, **change}
    reply = await openai.post(CHAT, json={k: v for k, v in body.items() if v is not None})
    error = reply.json()["error"]
    assert reply.status_code == (404 if code == "model_not_found" else 400)
    assert (error["code"], error["param"]) == (code, param)
    assert set(error) == {"message", "type", "param", "code"}


async def test_older_model_accepts_max_tokens(openai: httpx.AsyncClient) -> None:
    """Given an older model, then max_tokens cuts its text."""
    body = {"model": "gpt-4o-mini", "messages": ASK, "max_tokens": 4, "temperature": 0.3}
    reply = (await openai.post(CHAT, json=body)).json()
    assert reply["choices"][0]["finish_reason"] == "length"
    assert len(reply["choices"][0]["message"]["content"].split()) <= 4


async def test_reasoning_uses_up_a_small_limit(openai: httpx.AsyncClient) -> None:
    """Given a small limit and much reasoning, then the answer is empty."""
    body = {"model": "gpt-6-luna", "messages": ASK, "max_completion_tokens": 30}
    reply = (await openai.post(CHAT, json={**body, "reasoning_effort": "high"})).json()
    assert reply["choices"][0]["message"]["content"] == ""
    assert reply["choices"][0]["finish_reason"] == "length"


async def test_lists_models_by_their_sandbox_names(openai: httpx.AsyncClient) -> None:
    """Given the list, then it has only sandbox names."""
    listed = (await openai.get("/openai/v1/models")).json()
    assert all(model["id"].endswith("-sandbox") for model in listed["data"])


async def test_rejects_a_body_that_is_not_json(openai: httpx.AsyncClient) -> None:
    """Given a body that is not JSON, then the answer is a 400 in the vendor's format."""
    reply = await openai.post(CHAT, content=b"{oops")
    assert (reply.status_code, reply.json()["error"]["type"]) == (400, "invalid_request_error")


async def test_json_object_needs_the_word_json(openai: httpx.AsyncClient) -> None:
    """Given json_object, then the prompt must contain the word JSON, and the reply is an object."""
    body: dict[str, Any] = {"model": "gpt-6-luna", "response_format": {"type": "json_object"}}
    refused = await openai.post(CHAT, json={**body, "messages": ASK})
    assert refused.status_code == 400
    ask = [{"role": "user", "content": "Answer in JSON about glaciers"}]
    reply = await openai.post(CHAT, json={**body, "messages": ask})
    assert isinstance(json.loads(reply.json()["choices"][0]["message"]["content"]), dict)


LONG = "The tide turns twice a day, and mills along the coast were built for that. " * 80


async def ask_usage(openai: httpx.AsyncClient, prompt: str, **fields: Any) -> dict[str, int]:
    """Return the billed tokens of a prompt: all, read from the cache, and written to it."""
    body = {"model": "gpt-6-luna", "messages": [{"role": "user", "content": prompt}], **fields}
    usage = (await openai.post(CHAT, json=body)).json()["usage"]
    details = usage["prompt_tokens_details"]
    names = ("cached_tokens", "cache_write_tokens")
    return {"prompt_tokens": usage["prompt_tokens"], **{name: details[name] for name in names}}


async def test_caches_a_long_prompt(
    openai: httpx.AsyncClient,
) -> None:
    """Given a long prompt twice, then it is written to the cache once and read once."""
    first, second = [await ask_usage(openai, LONG) for _ in range(2)]
    total = first["prompt_tokens"]
    assert total > 1024
    assert (first["cached_tokens"], first["cache_write_tokens"]) == (0, total)
    assert (second["cached_tokens"], second["cache_write_tokens"]) == (total, 0)


async def test_reads_a_cached_beginning_of_a_conversation(openai: httpx.AsyncClient) -> None:
    """Given a continued conversation, then its cached part is read and the rest is written."""
    turns = [{"role": "user", "content": LONG}]
    total = (await ask_usage(openai, LONG))["prompt_tokens"]
    turns += [{"role": "assistant", "content": "So it is."}, {"role": "user", "content": "Why?"}]
    body = {"model": "gpt-6-luna", "messages": turns}
    details = (await openai.post(CHAT, json=body)).json()["usage"]["prompt_tokens_details"]
    assert details["cached_tokens"] == total
    assert 0 < details["cache_write_tokens"] < 50


@pytest.mark.parametrize(
    ("prompt", "fields"), [("Tides?", {}), ("Tides?", EXPLICIT), (LONG, EXPLICIT)]
)
async def test_caches_neither_a_short_nor_an_unmarked_prompt(
    openai: httpx.AsyncClient, prompt: str, fields: dict[str, Any]
) -> None:
    """Given a short prompt, or the mode `explicit` and no breakpoint, then nothing is cached."""
    for _ in range(2):
        usage = await ask_usage(openai, prompt, **fields)
        assert (usage["cached_tokens"], usage["cache_write_tokens"]) == (0, 0)


@pytest.mark.parametrize(
    ("project", "requested", "served"),
    [
        (None, None, "default"),
        ("priority", None, "priority"),
        ("priority", "auto", "priority"),
        ("priority", "default", "default"),
        ("priority", "flex", "flex"),
        (None, "fast", "priority"),
    ],
)
async def test_serves_the_requested_tier_or_the_projects(
    openai: httpx.AsyncClient,
    state: SandboxState,
    project: str | None,
    requested: str | None,
    served: str,
) -> None:
    """Given a project's tier, then it applies to requests that name no other tier."""
    if project is not None:
        state.faults.project_tier("openai", project)
    body = {
        "model": "gpt-6-luna",
        "messages": ASK,
        **({"service_tier": requested} if requested else {}),
    }
    assert (await openai.post(CHAT, json=body)).json()["service_tier"] == served
