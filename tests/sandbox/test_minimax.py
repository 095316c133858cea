"""The `minimax` wire: chat, speech, uploads, clones, and failures with HTTP 200."""

import json
import struct
from typing import Any

import httpx
import miniaudio
import pytest

from tests.support.recordings import make_silent_wav
from toolkit.sandbox.audio.transcripts import measure_recording

CHAT, SPEECH = "/minimax/v1/chat/completions", "/minimax/v1/t2a_v2"
UPLOAD, CLONE = "/minimax/v1/files/upload", "/minimax/v1/voice_clone"
ASK = [{"role": "user", "content": "One line about coral reefs"}]
SPEAK: dict[str, Any] = {
    "model": "speech-2.8-turbo",
    "text": "The tide rises and falls twice each day, and people can use its energy.",
    "voice_setting": {"voice_id": "English_Graceful_Lady", "speed": 1, "vol": 1, "pitch": 0},
    "audio_setting": {"format": "mp3", "sample_rate": 32000, "bitrate": 128000, "channel": 1},
}


def code(reply: httpx.Response) -> int:
    """Return the vendor's own status; the HTTP status is always 200."""
    assert reply.status_code == 200
    return int(reply.json()["base_resp"]["status_code"])


async def upload(client: httpx.AsyncClient, data: bytes, purpose: str = "voice_clone") -> Any:
    """Upload a recording."""
    files = {"file": ("voice.wav", data, "audio/wav")}
    return await client.post(UPLOAD, data={"purpose": purpose}, files=files)


async def test_content_starts_with_a_thought_by_default(minimax: httpx.AsyncClient) -> None:
    """Given no option, then the content begins with a think block."""
    reply = await minimax.post(CHAT, json={"model": "MiniMax-M3", "messages": ASK})
    body = reply.json()
    assert code(reply) == 0
    assert body["model"] == "MiniMax-M3-sandbox"
    assert reply.headers["trace-id"] == body["id"]
    assert body["choices"][0]["message"]["content"].startswith("<think>")


async def test_thought_can_be_split_or_switched_off(minimax: httpx.AsyncClient) -> None:
    """Given reasoning_split or disabled thinking, then the content has no thought."""
    body = {"model": "MiniMax-M3", "messages": ASK}
    split = (await minimax.post(CHAT, json={**body, "reasoning_split": True})).json()
    message = split["choices"][0]["message"]
    assert "<think>" not in message["content"]
    assert message["reasoning_content"]
    off = (await minimax.post(CHAT, json={**body, "thinking": {"type": "disabled"}})).json()
    message = off["choices"][0]["message"]
    assert "<think>" not in message["content"]
    assert "reasoning_content" not in message
    assert "coral" in message["content"].lower()
    assert "\n" not in message["content"]


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        (CHAT, {"messages": ASK}, 2013),
        (CHAT, {"model": "MiniMax-M9", "messages": ASK}, 2013),
        (CHAT, {"model": "MiniMax-M3", "messages": []}, 2013),
        (CHAT, {"model": "MiniMax-M3", "messages": ASK, "temperature": 3}, 2013),
        (SPEECH, {**SPEAK, "model": "speech-9"}, 2013),
        (SPEECH, {**SPEAK, "text": ""}, 2013),
        (SPEECH, {**SPEAK, "text": "a" * 10_000}, 2013),
        (SPEECH, {**SPEAK, "voice_setting": {"voice_id": "Nobody_Here"}}, 2054),
        (SPEECH, {**SPEAK, "voice_setting": {"voice_id": "English_CalmWoman", "speed": 9}}, 2013),
        (SPEECH, {**SPEAK, "audio_setting": {"format": "ogg"}}, 2013),
        (CLONE, {"file_id": 1, "voice_id": "MyVoice001"}, 2013),
        (CLONE, {"file_id": "1", "voice_id": "MyVoice001"}, 2013),
    ],
)
async def test_failures_are_http_200(
    minimax: httpx.AsyncClient, path: str, body: dict[str, Any], expected: int
) -> None:
    """Given an invalid request, then it has HTTP 200 with the vendor's code in base_resp."""
    assert code(await minimax.post(path, json=body)) == expected


async def test_requires_a_key(anonymous: httpx.AsyncClient) -> None:
    """Given no key or a wrong key, then the code is 1004 or 2049, with HTTP 200."""
    assert code(await anonymous.post(CHAT, json={})) == 1004
    wrong = {"Authorization": "Bearer nope"}
    assert code(await anonymous.post(CHAT, json={}, headers=wrong)) == 2049


async def test_speech_is_a_valid_mp3(minimax: httpx.AsyncClient) -> None:
    """Given a text, then the hex is whole MP3 frames of the requested rate and stated length."""
    reply = (await minimax.post(SPEECH, json=SPEAK)).json()
    audio = bytes.fromhex(reply["data"]["audio"])
    info = reply["extra_info"]
    decoded = miniaudio.mp3_read_s16(audio)
    assert len(audio) == info["audio_size"]
    assert (decoded.sample_rate, decoded.nchannels) == (32000, 1)
    seconds = decoded.num_frames / 32000
    assert len(audio) * 8 / seconds == pytest.approx(128000, rel=0.01)
    assert abs(seconds - info["audio_length"] / 1000) < 0.15
    assert info["usage_characters"] == len(SPEAK["text"])
    assert 10 < len(SPEAK["text"]) / seconds < 20


