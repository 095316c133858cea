"""The elevenlabs SDK on the `elevenlabs` wire."""

from typing import Any

import pytest

from tests.sdk.conftest import Order
from tests.support.recordings import make_silent_wav
from toolkit.sandbox import SANDBOX_KEYS

elevenlabs = pytest.importorskip("elevenlabs", reason="needs the extra `sdk`")
VOICE = "21m00Tcm4TlvDq8ikWAM"


def client_of(cloud_url: str, key: str) -> Any:
    """The vendor's own client."""
    from elevenlabs.client import ElevenLabs

    return ElevenLabs(base_url=f"{cloud_url}/elevenlabs", api_key=key)


@pytest.fixture
def client(cloud_url: str) -> Any:
    """The vendor's own client, with the right key."""
    return client_of(cloud_url, SANDBOX_KEYS["ELEVENLABS_API_KEY"])


def speak_text(client: Any, **changes: Any) -> bytes:
    """A text, spoken."""
    asked = {"voice_id": VOICE, "text": "Tides turn.", "model_id": "eleven_flash_v2_5", **changes}
    return b"".join(client.text_to_speech.convert(**asked, request_options={"max_retries": 0}))


def test_speech(client: Any) -> None:
    """Given a text, then the SDK has an MP3."""
    audio = speak_text(client)
    assert audio[:3] == b"ID3" or audio[0] == 0xFF
    assert len(audio) > 2000


def test_voices(client: Any) -> None:
    """Given a recording, then the SDK makes a voice of it, lists it, and speaks by it."""
    reference = ("ada.wav", make_silent_wav(11), "audio/wav")
    made = client.voices.ivc.create(name="Ada", files=[reference])
    listed = {voice.voice_id: voice.name for voice in client.voices.get_all().voices}
    assert listed[made.voice_id] == "Ada"
    assert speak_text(client, voice_id=made.voice_id)
    client.voices.delete(made.voice_id)


def test_models(client: Any) -> None:
    """Given the models, then those of the price table are among them."""
    assert "eleven_flash_v2_5" in {model.model_id for model in client.models.list()}


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"voice_id": "nobody"}, 404),
        ({"model_id": "eleven_v0"}, 400),
        ({"text": " "}, 400),
        ({"output_format": "mp3_1_1"}, 422),
    ],
)
def test_refusals(client: Any, changes: dict[str, Any], status: int) -> None:
    """Given what the vendor refuses, then the SDK raises its own exception."""
    with pytest.raises(elevenlabs.core.ApiError) as refused:
        speak_text(client, **changes)
    assert refused.value.status_code == status


def test_a_wrong_key_and_a_fault(cloud_url: str, client: Any, order: Order) -> None:
    """Given a wrong key, or an ordered 429, then the SDK raises its own exception."""
    with pytest.raises(elevenlabs.core.ApiError) as refused:
        speak_text(client_of(cloud_url, "wrong"))
    assert (refused.value.status_code, refused.value.body["detail"]["status"]) == (
        401,
        "invalid_api_key",
    )
    order("elevenlabs", status=429)
    with pytest.raises(elevenlabs.core.ApiError) as refused:
        speak_text(client)
    assert refused.value.status_code == 429
