"""The `minimax` wire: chat, speech, uploads, clones, and failures that come as HTTP 200."""

import json
import struct
from typing import Any

import httpx
import jsonschema
import miniaudio
import pytest

from tests.support.recordings import make_silent_wav
from toolkit.sandbox.audio.recordings import measure_recording

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
    """The vendor's own status; the HTTP one is always 200."""
    assert reply.status_code == 200
    return int(reply.json()["base_resp"]["status_code"])


async def upload(client: httpx.AsyncClient, data: bytes, purpose: str = "voice_clone") -> Any:
    """Send a recording."""
    files = {"file": ("voice.wav", data, "audio/wav")}
    return await client.post(UPLOAD, data={"purpose": purpose}, files=files)


async def test_thought_stands_in_the_content_by_default(minimax: httpx.AsyncClient) -> None:
    """Without further asking the content begins with a think block."""
    reply = await minimax.post(CHAT, json={"model": "MiniMax-M3", "messages": ASK})
    body = reply.json()
    assert code(reply) == 0
    assert body["model"] == "MiniMax-M3-sandbox"
    assert reply.headers["trace-id"] == body["id"]
    assert body["choices"][0]["message"]["content"].startswith("<think>")


async def test_thought_can_be_split_or_switched_off(minimax: httpx.AsyncClient) -> None:
    """reasoning_split moves the thought to its own field, and thinking disabled drops it."""
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


async def test_schema_in_the_prompt_is_obeyed(minimax: httpx.AsyncClient) -> None:
    """A prompt that holds a JSON schema and asks for JSON gets a valid value."""
    schema = {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "points": {"type": "array", "items": {"type": "string"}, "minItems": 3},
        },
        "required": ["title", "points"],
        "additionalProperties": False,
    }
    system = f"Reply with JSON only, valid against this schema:\n{json.dumps(schema)}"
    messages = [{"role": "system", "content": system}, {"role": "user", "content": "Honey bees"}]
    body = {"model": "MiniMax-M3", "messages": messages, "thinking": {"type": "disabled"}}
    reply = (await minimax.post(CHAT, json=body)).json()
    value = json.loads(reply["choices"][0]["message"]["content"])
    jsonschema.validate(value, schema)
    assert "honey bee" in value["title"].lower()


@pytest.mark.parametrize(
    ("path", "body", "wanted"),
    [
        (CHAT, {"messages": ASK}, 2013),
        (CHAT, {"model": "MiniMax-M9", "messages": ASK}, 2013),
        (CHAT, {"model": 5, "messages": ASK}, 2013),
        (CHAT, {"model": "MiniMax-M3", "messages": []}, 2013),
        (CHAT, {"model": "MiniMax-M3", "messages": [{"role": "user"}]}, 2013),
        (CHAT, {"model": "MiniMax-M3", "messages": ASK, "temperature": 3}, 2013),
        (SPEECH, {**SPEAK, "model": "speech-9"}, 2013),
        (SPEECH, {**SPEAK, "text": ""}, 2013),
        (SPEECH, {**SPEAK, "text": "a" * 10_000}, 2013),
        (SPEECH, {**SPEAK, "voice_setting": {"voice_id": "Nobody_Here"}}, 2054),
        (SPEECH, {**SPEAK, "voice_setting": {}}, 2013),
        (SPEECH, {**SPEAK, "voice_setting": {"voice_id": "English_CalmWoman", "speed": 9}}, 2013),
        (SPEECH, {**SPEAK, "audio_setting": {"format": "ogg"}}, 2013),
        (CLONE, {"file_id": 1, "voice_id": "MyVoice001"}, 2013),
        (CLONE, {"file_id": "1", "voice_id": "MyVoice001"}, 2013),
    ],
)
async def test_failures_are_http_200(
    minimax: httpx.AsyncClient, path: str, body: dict[str, Any], wanted: int
) -> None:
    """A refused request is HTTP 200 with the vendor's code in base_resp."""
    assert code(await minimax.post(path, json=body)) == wanted


async def test_keys(anonymous: httpx.AsyncClient) -> None:
    """A missing key is 1004 and a wrong one 2049, both with HTTP 200."""
    assert code(await anonymous.post(CHAT, json={})) == 1004
    wrong = {"Authorization": "Bearer nope"}
    assert code(await anonymous.post(CHAT, json={}, headers=wrong)) == 2049


async def test_speech_is_a_valid_mp3(minimax: httpx.AsyncClient) -> None:
    """The hex decodes to whole MP3 frames at the rate asked for, and the lengths agree."""
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
    """The same request gives the same bytes each time, and another voice gives others."""
    first, *more = [await minimax.post(SPEECH, json=SPEAK) for _ in range(6)]
    other = {**SPEAK, "voice_setting": {"voice_id": "English_Persuasive_Man"}}
    changed = await minimax.post(SPEECH, json=other)
    assert {answer.content for answer in more} == {first.content}
    assert changed.json()["data"]["audio"] != first.json()["data"]["audio"]


