"""The `elevenlabs` wire: speech, transcripts, voices and voice clones."""

import json
import re
from dataclasses import dataclass, field

from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from toolkit.sandbox.audio.speech import VoiceSettings, synthesize_speech
from toolkit.sandbox.audio.transcripts import hear_recording, measure_recording
from toolkit.sandbox.json_http import (
    BodyFault,
    JsonObject,
    RefusalError,
    RequestBody,
    build_checked_routes,
    read_body,
    read_form,
)
from toolkit.sandbox.state import SandboxState, get_call, get_request_digest, mark_billed
from toolkit.sandbox.vendor_paths import SANDBOX_KEYS

MODELS = {
    "eleven_flash_v2_5": 40_000,
    "eleven_multilingual_v2": 10_000,
    "eleven_v3": 5_000,
    "eleven_v4": 10_000,
    "eleven_v4_turbo": 40_000,
}
TRANSCRIBERS = ("scribe_v2",)
# The ISO 639-3 codes that the vendor writes, by the codes of ISO 639-1.
_LONG_CODES = {
    "en": "eng", "de": "deu", "fr": "fra", "es": "spa", "it": "ita", "pt": "por", "nl": "nld",
    "ru": "rus", "ar": "ara", "hi": "hin", "ko": "kor", "ja": "jpn", "zh": "zho",
}  # fmt: skip
VOICES = {"21m00Tcm4TlvDq8ikWAM": "Rachel", "AZnzlk1XvdvUeBnXmlld": "Domi"}
FORMATS = {"mp3_44100_128": 128_000, "mp3_44100_64": 64_000, "mp3_44100_32": 32_000}


class SpeechSettings(RequestBody, extra="ignore"):
    """The settings of a voice."""

    stability: float | None = Field(None, ge=0, le=1)
    similarity_boost: float | None = Field(None, ge=0, le=1)
    style: float | None = Field(None, ge=0, le=1)
    speed: float | None = Field(None, ge=0.7, le=1.2)


class ElevenLabsSpeechRequest(RequestBody, extra="ignore"):
    """The body of a request for speech."""

    text: str
    model_id: str | None = None
    voice_settings: SpeechSettings | None = None


def refuse(status: int, code: str, message: str) -> RefusalError:
    """Make a refusal in the vendor's format."""
    return RefusalError({"detail": {"status": code, "message": message}}, status)


def refuse_field(code: str, message: str, *path: str | int) -> RefusalError:
    """Make a refusal of a field in the vendor's format."""
    return RefusalError({"detail": [{"loc": path, "msg": message, "type": code}]}, 422)


def refuse_missing(name: str) -> RefusalError:
    """Make a refusal of a form without a field."""
    return refuse_field("missing", "Field required", "body", name)


@dataclass(slots=True)
class _ElevenLabsRecords:
    """The voices that this account made."""

    clones: dict[str, str] = field(default_factory=dict)


