"""Synthesized speech: a murmur of syllable tones, or real speech where espeak is installed."""

import io
import math
import re
import wave
from array import array
from dataclasses import dataclass
from functools import lru_cache
from zlib import crc32

from toolkit.sandbox.audio import espeak

CHARS_PER_SECOND = 16.5  # without the pauses: with them a text runs at about 15
_PAUSES = {",": 0.14, ";": 0.2, ":": 0.2, ".": 0.32, "!": 0.32, "?": 0.32, "–": 0.16, "—": 0.16}
_SCALE = (0, 2, 4, 7, 9, 12, 7, 4)  # semitones of a major pentatonic: no step sounds wrong
_SYLLABLE = re.compile(r"[^aeiouyAEIOUY\W]*[aeiouyAEIOUY]+|[^aeiouyAEIOUY\W]+|\d")


@dataclass(frozen=True, slots=True)
class VoiceSettings:
    """The voice, speed, pitch and format of speech."""

    voice_id: str
    speed: float = 1.0
    volume: float = 1.0
    pitch: int = 0
    audio_format: str = "mp3"
    sample_rate: int = 32000
    bitrate: int = 128000
    channels: int = 1


def synthesize_speech(text: str, voicing: VoiceSettings) -> tuple[bytes, int]:
    """Return the audio of a text, and its length in milliseconds."""
    spoken = espeak.run_espeak(
        text, _choose_variant(voicing.voice_id), voicing.speed, voicing.pitch
    )
    if spoken is None:
        pcm, rate = _synthesize_murmur(text, voicing), voicing.sample_rate
    else:
        pcm, rate = spoken
    if voicing.audio_format != "mp3" and rate != voicing.sample_rate:
        pcm, rate = _resample(pcm, rate, voicing.sample_rate), voicing.sample_rate
    length_ms = round(len(pcm) / 2 / rate * 1000)
    if voicing.channels == 2:
        pcm = _duplicate_channel(pcm)
    if voicing.audio_format == "mp3":
        return _encode_mp3(pcm, rate, voicing), length_ms
    return (_encode_wav(pcm, voicing) if voicing.audio_format == "wav" else pcm), length_ms


def _synthesize_murmur(text: str, voicing: VoiceSettings) -> bytes:
    rate = voicing.sample_rate
    per_char = 1 / (CHARS_PER_SECOND * voicing.speed)
    base = _compute_base_pitch(voicing.voice_id) * 2 ** (voicing.pitch / 12)
    gain = min(1.0, 0.42 * voicing.volume)
    parts: list[bytes] = []
    for word in text.split():
        syllables = _SYLLABLE.findall(word) or ["a"]
        share = len(word) * per_char / len(syllables)
        for syllable in syllables:
            step = _SCALE[crc32(syllable.lower().encode()) % len(_SCALE)]
            long = max(0.05, round(share / 0.02) * 0.02)  # few lengths, so that tones are reused
            parts.append(_synthesize_tone(base * 2 ** (step / 12), long, rate, gain))
        pause = per_char + _PAUSES.get(word[-1], 0.0) / voicing.speed
        parts.append(bytes(2 * round(pause * rate)))
    parts.append(bytes(2 * round(0.15 * rate)))
    return b"".join(parts)


def _sounds_male(voice_id: str) -> bool:
    return re.search(r"(?<!wo)man(?![a-z])", voice_id, re.I) is not None


def _choose_variant(voice_id: str) -> str:
    """Choose one of espeak's own voices for a voice id."""
    kind, number = ("m", 6) if _sounds_male(voice_id) else ("f", 4)
    return f"{kind}{1 + crc32(voice_id.encode()) % number}"


def _compute_base_pitch(voice_id: str) -> float:
    lowest = 105.0 if _sounds_male(voice_id) else 165.0
    return lowest * 2 ** ((crc32(voice_id.encode()) % 97) / 97 * 0.6)


@lru_cache(maxsize=1024)
def _synthesize_tone(pitch: float, seconds: float, rate: int, gain: float) -> bytes:
    """Synthesize one syllable: three soft, slightly falling harmonics, faded in and out."""
    number = round(seconds * rate)
    fade = max(1, min(number // 3, round(0.025 * rate)))
    turn = 2 * math.pi * pitch / rate
    samples = array("h")
    for n in range(number):
        phase = turn * n * (1.0 - 0.02 * n / number)
        value = math.sin(phase) + 0.35 * math.sin(2 * phase) + 0.16 * math.sin(3 * phase)
        edge = min(1.0, n / fade, (number - n) / fade)
        samples.append(int(value / 1.51 * edge * gain * 32000))
    return samples.tobytes()


def _resample(pcm: bytes, rate: int, wanted: int) -> bytes:
    source = array("h", pcm)
    number = len(source) * wanted // rate
    return array("h", [source[n * rate // wanted] for n in range(number)]).tobytes()


def _duplicate_channel(pcm: bytes) -> bytes:
    mono = array("h", pcm)
    both = array("h", bytes(len(pcm) * 2))
    both[0::2] = mono
    both[1::2] = mono
    return both.tobytes()


def _encode_mp3(pcm: bytes, rate: int, voicing: VoiceSettings) -> bytes:
    import lameenc  # imported only where it is needed

    encoder = lameenc.Encoder()
    encoder.silence()
    encoder.set_in_sample_rate(rate)
    encoder.set_out_sample_rate(voicing.sample_rate)
    encoder.set_bit_rate(voicing.bitrate // 1000)
    encoder.set_channels(voicing.channels)
    encoder.set_quality(7)
    return bytes(encoder.encode(pcm)) + bytes(encoder.flush())


def _encode_wav(pcm: bytes, voicing: VoiceSettings) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(voicing.channels)
        file.setsampwidth(2)
        file.setframerate(voicing.sample_rate)
        file.writeframes(pcm)
    return buffer.getvalue()
