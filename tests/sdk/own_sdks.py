"""Calls by the own SDKs of vendors that speak OpenAI's wire, for the comparison on a socket."""

import json
from typing import Any

import pytest

from tests.sdk.conftest import ReceivedRequest
from tests.sdk.vector_sdks import VECTOR


def make_mistral(url: str, work: Any) -> Any:
    """Make a client of the mistralai SDK, which knows no field but Mistral's own."""
    client = pytest.importorskip("mistralai.client", reason="needs the extra `sdk`")
    return client.Mistral(api_key=work.secret, server_url=url.partition("/v1/")[0])


def ask_mistral(url: str, sent: ReceivedRequest, work: Any) -> str:
    """Request text by the mistralai SDK."""
    chat, body = make_mistral(url, work).chat, json.loads(sent.body)
    if not work.streamed:
        return str(chat.complete(**body).choices[0].message.content)
    events = [event.data for event in chat.stream(**body)]
    assert events[-1].usage.total_tokens
    return "".join(chunk.choices[0].delta.content or "" for chunk in events if chunk.choices)


def embed_by_mistral(url: str, sent: ReceivedRequest, work: Any) -> list[VECTOR]:
    """Embed by the mistralai SDK, as numbers."""
    body = json.loads(sent.body)
    texts = body.pop("input")
    answer = make_mistral(url, work).embeddings.create(
        **{**body, "encoding_format": "float"}, inputs=texts
    )
    return [entry.embedding for entry in answer.data]


def ask_groq(url: str, sent: ReceivedRequest, work: Any) -> str:
    """Request text by the groq SDK."""
    groq = pytest.importorskip("groq", reason="needs the extra `sdk`")
    base_url = url.partition("/openai/v1/")[0]
    client = groq.Groq(base_url=base_url, api_key=work.secret, max_retries=0)
    body = json.loads(sent.body)
    # The SDK's chunks document this field, but its call has no argument for it.
    extra = {name: body.pop(name) for name in ("stream_options",) if name in body}
    answer = client.chat.completions.create(**body, extra_body=extra)
    if not work.streamed:
        return str(answer.choices[0].message.content)
    return "".join(chunk.choices[0].delta.content or "" for chunk in answer if chunk.choices)
