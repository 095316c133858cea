"""Synthesized speech: a murmur of sung syllables, or real speech if espeak is installed."""

import io
import math
import random
import re
import wave
from array import array
from dataclasses import dataclass
from functools import lru_cache
from zlib import crc32

from toolkit.sandbox.audio import espeak
from toolkit.sandbox.audio.transcripts import tag_speech

CHARS_PER_SECOND = 16.5  # without the pauses; about 15 with them
_PAUSES = {",": 0.14, ";": 0.2, ":": 0.2, ".": 0.32, "!": 0.32, "?": 0.32, "–": 0.16, "—": 0.16}
_SCALE = (0, 2, 4, 7, 9, 12, 7, 4)  # semitones of a major pentatonic: no step sounds wrong
# The loudness of the overtones of each vowel, which the shape of the throat determines.
_VOWELS = {
    "a": (0.6, 0.8, 1.0, 0.9, 0.7, 0.6, 0.4, 0.2, 0.1, 0.05),
    "e": (0.9, 1.0, 0.6, 0.2, 0.1, 0.1, 0.2, 0.4, 0.4, 0.2),
    "i": (1.0, 0.6, 0.1, 0.05, 0.05, 0.1, 0.1, 0.2, 0.3, 0.5),
    "o": (0.9, 1.0, 0.9, 0.5, 0.2, 0.1, 0.05, 0.05, 0.02, 0.02),
    "u": (1.0, 0.7, 0.3, 0.1, 0.05, 0.02, 0.02, 0.02, 0.01, 0.01),
}
_PERIOD = 2048  # samples of one period of a vowel, and of the hiss of consonants
_HISS_SECONDS = 0.03
_GLIDE = 0.16  # fall of the pitch in a syllable, because a voice never holds a pitch
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
        return tag_speech(_encode_mp3(pcm, rate, voicing), text), length_ms
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
            long = max(0.05, round(share / 0.02) * 0.02)  # few lengths, so that they are reused
            vowel = _choose_vowel(syllable)
            hisses = syllable[0].lower() in "cfhkpqstxz"
            pitch = base * 2 ** (step / 12)
            parts.append(_synthesize_syllable(pitch, long, rate, gain, vowel, hisses))
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


def _choose_vowel(syllable: str) -> str:
    """Choose the vowel that a syllable is sung on: its last vowel, or any if it has none."""
    vowel = next((char for char in reversed(syllable.lower()) if char in _VOWELS), None)
    return vowel or "aeiou"[crc32(syllable.encode()) % 5]


@lru_cache(maxsize=8)
def _build_period(vowel: str) -> list[float]:
    """Build one period of a vowel, from -1 to 1."""
    turns = [2 * math.pi * n / _PERIOD for n in range(_PERIOD)]
    overtones = _VOWELS[vowel]
    values = [sum(a * math.sin(k * t) for k, a in enumerate(overtones, 1)) for t in turns]
    highest = max(map(abs, values))
    return [value / highest for value in values]


@lru_cache(maxsize=1)
def _build_hiss() -> list[float]:
    chance = random.Random(1)  # noqa: S311 - not for secrets
    return [chance.uniform(-0.3, 0.3) for _ in range(_PERIOD)]


@lru_cache(maxsize=1024)
def _synthesize_syllable(
    pitch: float, seconds: float, rate: int, gain: float, vowel: str, hisses: bool
) -> bytes:
    """Synthesize a syllable: a falling vowel faded in and out, after a hiss if it has one."""
    number = round(seconds * rate)
    fade = max(1, min(number // 3, round(0.025 * rate)))
    period, hiss = _build_period(vowel), _build_hiss()
    onset = min(number // 3, round(_HISS_SECONDS * rate)) if hisses else 0
    step = _PERIOD * pitch / rate * (1 + _GLIDE / 2)
    slower = _PERIOD * pitch / rate * _GLIDE / number
    level = gain * 32000
    samples = array("h")
    place = 0.0
    for n in range(number):
        place += step
        step -= slower
        value = hiss[n % _PERIOD] if n < onset else period[int(place) % _PERIOD]
        edge = min(1.0, (n if n < onset else n - onset) / fade, (number - n) / fade)
        samples.append(int(value * edge * level))
    return samples.tobytes()


def _resample(pcm: bytes, rate: int, target_rate: int) -> bytes:
    source = array("h", pcm)
    number = len(source) * target_rate // rate
    return array("h", [source[n * rate // target_rate] for n in range(number)]).tobytes()


def _duplicate_channel(pcm: bytes) -> bytes:
    mono = array("h", pcm)
    both = array("h", bytes(len(pcm) * 2))
    both[0::2] = mono
    both[1::2] = mono
    return both.tobytes()


def _encode_mp3(pcm: bytes, rate: int, voicing: VoiceSettings) -> bytes:
    import lameenc  # imported only when it is needed

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