@pytest.mark.parametrize(("form", "channels"), [("wav", 1), ("pcm", 1), ("mp3", 2)])
async def test_other_formats(minimax: httpx.AsyncClient, form: str, channels: int) -> None:
    """Wave, raw samples and stereo are served too."""
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


async def test_speech_stream_repeats_the_whole_at_the_end(minimax: httpx.AsyncClient) -> None:
    """The last event of a stream holds all audio unless the caller opts out."""
    reply = await minimax.post(SPEECH, json={**SPEAK, "stream": True})
    events = [json.loads(one[6:]) for one in reply.text.split("\n\n") if one]
    assert "".join(e["data"]["audio"] for e in events[:-1]) == events[-1]["data"]["audio"]
    options = {"stream": True, "stream_options": {"exclude_aggregated_audio": True}}
    reply = await minimax.post(SPEECH, json={**SPEAK, **options})
    last = json.loads(reply.text.strip().split("\n\n")[-1][6:])
    assert last["data"]["audio"] == ""
    assert last["extra_info"]["audio_size"] > 0


async def test_cloned_voice_speaks(minimax: httpx.AsyncClient) -> None:
    """An uploaded recording becomes a voice that speech accepts and the list names."""
    sent = await upload(minimax, make_silent_wav(12))
    file_id = sent.json()["file"]["file_id"]
    assert code(sent) == 0
    assert isinstance(file_id, int)
    assert file_id > 2**40
    made = await minimax.post(CLONE, json={"file_id": file_id, "voice_id": "MyVoice001"})
    assert code(made) == 0
    twice = await minimax.post(CLONE, json={"file_id": file_id, "voice_id": "MyVoice001"})
    assert code(twice) == 2039
    spoken = await minimax.post(SPEECH, json={**SPEAK, "voice_setting": {"voice_id": "MyVoice001"}})
    assert code(spoken) == 0
    listed = (await minimax.post("/minimax/v1/get_voice", json={"voice_type": "all"})).json()
    assert [one["voice_id"] for one in listed["voice_cloning"]] == ["MyVoice001"]
    assert "English_Graceful_Lady" in {one["voice_id"] for one in listed["system_voice"]}


@pytest.mark.parametrize("name", ["short", "1startsWithDigit", "ends_with_", "has space in"])
async def test_voice_ids_follow_the_rules(minimax: httpx.AsyncClient, name: str) -> None:
    """A voice id that breaks the vendor's rules is refused."""
    file_id = (await upload(minimax, make_silent_wav(12))).json()["file"]["file_id"]
    assert code(await minimax.post(CLONE, json={"file_id": file_id, "voice_id": name})) == 2013


@pytest.mark.parametrize(
    ("data", "purpose", "wanted"),
    [
        (make_silent_wav(5), "voice_clone", 2037),
        (make_silent_wav(301), "voice_clone", 2037),
        (make_silent_wav(12), "holiday", 2013),
        (b"not audio at all", "voice_clone", 2013),
    ],
)
async def test_uploads_are_checked(
    minimax: httpx.AsyncClient, data: bytes, purpose: str, wanted: int
) -> None:
    """Length, kind and purpose of a recording are checked."""
    assert code(await upload(minimax, data, purpose)) == wanted


async def test_mp3_uploads_are_measured(minimax: httpx.AsyncClient) -> None:
    """An MP3's length is found from its frames."""
    long = {**SPEAK, "text": "The tide comes and the tide goes. " * 8}
    audio = bytes.fromhex((await minimax.post(SPEECH, json=long)).json()["data"]["audio"])
    tag = b"ID3\x04\x00\x00\x00\x00\x00\x0a" + bytes(10)
    assert code(await upload(minimax, tag + audio)) == 0
    assert code(await upload(minimax, audio[: len(audio) // 4])) == 2037


def test_m4a_length_is_read_from_its_header() -> None:
    """The movie header of an M4A file tells its length."""
    head = b"\x00\x00\x00\x18ftypM4A " + bytes(12)
    box = struct.pack(">I4sIIIII", 108, b"mvhd", 0, 0, 0, 1000, 15_000) + bytes(80)
    measured = measure_recording(head + box)
    assert measured is not None
    assert (measured.file_format, measured.seconds) == ("m4a", 15.0)


async def test_chat_stream(minimax: httpx.AsyncClient) -> None:
    """A streamed chat ends with its usage and the end mark."""
    body = {"model": "MiniMax-M3", "messages": ASK, "stream": True, "reasoning_split": True}
    reply = await minimax.post(CHAT, json=body)
    events = [one[6:] for one in reply.text.split("\n\n") if one]
    assert events[-1] == "[DONE]"
    last = json.loads(events[-2])
    assert last["usage"]["total_tokens"] > 0
    assert last["choices"][0]["finish_reason"] == "stop"