class _ElevenLabsWire:
    def __init__(self, state: SandboxState) -> None:
        self._state = state
        self._clones = state.get_records(_ElevenLabsRecords).clones

    async def create_speech(self, request: Request) -> Response:
        voice = str(request.path_params["voice"])
        body = await read_body(request, ElevenLabsSpeechRequest, _refuse_body)
        model, text = body.model_id or "eleven_multilingual_v2", body.text
        if model not in MODELS:
            raise refuse(400, "model_not_found", f"A model with ID {model} does not exist.")
        if voice not in VOICES and voice not in self._clones:
            message = f"A voice for the voice_id {voice} was not found."
            raise refuse(404, "voice_not_found", message)
        if not text.strip():
            raise refuse(400, "invalid_text", "The text is empty.")
        if len(text) > MODELS[model]:
            message = f"A single request can have {MODELS[model]} characters at most."
            raise refuse(400, "max_character_limit_exceeded", message)
        form = request.query_params.get("output_format", "mp3_44100_128")
        if form not in FORMATS:
            raise refuse_field("enum", "Unknown format", "query", "output_format")
        speed = (body.voice_settings or SpeechSettings()).speed or 1.0
        voicing = VoiceSettings(voice, speed=speed, sample_rate=44100, bitrate=FORMATS[form])
        audio, _ = await run_in_threadpool(synthesize_speech, text, voicing)
        mark_billed(request)
        headers = {
            "character-cost": str(len(text)),
            "request-id": get_call(request).request_id[:20],
        }
        return Response(audio, media_type="audio/mpeg", headers=headers)

    async def transcribe_speech(self, request: Request) -> Response:
        form = await read_form(request, lambda: refuse_missing("file"))
        model = form.fields.get("model_id")
        if model is None:
            raise refuse_missing("model_id")
        if model not in TRANSCRIBERS:
            raise refuse(400, "invalid_model_id", f"'{model}' is not a valid model_id.")
        file = next(iter(form.files.get("file", ())), None)
        if file is None:
            raise refuse(400, "invalid_parameters", "Must provide either file or a URL.")
        heard = hear_recording(file.data)
        if heard is None:
            raise refuse(400, "invalid_content", "The file is no audio that can be read.")
        mark_billed(request)
        words = [
            {
                "text": part.text,
                "start": part.start,
                "end": part.end,
                "type": "spacing" if part.text.isspace() else "word",
                "speaker_id": "speaker_0",
                "logprob": -0.1,
            }
            for part in heard.time_parts(re.findall(r"\s+|\S+", heard.text))
        ]
        return JSONResponse(
            {
                "language_code": _LONG_CODES[heard.language],
                "language_probability": 0.98,
                "text": heard.text,
                "words": words,
                "audio_duration_secs": heard.seconds,
                "transcription_id": get_request_digest(request)[:20],
            }
        )

    async def add_voice(self, request: Request) -> Response:
        form = await read_form(request, lambda: refuse_missing("files"))
        name, labels = form.fields.get("name"), form.fields.get("labels")
        recordings = [measure_recording(file.data) for file in form.files.get("files", ())]
        if not name:
            raise refuse_missing("name")
        if labels is not None and not _is_object(labels):
            raise refuse_field("value_error", "labels must be a JSON object", "body", "labels")
        if not recordings:
            raise refuse_missing("files")
        if any(recording is None for recording in recordings):
            raise refuse(400, "invalid_content", "A file is no audio that can be read.")
        digest = self._state.compute_fresh_digest("elevenlabs-voice", get_request_digest(request))
        voice = digest[:20]
        self._clones[voice] = name
        mark_billed(request)
        return JSONResponse({"voice_id": voice, "requires_verification": False})

    async def list_voices(self, _request: Request) -> Response:
        voices = {**VOICES, **self._clones}
        return JSONResponse(
            {"voices": [self._describe_voice(voice, name) for voice, name in voices.items()]}
        )

    def _describe_voice(self, voice: str, name: str) -> JsonObject:
        category = "cloned" if voice in self._clones else "premade"
        return {
            "voice_id": voice,
            "name": name,
            "category": category,
            "labels": {},
            "available_for_tiers": [],
            "high_quality_base_model_ids": list(MODELS),
        }

    async def delete_voice(self, request: Request) -> Response:
        voice = str(request.path_params["voice"])
        if voice not in self._clones:
            raise refuse(400, "voice_does_not_exist", "This voice is not yours.")
        del self._clones[voice]
        return JSONResponse({"status": "ok"})


def _is_object(text: object) -> bool:
    """Check whether a form's field holds a JSON object, or null (which the SDK sends)."""
    try:
        return isinstance(json.loads(str(text)), dict | None)
    except ValueError:
        return False


def build_routes(state: SandboxState) -> list[BaseRoute]:
    """Build the routes of the vendor's paths."""
    wire = _ElevenLabsWire(state)
    return build_checked_routes(
        _check_key,
        (
            ("POST", "/v1/text-to-speech/{voice}", wire.create_speech),
            ("POST", "/v1/speech-to-text", wire.transcribe_speech),
            ("POST", "/v1/voices/add", wire.add_voice),
            ("GET", "/v1/voices", wire.list_voices),
            ("DELETE", "/v1/voices/{voice}", wire.delete_voice),
        ),
    )


def _check_key(request: Request) -> None:
    key = request.headers.get("xi-api-key")
    if key is None:
        raise refuse(401, "needs_authorization", "Neither key nor token was sent.")
    if key != SANDBOX_KEYS["ELEVENLABS_API_KEY"]:
        raise refuse(401, "invalid_api_key", "Invalid API key")


def _refuse_body(faults: list[BodyFault]) -> RefusalError:
    if not faults:
        return refuse_field("json_invalid", "JSON decode error", "body")
    fault = faults[0]
    if fault.path[0] == "voice_settings" and len(fault.path) > 1:
        message = f"Invalid setting for {fault.path[1]}: {fault.message}."
        return refuse(400, "invalid_voice_settings", message)
    return refuse_field(fault.kind, fault.message, "body", *fault.path)
