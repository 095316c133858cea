"""OpenAI (V1), and any server with the same API (wire): text, embeddings, transcripts."""

import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import httpx

from toolkit.contract.errors import ErrorCode
from toolkit.plugins import (
    Access,
    DurationBound,
    EmbedReply,
    EmbedRequest,
    Flow,
    InputBound,
    Operation,
    ProviderError,
    TextReply,
    TextRequest,
    TokenBound,
    TranscribeReply,
    TranscribeRequest,
    Vendor,
    WireDialect,
    run_in_thread,
    send,
)
from toolkit.plugins.compatible import FIRST_LISTED_MODEL
from toolkit.plugins.vendor import OFF_PEAK_TIER
from toolkit.vendors import _chat, _embeddings, _transcripts
from toolkit.vendors._chat_stream import ChatStreamReader
from toolkit.vendors._file_batches import FileBatches
from toolkit.vendors._http import (
    OUT_OF_CREDIT,
    REFUSED,
    Json,
    VendorResponse,
    get_first,
    get_object,
    list_objects,
    read_numbers,
)
from toolkit.vendors._negotiation import negotiate_request
from toolkit.vendors._prices import load_models
from toolkit.vendors._wire import VendorWire

# The most of older models: 2,048 pixels squared in patches of 32 pixels, at 1.62 tokens each.
MAX_PICTURE_TOKENS = 6_700
# Guide to speech to text: file uploads are limited to 25 MB.
MAX_AUDIO_BYTES = 25_000_000
# The models of this name answer without times, in a format that Whisper's models know, too.
_PLAIN_TRANSCRIBER = "gpt-"
# What servers answer with 500 to a request that they will never take: Python servers whose body
# validation failed, and llama.cpp without a projector (`tools/server`: "image input is not
# supported").
_REFUSED_BY_500 = re.compile(
    r"\bvalidation errors?\b.*'loc': \('body'|^image input is not supported", re.DOTALL
)


def generate_text(operation: TextRequest, access: Access) -> Flow[TextReply]:
    """Generate text by chat completions.

    Newer models refuse some parameters by name, and other servers know only a part of the API.
    A refused field is left out, or sent in another form.

    Raises:
        ProviderError: the vendor refused or failed, classified by its documented error table.
    """
    access = yield from _choose_listed_model(operation, access)
    answer = yield from negotiate_request(
        operation, access, lambda fields: _send_request(access, fields)
    )
    body = _WIRE.read(answer)
    reply = _chat.parse_reply(answer, body, operation)
    reported_usd = _read_reported_cost(body, access.dialect)
    tier = _find_tier(body, reply.tier, access.dialect)
    if reported_usd is None and tier == reply.tier:
        return reply
    return replace(reply, cost=replace(reply.cost, reported_usd=reported_usd), tier=tier)


def embed_texts(operation: EmbedRequest, access: Access) -> Flow[EmbedReply]:
    """Embed texts by the embeddings API; up to 24 at a server without vectors in base64.

    Raises:
        ProviderError: the vendor refused or failed, classified by its documented error table.
    """
    access = yield from _choose_listed_model(operation, access)
    if access.dialect.names.get("encoding_format") == "":
        operation = replace(operation, texts=operation.texts[: _embeddings.MAX_JSON_TEXTS])
    fields = _spell_fields(_embeddings.build_body(operation, access), access)
    answer, body = yield from _WIRE.post(access, "/embeddings", fields)
    return (yield from run_in_thread(_embeddings.read_reply, answer, body, operation))


def transcribe_audio(operation: TranscribeRequest, access: Access) -> Flow[TranscribeReply]:
    """Transcribe audio by the transcriptions API; OpenAI's `gpt-` models report no times.

    Raises:
        ProviderError: the vendor refused or failed, classified by its documented error table.
    """
    is_plain = access.model.startswith(_PLAIN_TRANSCRIBER)
    fields = {
        "model": access.model,
        "response_format": "json" if is_plain else "verbose_json",
        "language": operation.language,
        "prompt": operation.prompt or None,
    }
    files = {"file": _transcripts.build_file(operation, access, MAX_AUDIO_BYTES)}
    answer, body = yield from _WIRE.post_form(access, "/audio/transcriptions", fields, files)
    billed = {**body, **get_object(body, "usage")}
    return _transcripts.make_reply(
        answer,
        operation,
        body.get("text"),
        _transcripts.read_segments(body.get("segments"), operation),
        body.get("language") or get_first(body, "languages").get("code"),
        _transcripts.read_duration(billed, operation, "seconds", "duration"),
    )


