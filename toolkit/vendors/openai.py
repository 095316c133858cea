"""OpenAI (V1), and any server that speaks its chat wire, by base URL: text, embeddings."""

import re

from toolkit.plugins import (
    Access,
    EmbedReply,
    EmbedRequest,
    Flow,
    InputBound,
    ProviderError,
    TextReply,
    TextRequest,
    TokenBound,
    Vendor,
    run_in_thread,
    send,
)
from toolkit.vendors import _chat, _embeddings
from toolkit.vendors._chat_stream import ChatStreamReader
from toolkit.vendors._http import (
    OUT_OF_CREDIT,
    REFUSED,
    Json,
    VendorResponse,
    build_bearer_headers,
    build_json_request,
    collect_names,
    get_object,
    send_probe,
)
from toolkit.vendors._negotiation import negotiate_request
from toolkit.vendors._prices import load_models

CHAT_PATH = "/chat/completions"
MAX_PICTURE_TOKENS = 4_000
_VALIDATION_ERROR = re.compile(r"\bvalidation errors?\b.*'loc': \('body'", re.DOTALL)


def generate_text(operation: TextRequest, access: Access) -> Flow[TextReply]:
    """Generate text by chat completions.

    Newer models refuse some parameters by name, and other servers know only a part of the wire.
    A refused field is left out, or sent in another form.

    Raises:
        ProviderError: the vendor refused or failed, classified by its documented error table.
    """
    answer = yield from negotiate_request(
        operation, access, lambda fields: _send_request(access, fields)
    )
    body = answer.json()
    if answer.is_failure:
        raise _build_failure(answer, body)
    return _chat.parse_reply(answer, body, operation)


def embed_texts(operation: EmbedRequest, access: Access) -> Flow[EmbedReply]:
    """Embed texts by the embeddings API.

    Raises:
        ProviderError: the vendor refused or failed, classified by its documented error table.
    """
    fields = _embeddings.build_body(operation, access)
    request = build_json_request(access.url("/embeddings"), fields, build_bearer_headers(access))
    answer = VendorResponse("openai", access, (yield from send(request)))
    body = yield from run_in_thread(answer.json)
    if answer.is_failure:
        raise _build_failure(answer, body)
    return (yield from run_in_thread(_embeddings.read_reply, answer, body, operation))


def probe(access: Access) -> Flow[list[str]]:
    """List the models, which is free and needs a key.

    Raises:
        ProviderError: `PROVIDER_AUTH_FAILED` if the key is refused.
    """
    answer = yield from send_probe("openai", access, "/models", build_bearer_headers(access))
    body = answer.json()
    if answer.is_failure:
        raise _build_failure(answer, body)
    return collect_names(answer, body.get("data"), "id")


def _send_request(access: Access, fields: Json) -> Flow[VendorResponse]:
    request = _chat.build_request(access, CHAT_PATH, fields)
    reader = ChatStreamReader() if fields.get("stream") else None
    answer = yield from send(request, instead=True, stream=reader)
    return VendorResponse("openai", access, answer)


def _build_failure(answer: VendorResponse, body: Json) -> ProviderError:
    error = get_object(body, "error")
    words = error.get("message") or body.get("error") or body.get("message") or body.get("detail")
    if "insufficient_quota" in (error.get("code"), error.get("type")):
        return answer.build_failure(words, verdict=OUT_OF_CREDIT)
    # Some servers answer 500 if a request fails their validation.
    refused = answer.status == 500 and bool(_VALIDATION_ERROR.search(str(words)))
    return answer.build_failure(words, verdict=REFUSED if refused else None)


VENDOR = Vendor(
    id="openai",
    label="V1",
    title="OpenAI and compatible servers",
    variable="OPENAI_API_KEY",
    base_urls={"api": "https://api.openai.com/v1"},
    operations={TextRequest: generate_text, EmbedRequest: embed_texts},
    models=load_models("openai"),
    bounds={
        TextRequest: TokenBound(
            "API reference, chat completions: max_completion_tokens limits the output,"
            " which is visible tokens and reasoning tokens; guide to vision: a picture is scaled"
            " down to 1,536 patches, of which the smallest models count 2.46 each",
            picture=MAX_PICTURE_TOKENS,
        ),
        EmbedRequest: InputBound("API reference, embeddings: the tokens of the input alone"),
    },
    probe=probe,
)