async def test_speech_differs_by_voice_only(minimax: httpx.AsyncClient) -> None:
    """Given the same request again, then the bytes are the same; another voice differs."""
    first, *repeats = [await minimax.post(SPEECH, json=SPEAK) for _ in range(6)]
    changes = {**SPEAK, "voice_setting": {"voice_id": "English_Persuasive_Man"}}
    changed = await minimax.post(SPEECH, json=changes)
    assert {answer.content for answer in repeats} == {first.content}
    assert changed.json()["data"]["audio"] != first.json()["data"]["audio"]


@pytest.mark.parametrize(("form", "channels"), [("wav", 1), ("pcm", 1), ("mp3", 2)])
async def test_speaks_in_other_formats(
    minimax: httpx.AsyncClient, form: str, channels: int
) -> None:
    """Given another format, then it has the stated length."""
    setting = {"format": form, "sample_rate": 16000, "channel": channels, "bitrate": 64000}
    reply = (await minimax.post(SPEECH, json={**SPEAK, "audio_setting": setting})).json()
    audio = bytes.fromhex(reply["data"]["audio"])
    if form == "pcm":
        assert len(audio) / 32000 == pytest.approx(
            reply["extra_info"]["audio_length"] / 1000, abs=0.01
        )
        return
    measured = measure_recording(audio)
    assert measured is not None
    assert measured.file_format == form
    assert measured.seconds == pytest.approx(reply["extra_info"]["audio_length"] / 1000, abs=0.2)


async def test_cloned_voice_speaks(minimax: httpx.AsyncClient) -> None:
    """Given an upload, then it becomes a voice that can speak and is listed."""
    sent = await upload(minimax, make_silent_wav(12))
    file_id = sent.json()["file"]["file_id"]
    assert code(sent) == 0
    assert file_id > 2**40
    clone = {"file_id": file_id, "voice_id": "MyVoice001"}
    assert [code(await minimax.post(CLONE, json=clone)) for _ in range(2)] == [0, 2039]
    spoken = await minimax.post(SPEECH, json={**SPEAK, "voice_setting": {"voice_id": "MyVoice001"}})
    assert code(spoken) == 0
    listed = (await minimax.post("/minimax/v1/get_voice", json={"voice_type": "all"})).json()
    assert [voice["voice_id"] for voice in listed["voice_cloning"]] == ["MyVoice001"]
    assert "English_Graceful_Lady" in {voice["voice_id"] for voice in listed["system_voice"]}


@pytest.mark.parametrize("name", ["short", "1startsWithDigit", "ends_with_", "has space in"])
async def test_rejects_an_invalid_voice_id(minimax: httpx.AsyncClient, name: str) -> None:
    """Given a voice id against the vendor's rules, then it is refused."""
    file_id = (await upload(minimax, make_silent_wav(12))).json()["file"]["file_id"]
    assert code(await minimax.post(CLONE, json={"file_id": file_id, "voice_id": name})) == 2013


@pytest.mark.parametrize(
    ("data", "purpose", "expected"),
    [
        (make_silent_wav(5), "voice_clone", 2037),
        (make_silent_wav(301), "voice_clone", 2037),
        (make_silent_wav(12), "holiday", 2013),
        (b"not audio at all", "voice_clone", 2013),
    ],
)
async def test_rejects_an_invalid_upload(
    minimax: httpx.AsyncClient, data: bytes, purpose: str, expected: int
) -> None:
    """Given a wrong length, kind or purpose of a recording, then it is refused."""
    assert code(await upload(minimax, data, purpose)) == expected


async def test_measures_an_mp3_upload(minimax: httpx.AsyncClient) -> None:
    """Given an MP3, then its length is that of its frames."""
    long = {**SPEAK, "text": "The tide comes and the tide goes. " * 8}
    audio = bytes.fromhex((await minimax.post(SPEECH, json=long)).json()["data"]["audio"])
    tag = b"ID3\x04\x00\x00\x00\x00\x00\x0a" + bytes(10)
    assert code(await upload(minimax, tag + audio)) == 0
    assert code(await upload(minimax, audio[: len(audio) // 4])) == 2037


def test_reads_the_length_of_an_m4a() -> None:
    """Given an M4A file, then its length is that of its movie header."""
    head = b"\x00\x00\x00\x18ftypM4A " + bytes(12)
    box = struct.pack(">I4sIIIII", 108, b"mvhd", 0, 0, 0, 1000, 15_000) + bytes(80)
    measured = measure_recording(head + box)
    assert measured is not None
    assert (measured.file_format, measured.seconds) == ("m4a", 15.0)


async def test_chat_stream_has_thought_and_usage(minimax: httpx.AsyncClient) -> None:
    """Given a stream with a split thought, then it has the thought, and ends with usage."""
    body = {"model": "MiniMax-M3", "messages": ASK, "stream": True, "reasoning_split": True}
    *events, end = (await minimax.post(CHAT, json=body)).text.strip().split("\n\n")
    assert "reasoning_content" in events[0]
    assert json.loads(events[-1][6:])["usage"]["total_tokens"] > 0
    assert end == "data: [DONE]"
