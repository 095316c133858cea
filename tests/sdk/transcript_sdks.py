"""Transcripts by the vendors' SDKs, for the comparison on a socket.

Each request has the fields that our adapter sent, and each answer is checked against the SDK's
types, times included.
"""

import io
import json
from typing import Any

import pytest
from multipart import MultipartParser

from tests.sdk.conftest import ReceivedRequest
from tests.sdk.vector_sdks import open_gemini


def read_sent_form(sent: ReceivedRequest) -> tuple[dict[str, str], tuple[str, bytes, str]]:
    """Return the fields of a form that was sent, and its file: name, content and type."""
    boundary = sent.headers["content-type"].partition("boundary=")[2]
    fields: dict[str, str] = {}
    file = ("", b"", "")
    for part in MultipartParser(io.BytesIO(sent.body), boundary):
        if part.filename is None:
            fields[part.name] = part.value
        else:
            file = (part.filename, part.raw, part.content_type)
    return fields, file


def check_times(parts: list[Any], text: str) -> None:
    """Check that parts are in order, and have the words of a text."""
    assert "".join(part.text for part in parts).split() == text.split()
    times = [time for part in parts for time in (part.start, part.end)]
    assert times == sorted(times)


def transcribe_by_openai(url: str, sent: ReceivedRequest, work: Any) -> str:
    """Transcribe by the openai SDK."""
    openai = pytest.importorskip("openai", reason="needs the extra `sdk`")
    base_url = url.removesuffix("/audio/transcriptions")
    client = openai.OpenAI(base_url=base_url, api_key=work.secret, max_retries=0)
    fields, file = read_sent_form(sent)
    answer = client.audio.transcriptions.create(file=file, **fields)
    type(answer).model_validate(answer.model_dump())
    check_times(answer.segments, answer.text)
    assert answer.usage.seconds >= answer.duration
    return str(answer.text)


def transcribe_by_google(url: str, sent: ReceivedRequest, work: Any) -> str:
    """Transcribe by the google-genai SDK."""
    client, model = open_gemini(url, work)
    from google.genai import types

    body = json.loads(sent.body)
    contents = [types.Content.model_validate(content) for content in body.pop("contents")]
    config = body.pop("generationConfig") | body
    answer = client.models.generate_content(
        model=model,
        contents=contents,
        config=types.GenerateContentConfig.model_validate(config),
    )
    return " ".join(segment["text"] for segment in json.loads(answer.text)["segments"])


def transcribe_by_elevenlabs(url: str, sent: ReceivedRequest, work: Any) -> str:
    """Transcribe by the elevenlabs SDK."""
    pytest.importorskip("elevenlabs", reason="needs the extra `sdk`")
    from elevenlabs.client import ElevenLabs
    from elevenlabs.types import SpeechToTextChunkResponseModel

    client = ElevenLabs(base_url=url.partition("/v1/")[0], api_key=work.secret)
    fields, file = read_sent_form(sent)
    fields["tag_audio_events"] = fields["tag_audio_events"] == "true"  # type: ignore[assignment]
    answer = client.speech_to_text.convert(file=file, **fields)
    SpeechToTextChunkResponseModel.model_validate(answer.model_dump())
    check_times(answer.words, answer.text)
    return str(answer.text)