def _choose_listed_model(operation: Operation[Any], access: Access) -> Flow[Access]:
    """Return the access with a model that the server lists, if the caller named none.

    For texts that is the first, for vectors the first of those that the server calls embedding
    models, or its only model.

    Raises:
        ProviderError: `PROVIDER_REJECTED` if it lists no model, or does not say which one embeds.
    """
    if access.model != FIRST_LISTED_MODEL:
        return access
    request = httpx.Request("GET", access.url("/models"), headers=_WIRE.build_headers(access))
    answer = VendorResponse(access, (yield from send(request)))
    body = _WIRE.read(answer)
    names = [
        name for row in list_objects(body, "data") if (name := answer.read_label(row.get("id")))
    ]
    # llama.cpp describes its models apart from the list.
    rows = (*list_objects(body, "data"), *list_objects(body, "models"))
    embedders = {row.get("id") or row.get("name") for row in rows if _is_embedder(row)}
    fit = [name for name in names if (name in embedders) == (operation.kind == EmbedRequest.kind)]
    if not fit and len(names) == 1:
        fit = names
    if not names:
        raise ProviderError(ErrorCode.PROVIDER_REJECTED, f"{access.vendor} serves no model.")
    if not fit:
        example = next((name for name in names if "embed" in name), names[0])
        raise ProviderError(
            ErrorCode.PROVIDER_REJECTED,
            f"{access.vendor} does not say which of its models is for this: name one, such as"
            f' provider="{access.vendor}/{example}".',
        )
    return replace(access, model=fit[0])


def _is_embedder(row: Json) -> bool:
    """Check whether a server's description of a model calls it an embedding model."""
    abilities = row.get("capabilities")
    words = [row.get("type"), *(abilities if isinstance(abilities, list) else ())]
    return any("embed" in word for word in words if isinstance(word, str))


def _spell_fields(fields: Json, access: Access) -> Json:
    """Return the fields under the server's names, without those that it does not take."""
    names = access.dialect.names
    spelled = {names.get(name, name): value for name, value in fields.items()}
    spelled.pop("", None)
    return spelled


def _read_reported_cost(body: Json, dialect: WireDialect) -> Decimal | None:
    """Read the cost that the server reports; None if there is none, or a caller's key paid a part.

    The dialect names the fields of the usage that hold it.
    """
    usage = get_object(body, "usage")
    for name, usd in dialect.costs.items():
        (count,) = read_numbers(usage, name)
        if count is not None and not usage.get("is_byok"):
            return Decimal(str(count)) * usd
    return None


def _find_tier(body: Json, tier: str | None, dialect: WireDialect) -> str | None:
    """Return the service tier of an answer: `off_peak` outside of peak hours, or else `tier`."""
    if not dialect.peak_hours:
        return tier
    (created,) = read_numbers(body, "created")
    if created is None:
        return tier
    hour = created % 86_400 / 3_600
    return tier if any(start <= hour < end for start, end in dialect.peak_hours) else OFF_PEAK_TIER


def _send_request(access: Access, fields: Json) -> Flow[VendorResponse]:
    reader = ChatStreamReader() if fields.get("stream") else None
    spelled = _spell_fields(fields, access)
    return _WIRE.ask(access, "/chat/completions", spelled, stream=reader, instead=True)


def _build_failure(answer: VendorResponse, body: Json) -> ProviderError:
    error = get_object(body, "error")
    words = error.get("message") or body.get("error") or body.get("message") or body.get("detail")
    if "insufficient_quota" in (error.get("code"), error.get("type")):
        return answer.build_failure(words, verdict=OUT_OF_CREDIT)
    refused = answer.status == 500 and bool(_REFUSED_BY_500.search(str(words)))
    return answer.build_failure(words, verdict=REFUSED if refused else None)


_MODELS = load_models("openai")
_WIRE = VendorWire(_build_failure)
probe = _WIRE.make_probe("/models", "data", "id")
VENDOR = Vendor(
    id="openai",
    label="V1",
    title="OpenAI and compatible servers",
    variable="OPENAI_API_KEY",
    base_urls={"api": "https://api.openai.com/v1"},
    operations={
        TextRequest: generate_text,
        EmbedRequest: embed_texts,
        TranscribeRequest: transcribe_audio,
    },
    models=_MODELS,
    dialect=WireDialect(
        is_original=True,
        batches="openai",
        # Models that reason take tools by chat completions only if they do not reason.
        tools_extra={model.id: {"reasoning_effort": "none"} for model in _MODELS if model.reasons},
    ),
    bounds={
        TextRequest: TokenBound(
            "API reference, chat completions: max_completion_tokens limits the output,"
            " which is visible tokens and reasoning tokens; guide to vision: a picture's tokens by"
            " its size",
            picture=MAX_PICTURE_TOKENS,
        ),
        EmbedRequest: InputBound("API reference, embeddings: the tokens of the input alone"),
        TranscribeRequest: DurationBound("price list: by the duration of the audio"),
    },
    probe=probe,
    batch=FileBatches(_WIRE).make_wire(),
)
