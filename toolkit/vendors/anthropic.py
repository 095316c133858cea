"""Anthropic (V2): text by its messages API."""

import httpx

from toolkit.contract.errors import ErrorCode
from toolkit.plugins import (
    Access,
    Flow,
    TextReply,
    TextRequest,
    TokenBound,
    Vendor,
    VendorFault,
    send,
)
from toolkit.vendors import _chat
from toolkit.vendors._http import (
    OUT_OF_CREDIT,
    REFUSED,
    Answer,
    Json,
    carried,
    inner,
    number,
    plain,
    probed,
)
from toolkit.vendors._prices import models

# Under this version `temperature` is refused even at its default value, so it is never sent.
VERSION = "2026-10-21"
_FINISH = {"max_tokens": "length", "model_context_window_exceeded": "length"}
_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_SCHEMA_REFUSED = ("output_config", "schema")


def text(operation: TextRequest, access: Access) -> Flow[TextReply]:
    """Generate text by messages.

    A schema that the vendor refuses goes into the prompt instead, once.

    Raises:
        VendorFault: as the error table of the vendor's documents has it.
    """
    answer = yield from _chat.natively_or_in_the_prompt(
        operation,
        lambda native: _asked(access, _body(operation, access, native=native)),
        _SCHEMA_REFUSED,
    )
    said = answer.json()
    if answer.failed:
        raise _failure(answer, said)
    return _reply(answer, said, operation)


def probe(access: Access) -> Flow[None]:
    """List the models: free, and only for who has a key.

    Raises:
        VendorFault: `PROVIDER_AUTH_FAILED` when the key is refused.
    """
    answer = yield from probed("anthropic", access, "/v1/models", _headers(access))
    said = answer.json()
    if answer.failed:
        raise _failure(answer, said)


def _headers(access: Access) -> dict[str, str]:
    return {"x-api-key": carried(access.secret), "anthropic-version": VERSION}


def _body(operation: TextRequest, access: Access, *, native: bool) -> Json:
    prompt = operation.prompt if native else _chat.prompt_with_schema(operation)
    fields: Json = {
        "model": access.model,
        "max_tokens": operation.max_tokens,
        "messages": [{"role": "user", "content": prompt}],
    }
    if operation.system:
        fields["system"] = operation.system
    if native and operation.schema is not None:
        fields["output_config"] = {
            "format": {"type": "json_schema", "schema": operation.schema},
        }
    return fields


def _asked(access: Access, fields: Json) -> Flow[Answer]:
    request = httpx.Request(
        "POST", access.url("/v1/messages"), json=fields, headers=_headers(access)
    )
    return Answer("anthropic", access, (yield from send(request)))


def _failure(answer: Answer, said: Json) -> VendorFault:
    error = inner(said, "error")
    spent = inner(error, "details").get("error_code") == "enforced_spend_limit_reached"
    return answer.failure(
        error.get("message"),
        verdict=OUT_OF_CREDIT if spent or error.get("type") == "billing_error" else None,
        request_id=answer.label(said.get("request_id")),
    )


def _reply(answer: Answer, said: Json, operation: TextRequest) -> TextReply:
    stopped, blocks = str(said.get("stop_reason")), said.get("content")
    if stopped == "refusal":
        category = answer.quoted(inner(said, "stop_details").get("category"))
        raise answer.fault(
            REFUSED,
            f"anthropic refused to answer this{': ' + category if category else ''}.",
            request_id=answer.request_id or answer.label(said.get("id")),
        )
    if not isinstance(blocks, list):
        raise answer.fault(
            (ErrorCode.PROVIDER_BAD_RESPONSE, None), "The answer of anthropic has no content in it."
        )
    # Blocks of kinds that came later than this file are left out, as the vendor asks.
    texts = [
        plain(block.get("text")) or ""
        for block in blocks
        if isinstance(block, dict) and block.get("type") == "text"
    ]
    return _chat.finished(
        answer,
        operation,
        "".join(texts).strip(),
        _FINISH.get(stopped, "stop"),
        _units(inner(said, "usage")),
        answer.request_id or answer.label(said.get("id")),
        answer.label(said.get("model")),
    )


def _units(usage: Json) -> dict[str, float]:
    """Parse the tokens that were billed, cached ones included; none unless both are given."""
    given = [number(usage.get(name)) for name in _INPUT]
    made = number(usage.get("output_tokens"))
    if given[0] is None or made is None:
        return {}
    return _chat.token_units(sum(each or 0.0 for each in given), made, given[-1])


VENDOR = Vendor(
    id="anthropic",
    label="V2",
    title="Anthropic",
    variable="ANTHROPIC_API_KEY",
    base_urls={"api": "https://api.anthropic.com"},
    operations={TextRequest: text},
    models=models("anthropic"),
    bounds={
        TextRequest: TokenBound(
            "API reference, messages: max_tokens is the most that is generated, thinking included;"
            " guide to structured outputs: a schema adds a system prompt to the input"
        )
    },
    probe=probe,
)
