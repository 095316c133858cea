"""Voices and refusals of the `elevenlabs` wire, by the elevenlabs SDK."""

from typing import Any

import pytest

from tests.support.recordings import make_silent_wav
from toolkit.sandbox import SANDBOX_KEYS

elevenlabs = pytest.importorskip("elevenlabs", reason="needs the extra `sdk`")


@pytest.fixture
def client(cloud_url: str) -> Any:
    """The vendor's own client."""
    from elevenlabs.client import ElevenLabs

    key = SANDBOX_KEYS["ELEVENLABS_API_KEY"]
    return ElevenLabs(base_url=f"{cloud_url}/elevenlabs", api_key=key)


def speak_text(client: Any, **changes: Any) -> bytes:
    """Have a text spoken."""
    request = {
        "voice_id": "21m00Tcm4TlvDq8ikWAM",
        "text": "Tides turn.",
        "model_id": "eleven_flash_v2_5",
        "request_options": {"max_retries": 0},
    }
    return b"".join(client.text_to_speech.convert(**request | changes))


def test_speaks_by_a_cloned_voice(client: Any) -> None:
    """Given a recording, then a voice is made of it, listed, used and deleted."""
    recording = ("ada.wav", make_silent_wav(11), "audio/wav")
    voice = client.voices.ivc.create(name="Ada", files=[recording])
    names = {voice.voice_id: voice.name for voice in client.voices.get_all().voices}
    assert names[voice.voice_id] == "Ada"
    assert speak_text(client, voice_id=voice.voice_id)
    client.voices.delete(voice.voice_id)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"model_id": "eleven_v0"}, 400),
        ({"text": " "}, 400),
        ({"output_format": "mp3_1_1"}, 422),
    ],
)
def test_refuses_an_invalid_request(client: Any, changes: dict[str, Any], status: int) -> None:
    """Given a request that the vendor refuses, then the SDK raises its own exception."""
    with pytest.raises(elevenlabs.core.ApiError) as refusal:
        speak_text(client, **changes)
    assert refusal.value.status_code == status
