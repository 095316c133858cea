"""Google (V3): text by the Gemini API."""

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
    KEY_REFUSED,
    OUT_OF_CREDIT,
    REFUSED,
    Answer,
    Json,
    carried,
    in_path,
    inner,
    number,
    plain,
    probed,
)
from toolkit.vendors._prices import models

_FINISH = {"STOP": "stop", "MAX_TOKENS": "length"}
# Finish reasons that mean a refusal; an unknown reason does not.
_BLOCKED = frozenset(
    ("SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "LANGUAGE", "IMAGE_SAFETY")
)
_SCHEMA_REFUSED = ("schema", "mimetype", "mime_type")


def text(operation: TextRequest, access: Access) -> Flow[TextReply]:
    """Generate text by generateContent.

    A schema that the vendor refuses goes into the prompt instead, once.

    Raises:
        VendorFault: as the error table of the vendor's documents has it.
    """
    answer = yield from _chat.natively_or_in_the_prompt(
        operation, lambda native: _asked(access, _body(operation, native=native)), _SCHEMA_REFUSED
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
    answer = yield from probed("google", access, "/v1/models", _headers(access))
    said = answer.json()
    if answer.failed:
        raise _failure(answer, said)


def _headers(access: Access) -> dict[str, str]:
    return {"x-goog-api-key": carried(access.secret)}


def _body(operation: TextRequest, *, native: bool) -> Json:
    prompt = operation.prompt if native else _chat.prompt_with_schema(operation)
    config: Json = {"maxOutputTokens": operation.max_tokens}
    if operation.temperature is not None:
        config["temperature"] = operation.temperature
    if native and operation.schema is not None:
        config["responseMimeType"] = "application/json"
        config["responseJsonSchema"] = operation.schema
    fields: Json = {
        "contents": [{"role": "user", "parts": [{"text": prompt}]}],
        "generationConfig": config,
    }
    if operation.system:
        fields["systemInstruction"] = {"parts": [{"text": operation.system}]}
    return fields


def _asked(access: Access, fields: Json) -> Flow[Answer]:
    # Aliases that move on to newer models are known to the beta version alone.
    version = "v1beta" if access.model.endswith("-latest") else "v1"
    path = f"/{version}/models/{in_path(access.model)}:generateContent"
    request = httpx.Request("POST", access.url(path), json=fields, headers=_headers(access))
    return Answer("google", access, (yield from send(request)))


def _failure(answer: Answer, said: Json) -> VendorFault:
    error = inner(said, "error")
    details = error.get("details")
    reasons = (
        [d.get("reason") for d in details or () if isinstance(d, dict)]
        if (isinstance(details, list))
        else []
    )
    verdict = None
    if "API_KEY_INVALID" in reasons:  # a bad key is an invalid argument to this vendor
        verdict = KEY_REFUSED
    elif error.get("status") == "FAILED_PRECONDITION":
        verdict = OUT_OF_CREDIT
    return answer.failure(error.get("message"), verdict=verdict)


def _reply(answer: Answer, said: Json, operation: TextRequest) -> TextReply:
    request_id = answer.label(said.get("responseId")) or answer.request_id
    blocked = answer.quoted(inner(said, "promptFeedback").get("blockReason"))
    choices = said.get("candidates")
    choice = choices[0] if isinstance(choices, list) and choices else None
    reason = str(choice.get("finishReason")) if isinstance(choice, dict) else ""
    if blocked or reason in _BLOCKED:
        raise answer.fault(
            REFUSED, f"google refused to answer this: {blocked or reason}.", request_id=request_id
        )
    if not isinstance(choice, dict):
        raise answer.fault(
            (ErrorCode.PROVIDER_BAD_RESPONSE, None),
            "The answer of google has no candidate in it.",
            request_id=request_id,
        )
    parts = inner(choice, "content").get("parts")
    texts = [
        plain(part.get("text")) or ""
        for part in (parts if isinstance(parts, list) else ())
        if isinstance(part, dict) and part.get("thought") is not True
    ]
    return _chat.finished(
        answer,
        operation,
        "".join(texts).strip(),
        _FINISH.get(reason, "stop"),
        _units(inner(said, "usageMetadata")),
        request_id,
        answer.label(said.get("modelVersion")),
    )


def _units(usage: Json) -> dict[str, float]:
    """Parse the tokens that were billed, thoughts included; none unless the prompt's are given."""
    given, made = number(usage.get("promptTokenCount")), number(usage.get("candidatesTokenCount"))
    thoughts = number(usage.get("thoughtsTokenCount"))
    if given is None or (made is None and thoughts is None):
        return {}
    cached = number(usage.get("cachedContentTokenCount"))
    return _chat.token_units(given, (made or 0.0) + (thoughts or 0.0), cached)


VENDOR = Vendor(
    id="google",
    label="V3",
    title="Google Gemini",
    variable="GEMINI_API_KEY",
    base_urls={"api": "https://generativelanguage.googleapis.com"},
    operations={TextRequest: text},
    models=models("google"),
    bounds={
        # Models were seen to count thoughts within the cap, and documented to count them beside it.
        TextRequest: TokenBound(
            "googleapis/python-genai issue 2062: maxOutputTokens is documented for the answer"
            " alone, and thoughts are billed as output",
            capped=False,
        )
    },
    probe=probe,
    telemetry_name="gcp.gemini",
)
