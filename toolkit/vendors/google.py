"""Google (V3): text, embeddings and transcripts by the Gemini API.

Vertex AI has the same API, under the path of a project (`Access.place`) and with tokens as keys.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from toolkit.plugins import (
    Access,
    Bound,
    Cost,
    EmbedReply,
    EmbedRequest,
    Flow,
    InputBound,
    ProviderError,
    TextReply,
    TextRequest,
    TokenBound,
    TranscribeReply,
    TranscribeRequest,
    Vendor,
    run_in_thread,
)
from toolkit.plugins.bounds import ModelLimits
from toolkit.plugins.conversation import Picture, ToolCall, Turn
from toolkit.plugins.operations import AUDIO_TOKENS_PER_SECOND, TRANSCRIPT_TOKENS_PER_SECOND
from toolkit.plugins.streaming import AnswerPiece, JsonEventReader, WholeAnswer, build_answer
from toolkit.vendors import _chat, _transcripts
from toolkit.vendors._chat_stream import find_error_status
from toolkit.vendors._embeddings import MAX_JSON_TEXTS, make_reply
from toolkit.vendors._google_batches import make_batch_wire
from toolkit.vendors._http import (
    KEY_REFUSED,
    OUT_OF_CREDIT,
    REFUSED,
    Json,
    VendorResponse,
    build_bearer_headers,
    check_header_safe,
    clean_text,
    get_first,
    get_object,
    list_objects,
    quote_path_segment,
    read_numbers,
    to_finite_number,
)
from toolkit.vendors._negotiation import (
    OptionalField,
    ask_without_refused_fields,
    is_tier_firm,
    list_tier_fields,
)
from toolkit.vendors._prices import load_models
from toolkit.vendors._wire import VendorWire

_FINISH_REASONS = {"STOP": "stop", "MAX_TOKENS": "length"}
# Finish reasons that mean a refusal; an unknown reason does not.
_BLOCK_REASONS = frozenset(
    ("SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "LANGUAGE", "IMAGE_SAFETY")
)
_MODELS = load_models("google")
_REASONING_MODELS = frozenset(model.id for model in _MODELS if model.reasons)
# A range that all thinking models of the vendor's guide accept; it excludes the dearest budgets.
MIN_THINKING_BUDGET, MAX_THINKING_BUDGET = 512, 8_192
# The largest budget that all models accept of a caller who asks for reasoning.
MAX_REQUESTED_BUDGET = 24_576
# At the default resolution a picture has at most so many tokens (guide to media resolution).
MAX_PICTURE_TOKENS = 1_120
# Guide to audio: a request of at most 20 MB may have it inline, in base64.
MAX_AUDIO_BYTES = 14_000_000
_MIN_TRANSCRIPT_TOKENS, _MAX_TRANSCRIPT_TOKENS = 512, 57_344
_TRANSCRIPT_PROMPT = (
    "Transcribe this audio word for word, a segment for each sentence, with times in seconds from"
    " the start. Answer with no segments if nobody speaks."
)
_TRANSCRIPT_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "language": {"type": "string", "description": "ISO 639-1 code of the spoken language"},
        "segments": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "start": {"type": "number"},
                    "end": {"type": "number"},
                    "text": {"type": "string"},
                },
                "required": ["start", "end", "text"],
            },
        },
    },
    "required": ["language", "segments"],
}
_TOOL_CHOICES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
# The documented text for calls that another model made (guide to thought signatures).
_NO_SIGNATURE = "skip_thought_signature_validator"
_STABLE_VERSION = OptionalField("v1", "unknown name", "v1")
_TIER_FIELD = OptionalField("serviceTier", "service.?tier", "serviceTier")
_THINKING_FIELD = OptionalField("thinkingConfig", "thinking", "thinkingConfig")
_TIER_HEADER = "x-gemini-service-tier"
_SCHEMA_FIELD = OptionalField("responseJsonSchema", "schema|mime_?type")


def generate_text(operation: TextRequest, access: Access) -> Flow[TextReply]:
    """Generate text by generateContent.

    A schema that the vendor refuses goes into the prompt instead, once. A field that the stable
    version of the API does not know is sent to the beta version.

    Raises:
        ProviderError: the vendor refused or failed, classified by its documented error table.
    """
    _, reply = yield from _ask_for_text(operation, access)
    return reply


def _ask_for_text(operation: TextRequest, access: Access) -> Flow[tuple[VendorResponse, TextReply]]:
    optional = [_STABLE_VERSION, *list_tier_fields(_TIER_FIELD, access)]
    if access.model in _REASONING_MODELS:
        optional.append(_THINKING_FIELD)
    if operation.schema is not None:
        optional.append(_SCHEMA_FIELD)
    answer = yield from ask_without_refused_fields(
        optional,
        access,
        lambda sent: _send_request(
            access,
            _build_body(operation, access, sent),
            beta=_STABLE_VERSION.name not in sent,
            stream=operation.stream,
        ),
    )
    body = WIRE.read(answer)
    return answer, _parse_reply(answer, body, operation)


def embed_texts(operation: EmbedRequest, access: Access) -> Flow[EmbedReply]:
    """Embed the first texts, up to 24, by batchEmbedContents.

    If the answer reports no tokens, the estimated tokens of the texts count as billed.

    Raises:
        ProviderError: the vendor refused or failed, classified by its documented error table.
    """
    texts = operation.texts[:MAX_JSON_TEXTS]
    config: Json = {
        "taskType": "RETRIEVAL_QUERY" if operation.purpose == "query" else "RETRIEVAL_DOCUMENT"
    }
    if operation.dimensions is not None:
        config["outputDimensionality"] = operation.dimensions
    # A request to Vertex AI has the model in its path alone.
    fields = (
        {"embedContentConfig": config}
        if access.place
        else {"model": f"models/{access.model}", **config}
    )
    requests = [{"content": {"parts": [{"text": text}]}, **fields} for text in texts]
    path = build_path(access, "batchEmbedContents", beta=True)
    answer, body = yield from WIRE.post(access, path, {"requests": requests})
    vectors = [row.get("values") for row in list_objects(body, "embeddings")]
    tokens = to_finite_number(get_object(body, "usageMetadata").get("promptTokenCount"))
    if tokens is None:
        tokens = replace(operation, texts=texts).units()["input_tokens"]
    return (yield from run_in_thread(make_reply, answer, len(texts), vectors, tokens))


def transcribe_audio(operation: TranscribeRequest, access: Access) -> Flow[TranscribeReply]:
    """Transcribe audio by generateContent, which answers with JSON of timed sentences.

    Raises:
        ProviderError: the vendor refused or failed; `PROVIDER_BAD_RESPONSE` for a transcript that
            is truncated or no JSON.
    """
    _, data, media_type = _transcripts.build_file(operation, access, MAX_AUDIO_BYTES)
    request = _build_transcript_request(operation, (Picture(media_type, data),))
    answer, reply = yield from _ask_for_text(request, access)
    try:
        value = json.loads(reply.text)
        rows, language = value["segments"], value["language"]
    except (ValueError, KeyError, TypeError):
        rows = language = None
    if not isinstance(rows, list) or reply.finish == "length":
        raise answer.build_bad_response(f"{answer.vendor} did not finish the transcript.")
    segments = _transcripts.read_segments(rows, operation)
    text = " ".join(segment.text for segment in segments)
    made = _transcripts.make_reply(answer, operation, text, segments, language, reply.cost)
    return replace(made, model=reply.model, tier=reply.tier)


def _build_transcript_request(
    operation: TranscribeRequest, audio: tuple[Picture, ...] = ()
) -> TextRequest:
    """Build the request for a transcript; the API takes audio as it takes pictures."""
    wishes = [_TRANSCRIPT_PROMPT]
    if operation.language is not None:
        wishes.append(f"The language has the ISO 639-1 code {operation.language}.")
    if operation.prompt:
        wishes.append(f"Names and terms that may occur: {operation.prompt}")
    usual = round(operation.duration_s * TRANSCRIPT_TOKENS_PER_SECOND)
    return TextRequest(
        turns=(Turn("user", " ".join(wishes), audio),),
        schema=_TRANSCRIPT_SCHEMA,
        max_tokens=min(_MIN_TRANSCRIPT_TOKENS + 2 * usual, _MAX_TRANSCRIPT_TOKENS),
    )


def _build_headers(access: Access) -> dict[str, str]:
    if access.place:
        return build_bearer_headers(access)
    return {"x-goog-api-key": check_header_safe(access.secret)}


def build_path(access: Access, action: str, *, beta: bool = False) -> str:
    """Build the path of an action of the model, in the stable or the beta version of the API."""
    version = "v1" if not beta else "v1beta1" if access.place else "v1beta"
    return f"/{version}/{access.place}models/{quote_path_segment(access.model)}:{action}"


def choose_thinking_budget(operation: TextRequest) -> int:
    """Return the thinking budget of a request, on top of the cap of its answer.

    >>> [choose_thinking_budget(TextRequest(max_tokens=cap)) for cap in (64, 4_096, 60_000)]
    [512, 2048, 8192]
    >>> [choose_thinking_budget(TextRequest(reasoning=level)) for level in ("none", "low", 9_000)]
    [512, 1024, 9000]
    """
    if operation.reasoning is None:
        return min(max(operation.max_tokens // 2, MIN_THINKING_BUDGET), MAX_THINKING_BUDGET)
    return max(min(operation.reasoning_tokens, MAX_REQUESTED_BUDGET), MIN_THINKING_BUDGET)


# Gemini 3 was seen to exceed its thinking budget, but never the cap on thoughts and answer.
# The guide says that the cap is the answer's alone. The sum of both holds either way.
_TEXT_BOUND = TokenBound(
    "guide to thinking: thoughts are billed as output, and thinkingBudget limits them;"
    " googleapis/python-genai issue 2062: maxOutputTokens limits thoughts and answer",
    capped=False,
    reasoning=choose_thinking_budget,
    picture=MAX_PICTURE_TOKENS,
)


@dataclass(frozen=True, slots=True)
class _TranscriptBound(Bound):
    """A bound on the tokens of a transcript: those of its request for text, and of the audio."""

    def units(
        self, operation: TranscribeRequest, model: ModelLimits, /
    ) -> Mapping[str, float] | None:
        """Return the most input and output tokens, or None if there is no known maximum."""
        units = _TEXT_BOUND.units(_build_transcript_request(operation), model)
        if units is None:
            return None
        seconds = math.ceil(operation.duration_s) + 1
        audio = float(seconds * AUDIO_TOKENS_PER_SECOND)
        return {**units, "input_tokens": units["input_tokens"] + audio}


def _build_body(operation: TextRequest, access: Access, sent: frozenset[str]) -> Json:
    native = _SCHEMA_FIELD.name in sent
    config: Json = {
        "maxOutputTokens": operation.max_tokens,
        "temperature": operation.temperature,
        "topP": operation.top_p,
        "seed": operation.seed,
        "stopSequences": list(operation.stop) or None,
    }
    if _THINKING_FIELD.name in sent:
        config[_THINKING_FIELD.name] = _build_thinking(operation)
    if native:
        config["responseMimeType"] = "application/json"
        config[_SCHEMA_FIELD.name] = operation.schema
    note = "" if native else _chat.write_schema_note(operation)
    fields: Json = {
        "contents": _build_contents(operation.list_turns(note)),
        "generationConfig": {name: value for name, value in config.items() if value is not None},
    }
    if _TIER_FIELD.name in sent or is_tier_firm(access):
        fields[_TIER_FIELD.name] = access.tier
    if operation.system:
        fields["systemInstruction"] = {"parts": [{"text": operation.system}]}
    if operation.tools:
        fields["tools"] = [
            {
                "functionDeclarations": [
                    {
                        "name": tool.name,
                        "description": tool.description,
                        "parametersJsonSchema": tool.parameters,
                    }
                    for tool in operation.tools
                ]
            }
        ]
        calling: Json = {"mode": _TOOL_CHOICES[operation.tool_choice]}
        if operation.named_tool:
            calling["allowedFunctionNames"] = [operation.named_tool]
        fields["toolConfig"] = {"functionCallingConfig": calling}
    return fields


def _build_thinking(operation: TextRequest) -> Json:
    """Build the budget of thoughts, which the cap of the answer does not count."""
    thinking: Json = {"thinkingBudget": choose_thinking_budget(operation)}
    if operation.reasoning is not None:
        thinking["includeThoughts"] = operation.reasoning_tokens > 0
    return thinking


def _build_contents(turns: tuple[Turn, ...]) -> list[Json]:
    """Build the messages, in which answers of tools name their tools."""
    names: dict[str, str] = {}
    messages = _chat.merge_turns(turns, lambda turn: _iter_parts(turn, names))
    return [
        {
            "role": "model" if message["role"] == "assistant" else "user",
            "parts": message["content"],
        }
        for message in messages
    ]


def _iter_parts(turn: Turn, names: dict[str, str]) -> Iterator[Json]:
    """Yield the parts of a message; `names` holds the tool of each call so far."""
    if turn.role == "tool":
        response = {"result": turn.text}
        name = names.get(turn.tool_call_id, turn.tool_call_id)
        yield {"functionResponse": {"id": turn.tool_call_id, "name": name, "response": response}}
        return
    for picture in turn.pictures:
        data = _chat.encode_picture(picture)
        yield {"inlineData": {"mimeType": picture.media_type, "data": data}}
    if turn.text:
        yield {"text": turn.text}
    for place, call in enumerate(turn.tool_calls):
        names[call.id] = call.name
        part: Json = {"functionCall": {"id": call.id, "name": call.name, "args": call.arguments}}
        if place == 0:  # the vendor signs the first of parallel calls
            is_own = call.signature and not call.reasoning
            part["thoughtSignature"] = call.signature if is_own else _NO_SIGNATURE
        yield part


class _ContentReader(JsonEventReader):
    """A reader of streamed content: each event is an answer with a part of the text."""

    def __init__(self) -> None:
        super().__init__()
        self._body: Json = {}
        self._candidate: Json = {}
        self._parts: list[Json] = []

    def _add_event(self, event: Json) -> list[AnswerPiece]:
        self._body |= {name: value for name, value in event.items() if name != "candidates"}
        choice = get_first(event, "candidates")
        self._candidate |= choice
        parts = list_objects(get_object(choice, "content"), "parts")
        return [piece for part in parts for piece in self._add_part(part)]

    def _add_part(self, part: Json) -> list[AnswerPiece]:
        self._parts.append(part)
        if "functionCall" in part:  # which comes whole
            place = sum("functionCall" in known for known in self._parts) - 1
            call = get_object(part, "functionCall")
            spelled = json.dumps(call.get("args") or {}, ensure_ascii=False)
            id = _name_call(call, place)
            return self._pieces.add_call(place, spelled, id=id, name=call.get("name"))
        text = part.get("text")
        if part.get("thought") is True:
            return self._pieces.add_reasoning(text)
        return self._pieces.add_text(text)

    def assemble(self) -> WholeAnswer | None:
        """Assemble the answer or the reported failure; None if the stream ended before either."""
        if "error" in self._body:
            return build_answer(self._body, find_error_status(self._body))
        blocked = get_object(self._body, "promptFeedback").get("blockReason")
        if not blocked and not self._candidate.get("finishReason"):
            return None
        content = {**get_object(self._candidate, "content"), "parts": self._parts}
        candidates = [{**self._candidate, "content": content}] if self._candidate else []
        return build_answer({**self._body, "candidates": candidates})


def _send_request(
    access: Access, fields: Json, *, beta: bool, stream: bool
) -> Flow[VendorResponse]:
    # Only the beta version knows the aliases of the latest models.
    beta = beta or access.model.endswith("-latest")
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    path = build_path(access, method, beta=beta)
    return WIRE.ask(access, path, fields, stream=_ContentReader() if stream else None)


def _build_failure(answer: VendorResponse, body: Json) -> ProviderError:
    error = get_object(body, "error")
    reasons = [row.get("reason") for row in list_objects(error, "details")]
    verdict = None
    if "API_KEY_INVALID" in reasons:  # this vendor reports a bad key as an invalid argument
        verdict = KEY_REFUSED
    elif error.get("status") == "FAILED_PRECONDITION":
        verdict = OUT_OF_CREDIT
    return answer.build_failure(error.get("message"), verdict=verdict)


def _parse_reply(answer: VendorResponse, body: Json, operation: TextRequest) -> TextReply:
    request_id = answer.read_label(body.get("responseId")) or answer.request_id
    blocked = answer.redact_excerpt(get_object(body, "promptFeedback").get("blockReason"))
    choice = get_first(body, "candidates")
    reason = str(choice.get("finishReason"))
    if blocked or reason in _BLOCK_REASONS:
        raise answer.build_error(
            REFUSED,
            f"{answer.vendor} refused to answer this: {blocked or reason}.",
            request_id=request_id,
        )
    if not choice:
        raise answer.build_bad_response(
            f"The answer of {answer.vendor} has no candidate in it.",
            request_id=request_id,
        )
    known = list_objects(get_object(choice, "content"), "parts")
    texts = [clean_text(p.get("text")) or "" for p in known if p.get("thought") is not True]
    thoughts = [clean_text(p.get("text")) or "" for p in known if p.get("thought") is True]
    label = answer.read_label(answer.response.headers.get(_TIER_HEADER))
    reply = TextReply(
        text="".join(texts).strip(),
        finish=_FINISH_REASONS.get(reason, "stop"),
        cost=Cost(_parse_usage(get_object(body, "usageMetadata"))),
        vendor_request_id=request_id,
        model=answer.read_label(body.get("modelVersion")) or answer.access.model,
        tier=_chat.read_service_tier(label),
        tool_calls=tuple(
            _read_tool_call(answer, part, place)
            for place, part in enumerate(part for part in known if "functionCall" in part)
        ),
        reasoning="".join(thoughts),
    )
    return _chat.complete_reply(answer, operation, reply)


def _read_tool_call(answer: VendorResponse, part: Json, place: int) -> ToolCall:
    asked = get_object(part, "functionCall")
    named = _name_call(asked, place)
    call = _chat.read_tool_call(answer, named, asked.get("name"), asked.get("args") or {})
    return replace(call, signature=clean_text(part.get("thoughtSignature")) or "")


def _name_call(call: Json, place: int) -> object:
    return call.get("id") or f"call_{place}"  # some models give no id


def _parse_usage(usage: Json) -> dict[str, float]:
    """Parse the billed tokens, thoughts included; returns {} unless input and output are given."""
    names = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount")
    input_tokens, output_tokens, thoughts = read_numbers(usage, *names)
    if input_tokens is None or (output_tokens is None and thoughts is None):
        return {}
    rows = list_objects(usage, "promptTokensDetails")
    images = (row.get("tokenCount") for row in rows if row.get("modality") == "IMAGE")
    return _chat.build_token_units(
        input_tokens,
        (output_tokens or 0.0) + (thoughts or 0.0),
        cache_reads=to_finite_number(usage.get("cachedContentTokenCount")),
        images=to_finite_number(next(images, None)),
        reasoning=thoughts,
    )


WIRE = VendorWire(_build_failure, _build_headers)
VENDOR = Vendor(
    id="google",
    label="V3",
    title="Google Gemini",
    variable="GEMINI_API_KEY",
    base_urls={"api": "https://generativelanguage.googleapis.com"},
    operations={
        TextRequest: generate_text,
        EmbedRequest: embed_texts,
        TranscribeRequest: transcribe_audio,
    },
    models=_MODELS,
    bounds={
        TextRequest: _TEXT_BOUND,
        EmbedRequest: InputBound("price list: the tokens of the input alone"),
        TranscribeRequest: _TranscriptBound(
            "guide to audio: 32 tokens for each second; guide to thinking, as for text"
        ),
    },
    probe=WIRE.make_probe("/v1/models"),
    telemetry_name="gcp.gemini",
    batch=make_batch_wire(WIRE),
)
