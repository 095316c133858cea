"""The `elevenlabs` wire: speech, voices and voice clones."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from toolkit.sandbox.audio.recordings import measure_recording
from toolkit.sandbox.audio.speech import VoiceSettings, synthesize_speech
from toolkit.sandbox.forms import NotFormError, read_form
from toolkit.sandbox.json_http import (
    JsonObject,
    NotJsonError,
    has_json_type,
    make_response,
    read_json_object,
)
from toolkit.sandbox.keys import SANDBOX_KEYS
from toolkit.sandbox.state import SandboxState, get_request_digest, mark_billed

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]

MODELS = {
    "eleven_flash_v2_5": 40_000,
    "eleven_multilingual_v2": 10_000,
    "eleven_v3": 5_000,
    "eleven_v4": 10_000,
    "eleven_v4_turbo": 40_000,
}
VOICES = {"21m00Tcm4TlvDq8ikWAM": "Rachel", "AZnzlk1XvdvUeBnXmlld": "Domi"}
FORMATS = {"mp3_44100_128": 128_000, "mp3_44100_64": 64_000, "mp3_44100_32": 32_000}
FIELDS = {
    "text": "string",
    "model_id": "string|null",
    "voice_settings": "object|null",
    "language_code": "string|null",
    "seed": "integer|null",
    "previous_text": "string|null",
    "next_text": "string|null",
    "apply_text_normalization": "string|null",
}
SETTING_RANGES = {
    "stability": (0.0, 1.0),
    "similarity_boost": (0.0, 1.0),
    "style": (0.0, 1.0),
    "speed": (0.7, 1.2),
}


@dataclass(slots=True)
class ElevenLabsRefusalError(Exception):
    """An error in the vendor's format: an object in `detail`, or a list for a wrong field."""

    status: int
    code: str
    message: str
    where: tuple[str, ...] = ()

    def to_response(self) -> Response:
        """Make the response that carries the error."""
        if self.where:
            detail: object = [{"loc": list(self.where), "msg": self.message, "type": self.code}]
        else:
            detail = {"status": self.code, "message": self.message}
        return make_response({"detail": detail}, self.status)


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
        body = await _read_body(request)
        model = body.get("model_id") or "eleven_multilingual_v2"
        if model not in MODELS:
            raise ElevenLabsRefusalError(
                400, "model_not_found", f"A model with ID {model} does not exist."
            )
        if voice not in VOICES and voice not in self._clones:
            raise ElevenLabsRefusalError(
                404, "voice_not_found", f"A voice for the voice_id {voice} was not found."
            )
        text = body["text"]
        if not text.strip():
            raise ElevenLabsRefusalError(400, "invalid_text", "The text is empty.")
        if len(text) > MODELS[model]:
            message = f"A single request can have {MODELS[model]} characters at most."
            raise ElevenLabsRefusalError(400, "max_character_limit_exceeded", message)
        form = request.query_params.get("output_format", "mp3_44100_128")
        if form not in FORMATS:
            raise ElevenLabsRefusalError(422, "enum", "Unknown format", ("query", "output_format"))
        speed = _parse_settings(body.get("voice_settings") or {}).get("speed", 1.0)
        voicing = VoiceSettings(
            voice,
            speed=speed,
            volume=1.0,
            pitch=0,
            audio_format="mp3",
            sample_rate=44100,
            bitrate=FORMATS[form],
            channels=1,
        )
        audio, _ = await run_in_threadpool(synthesize_speech, text, voicing)
        mark_billed(request)
        headers = {
            "character-cost": str(len(text)),
            "request-id": self._state.compute_fresh_digest(
                "elevenlabs", get_request_digest(request)
            )[:20],
        }
        return Response(audio, media_type="audio/mpeg", headers=headers)

    async def add_voice(self, request: Request) -> Response:
        try:
            form = await read_form(request)
        except NotFormError:
            raise ElevenLabsRefusalError(
                422, "missing", "Field required", ("body", "files")
            ) from None
        name, labels = form.fields.get("name"), form.fields.get("labels")
        recordings = [measure_recording(file.data) for file in form.files.get("files", ())]
        if not name:
            raise ElevenLabsRefusalError(422, "missing", "Field required", ("body", "name"))
        if labels is not None and not _is_object(labels):
            raise ElevenLabsRefusalError(
                422, "value_error", "labels must be a JSON object", ("body", "labels")
            )
        if not recordings:
            raise ElevenLabsRefusalError(422, "missing", "Field required", ("body", "files"))
        if any(recording is None for recording in recordings):
            raise ElevenLabsRefusalError(
                400, "invalid_content", "A file is no audio that can be read."
            )
        digest = self._state.compute_fresh_digest("elevenlabs-voice", get_request_digest(request))
        voice = digest[:20]
        self._clones[voice] = name
        mark_billed(request)
        return make_response({"voice_id": voice, "requires_verification": False})

    async def list_voices(self, _request: Request) -> Response:
        known = {**VOICES, **self._clones}
        return make_response(
            {"voices": [self._describe_voice(voice, name) for voice, name in known.items()]}
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
            raise ElevenLabsRefusalError(400, "voice_does_not_exist", "This voice is not yours.")
        del self._clones[voice]
        return make_response({"status": "ok"})

    async def list_models(self, _request: Request) -> Response:
        return make_response(
            [
                {
                    "model_id": name,
                    "name": f"{name} (sandbox)",
                    "can_do_text_to_speech": True,
                    "maximum_text_length_per_request": limit,
                }
                for name, limit in MODELS.items()
            ]
        )


def _is_object(text: object) -> bool:
    """Tell whether a form's field holds a JSON object, or null (which the SDK sends)."""
    try:
        return isinstance(json.loads(str(text)), dict | None)
    except ValueError:
        return False


def build_routes(state: SandboxState) -> list[BaseRoute]:
    """Build the routes of the vendor's paths."""
    wire = _ElevenLabsWire(state)

    def guard_handler(handler: Handler) -> Handler:
        async def endpoint(request: Request) -> Response:
            try:
                _check_key(request)
                return await handler(request)
            except ElevenLabsRefusalError as refusal:
                return refusal.to_response()

        return endpoint

    return [
        Route("/v1/text-to-speech/{voice}", guard_handler(wire.create_speech), methods=["POST"]),
        Route("/v1/voices/add", guard_handler(wire.add_voice), methods=["POST"]),
        Route("/v1/voices", guard_handler(wire.list_voices), methods=["GET"]),
        Route("/v1/voices/{voice}", guard_handler(wire.delete_voice), methods=["DELETE"]),
        Route("/v1/models", guard_handler(wire.list_models), methods=["GET"]),
    ]


def _check_key(request: Request) -> None:
    key = request.headers.get("xi-api-key")
    if key is None:
        raise ElevenLabsRefusalError(401, "needs_authorization", "Neither key nor token was sent.")
    if key != SANDBOX_KEYS["ELEVENLABS_API_KEY"]:
        raise ElevenLabsRefusalError(401, "invalid_api_key", "Invalid API key")


async def _read_body(request: Request) -> JsonObject:
    try:
        body = await read_json_object(request)
    except NotJsonError:
        raise ElevenLabsRefusalError(422, "json_invalid", "JSON decode error", ("body",)) from None
    if body.get("text") is None:
        raise ElevenLabsRefusalError(422, "missing", "Field required", ("body", "text"))
    for name, value in body.items():
        if name in FIELDS and not has_json_type(value, FIELDS[name]):
            raise ElevenLabsRefusalError(
                422, "type_error", "Input has a wrong type", ("body", name)
            )
    return body


def _parse_settings(given: JsonObject) -> dict[str, float]:
    for name, (low, high) in SETTING_RANGES.items():
        value = given.get(name)
        if value is not None and not (has_json_type(value, "number") and low <= value <= high):
            message = f"Invalid setting for {name}: {low} to {high}."
            raise ElevenLabsRefusalError(400, "invalid_voice_settings", message)
    return {name: float(given[name]) for name in SETTING_RANGES if given.get(name) is not None}
