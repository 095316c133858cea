"""Speech and voice clones of MiniMax."""

import re
from dataclasses import replace
from typing import Any

import pytest

from tests.vendors.conftest import CLONE, SPEECH, VendorDrive, flow, ok
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import CloneReply, CloneRequest, Cost, ProviderError, SpeechReply
from toolkit.vendors.minimax import build_voice_id

SUCCESS = {"status_code": 0, "status_msg": "success"}
# Transcribed from the vendor's T2A v2 page.
SPOKEN: dict[str, Any] = {
    "data": {"audio": "fffb9064", "status": 2},
    "extra_info": {"audio_length": 1500, "audio_size": 4, "usage_characters": 23},
    "trace_id": "01b8bf9b",
    "base_resp": SUCCESS,
}
UPLOADED = {"file": {"file_id": 123456789012345678, "bytes": 12}, "base_resp": SUCCESS}
CLONED = {"input_sensitive": False, "demo_audio": "", "base_resp": SUCCESS}


def test_decodes_speech(drive: VendorDrive) -> None:
    """Given hexadecimal audio, then the reply has bytes, milliseconds and billed characters."""
    reply = drive(flow("minimax", SPEECH), ok(SPOKEN))
    assert reply == SpeechReply(
        audio=b"\xff\xfb\x90\x64",
        media_type="audio/mpeg",
        duration_ms=1500,
        model="speech-2.8-turbo",
        vendor_request_id="01b8bf9b",
        cost=Cost({"characters": 23.0}),
    )
    sent = drive.body()
    assert drive.requests[0].url.path == "/v1/t2a_v2"
    assert "groupid" not in str(drive.requests[0].url).lower()
    assert sent["output_format"] == "hex"
    assert sent["audio_setting"]["format"] == "mp3"
    assert sent["voice_setting"]["voice_id"] == "English_Graceful_Lady"


def test_sends_voice_and_speed(drive: VendorDrive) -> None:
    """Given a voice and a speed, then both are sent."""
    drive(flow("minimax", replace(SPEECH, voice="Ada-2d71", speed=1.5)), ok(SPOKEN))
    setting = drive.body()["voice_setting"]
    assert (setting["voice_id"], setting["speed"]) == ("Ada-2d71", 1.5)


@pytest.mark.parametrize(
    "data",
    [None, {}, {"audio": ""}, {"audio": None}, {"audio": "xyz"}, {"audio": "fff"}, "fffb", []],
)
def test_rejects_speech_without_audio(drive: VendorDrive, data: object) -> None:
    """Given a success without audio, then the answer is a bad response."""
    with pytest.raises(ProviderError, match="no audio") as caught:
        drive(flow("minimax", SPEECH), ok({**SPOKEN, "data": data}))
    assert caught.value.code is ErrorCode.PROVIDER_BAD_RESPONSE
    assert caught.value.vendor_request_id == "01b8bf9b"


@pytest.mark.parametrize("extra", [None, {}, {"usage_characters": -1, "audio_length": "long"}])
def test_bills_sent_characters_by_default(drive: VendorDrive, extra: object) -> None:
    """Given audio alone, then the sent characters are billed and the length is unknown."""
    reply = drive(flow("minimax", SPEECH), ok({**SPOKEN, "extra_info": extra}))
    assert reply.cost == Cost({"characters": 23.0})
    assert reply.duration_ms is None


def test_clone_uploads_and_names_a_voice(drive: VendorDrive) -> None:
    """Given reference audio, then it is uploaded as multipart, and a voice is made of it."""
    reply = drive(flow("minimax", CLONE), ok(UPLOADED), ok(CLONED, trace_id="04c1"))
    upload, clone = drive.requests
    assert upload.url.path == "/v1/files/upload"
    assert upload.headers["content-type"].startswith("multipart/form-data")
    assert b'name="purpose"\r\n\r\nvoice_clone' in upload.content
    assert b'filename="reference.wav"' in upload.content
    assert CLONE.audio in upload.content
    assert clone.url.path == "/v1/voice_clone"
    assert drive.body() == {"file_id": 123456789012345678, "voice_id": build_voice_id(CLONE)}
    assert reply == CloneReply(
        voice=build_voice_id(CLONE),
        model="voice-clone",
        vendor_request_id="04c1",
        cost=Cost({"voices": 1.0}),
    )


def test_reuses_an_existing_clone(drive: VendorDrive) -> None:
    """Given the same audio and name again, then the existing voice is returned for free."""
    duplicate = {"trace_id": "04c1", "base_resp": {"status_code": 2039, "status_msg": "duplicate"}}
    reply = drive(flow("minimax", CLONE), ok(UPLOADED), ok(duplicate))
    assert (reply.voice, reply.cost) == (build_voice_id(CLONE), Cost({"voices": 0.0}))


@pytest.mark.parametrize("file", [None, {}, {"file_id": "12"}, {"file_id": True}])
def test_rejects_an_upload_without_an_id(drive: VendorDrive, file: object) -> None:
    """Given an upload without a file id, then no voice is requested."""
    with pytest.raises(ProviderError, match="returned no file id"):
        drive(flow("minimax", CLONE), ok({"file": file, "base_resp": SUCCESS}))
    assert len(drive.requests) == 1


@pytest.mark.parametrize("status", [2037, 2038, 1043])
def test_rejects_a_refused_clone(drive: VendorDrive, status: int) -> None:
    """Given a refusal of the second request, then the clone is rejected."""
    refused = {"base_resp": {"status_code": status, "status_msg": "no"}}
    with pytest.raises(ProviderError, match=str(status)) as caught:
        drive(flow("minimax", CLONE), ok(UPLOADED), ok(refused))
    assert caught.value.code is ErrorCode.PROVIDER_REJECTED


@pytest.mark.parametrize(
    "name", ["Ada", "Ada Lovelace!", "7 of 9", "_-_", "Änne", "声", "x" * 64, "a--", "../../etc"]
)
def test_voice_id_is_valid(name: str) -> None:
    """Given any name, then the voice id is valid and depends on name and audio alone."""
    clone = CloneRequest(name=name, audio=b"one", media_type="audio/wav")
    id = build_voice_id(clone)
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{6,254}[A-Za-z0-9]", id)
    assert build_voice_id(replace(clone, media_type="audio/mpeg")) == id
    assert build_voice_id(replace(clone, audio=b"two")) != id
