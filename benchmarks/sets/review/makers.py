"""Makers of the binary artifacts in `pairs.jsonl`: sounds, pictures and cards, good and spoiled.

A binary artifact is named there as `{"maker": NAME, "args": {...}}`; `make` builds it. The same
arguments give the same bytes with the same versions of numpy, Pillow and lameenc. Nothing here
imports the planner or the reviewer. Some makers use the sandbox's speech and pictures and the
card painter of `composition.layout`; where PYTHONPATH holds the repository, they are found.

>>> made = make({"maker": "silence", "args": {"seconds": 1}})
>>> made.media_type, made.facts["duration_ms"] > 900
('audio/mpeg', True)
"""

import hashlib
import io
import math
import re
import unicodedata
import wave
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import lameenc
import miniaudio
import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

Spec = Mapping[str, Any]
Color = tuple[int, int, int]


@dataclass(frozen=True)
class Made:
    """An artifact: its bytes, their true properties, and the facts that a record could state."""

    data: bytes
    media_type: str
    facts: dict[str, Any] = field(default_factory=dict)


MAKERS: dict[str, Callable[..., Made]] = {}


def maker(function: Callable[..., Made]) -> Callable[..., Made]:
    """Register a maker under its own name."""
    MAKERS[function.__name__] = function
    return function


def make(spec: Spec) -> Made:
    """Build the artifact that a spec names."""
    return MAKERS[spec["maker"]](**spec["args"])


def _rng(*seed: object) -> np.random.Generator:
    digest = hashlib.sha256(repr(seed).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big"))


# --- Sound: samples are floats from -1 to 1, in mono ------------------------------------------

RATE = 24_000
_VOWELS = {  # the first three formants, in Hz
    "a": (780, 1250, 2600),
    "e": (480, 1900, 2550),
    "i": (300, 2250, 3000),
    "o": (480, 880, 2500),
    "u": (320, 760, 2300),
    "y": (300, 1900, 2400),
}
_HISS = {"s": 5200, "z": 4800, "f": 3800, "v": 3000, "h": 1800, "c": 4200, "x": 4500}
_STOPS = frozenset("ptkbdgq")
_PAUSES = {
    ",": 0.16,
    ";": 0.22,
    ":": 0.22,
    ".": 0.36,
    "!": 0.36,
    "?": 0.4,
    "…": 0.5,
    "。": 0.4,
    "、": 0.2,
    "，": 0.2,
    "！": 0.4,
    "？": 0.4,
    "।": 0.4,
    "؟": 0.4,
    "،": 0.2,
}


def _voice_pitch(voice: str) -> float:
    low = {"man": 105.0, "woman": 190.0, "child": 265.0}.get(voice.split("-")[0], 150.0)
    return low * (1 + (zlib.crc32(voice.encode()) % 19) / 100)


def _vowel(kind: str, seconds: float, pitch: float, slope: float, grain: np.random.Generator):
    """Voice one vowel: harmonics of a gliding, slightly rough pitch, weighted by its formants."""
    number = max(8, round(seconds * RATE))
    place = np.linspace(0, 1, number)
    hz = pitch * (1 + slope * (place - 0.5)) * (1 + 0.012 * np.sin(35 * place + pitch))
    phase = 2 * np.pi * np.cumsum(hz) / RATE
    sound = np.zeros(number)
    for order in range(1, min(28, int(5000 / pitch)) + 1):
        tone = order * pitch
        weight = sum(
            share / (1 + ((tone - peak) / width) ** 2)
            for peak, width, share in zip(
                _VOWELS[kind], (90, 130, 200), (1.0, 0.6, 0.3), strict=True
            )
        )
        sound += (0.05 + weight) / order**0.35 * np.sin(order * phase)
    sound += 0.02 * grain.standard_normal(number)
    edge = np.minimum(1, np.minimum(place, 1 - place) * number / (0.018 * RATE))
    return sound / 3.2 * edge


def _consonant(letter: str, seconds: float, pitch: float, grain: np.random.Generator):
    """Voice one consonant: a hiss, a gap with a burst, or a hum."""
    number = max(8, round(seconds * RATE))
    if letter in _HISS:
        noise = grain.standard_normal(number)
        carrier = np.cos(2 * np.pi * _HISS[letter] * np.arange(number) / RATE)
        soft = np.convolve(noise, np.ones(6) / 6, "same") * carrier
        return 0.16 * soft * np.hanning(number)
    if letter in _STOPS:
        burst = np.zeros(number)
        start = number * 2 // 3
        burst[start:] = 0.22 * grain.standard_normal(number - start)
        return burst * np.linspace(1, 0.3, number)
    time = np.arange(number) / RATE
    hum = np.sin(2 * np.pi * pitch * time) + 0.4 * np.sin(2 * np.pi * 2 * pitch * time)
    return 0.2 * hum * np.hanning(number)


def _letters(word: str) -> str:
    """Write a word roughly in Latin letters; other characters become syllables by rule."""
    letters = []
    for char in unicodedata.normalize("NFKD", word.lower()):
        if char.isascii() and char.isalnum():
            letters.append(
                {
                    "0": "siro",
                    "1": "uan",
                    "2": "tu",
                    "3": "sri",
                    "4": "for",
                    "5": "faiv",
                    "6": "siks",
                    "7": "seven",
                    "8": "eit",
                    "9": "nain",
                }.get(char, char)
            )
        elif unicodedata.category(char) in ("Lo", "Ll"):
            code = ord(char)
            wide = 0x3040 <= code <= 0x9FFF or 0xAC00 <= code <= 0xD7A3
            if wide or code % 3 == 0:
                letters.append("ktsnhmr"[code % 7] + "aiueo"[code % 5])
            else:
                letters.append("nrstlmdaeiou"[code % 12])
    return "".join(letters)


def voice_samples(text: str, voice: str = "woman-1", speed: float = 1.0) -> np.ndarray:
    """Speak a text in made-up syllables, about as long and as varied as speech is."""
    grain = _rng("speech", text, voice)
    base = _voice_pitch(voice)
    parts: list[np.ndarray] = []
    sentence = 0.0
    words = [w for w in re.split(r"\s+|(?<=[。、，！？])", text) if w]
    for word in words:
        letters = _letters(word)
        for place, letter in enumerate(letters):
            pitch = base * (1.12 - 0.02 * min(sentence, 14)) * (1 + 0.05 * grain.standard_normal())
            if letter in _VOWELS:
                long = (
                    0.085 * (1 + 0.35 * grain.random()) * (1.5 if place == len(letters) - 1 else 1)
                )
                parts.append(_vowel(letter, long / speed, pitch, -0.06, grain))
            else:
                parts.append(_consonant(letter, 0.052 / speed, pitch, grain))
        sentence += 1
        parts.append(np.zeros(round(0.045 / speed * RATE)))
        pause = _PAUSES.get(word[-1], 0.0)
        if pause:
            parts.append(np.zeros(round(pause / speed * RATE)))
            sentence = 0 if pause > 0.3 else sentence
    sound = np.concatenate([np.zeros(RATE // 12), *parts, np.zeros(RATE // 6)])
    return 0.62 * sound / max(1e-9, float(np.max(np.abs(sound))))


def encode_mp3(samples: np.ndarray, rate: int = RATE, channels: int = 1, kbps: int = 64) -> bytes:
    """Encode mono samples as MP3; as two equal channels where asked."""
    pcm = (np.clip(samples, -1, 1) * 32767).astype("<i2")
    if channels == 2:
        pcm = np.repeat(pcm, 2)
    encoder = lameenc.Encoder()
    encoder.silence()
    encoder.set_in_sample_rate(rate)
    encoder.set_bit_rate(kbps)
    encoder.set_channels(channels)
    encoder.set_quality(7)
    return bytes(encoder.encode(pcm.tobytes())) + bytes(encoder.flush())


def measure_mp3(data: bytes) -> int:
    """Measure the duration of an MP3 in milliseconds, by decoding it."""
    decoded = miniaudio.decode(data, nchannels=1, sample_rate=RATE)
    return round(len(decoded.samples) / RATE * 1000)


def _mp3(samples: np.ndarray, **options: int) -> Made:
    data = encode_mp3(samples, **options)
    return Made(data, "audio/mpeg", {"size_bytes": len(data), "duration_ms": measure_mp3(data)})


@maker
def speech(
    text: str,
    voice: str = "woman-1",
    speed: float = 1.0,
    gain_db: float = 0.0,
    lead: float = 0.0,
    tail: float = 0.0,
    channels: int = 1,
    room_db: float = -70.0,
) -> Made:
    """Good speech: `gain_db` makes it quieter, `lead` and `tail` are seconds of room noise."""
    samples = voice_samples(text, voice, speed) * 10 ** (gain_db / 20)
    samples = np.concatenate([np.zeros(round(lead * RATE)), samples, np.zeros(round(tail * RATE))])
    room = _rng("room", text).standard_normal(len(samples)) * 10 ** (room_db / 20)
    return _mp3(samples + room, channels=channels)


@maker
def sandbox_speech(text: str, voice: str = "English_Woman", speed: float = 1.0) -> Made:
    """Good speech as the sandbox's vendor murmurs it, also where espeak is installed."""
    from unittest.mock import patch

    from toolkit.sandbox.audio import speech as sandbox

    with patch.object(sandbox.espeak, "run_espeak", lambda *_: None):
        data, length = sandbox.synthesize_speech(text, sandbox.VoiceSettings(voice, speed))
    return Made(data, "audio/mpeg", {"size_bytes": len(data), "duration_ms": length})


@maker
def silence(seconds: float, floor_db: float | None = None) -> Made:
    """Nothing to hear: digital silence, or hiss far below hearing."""
    samples = np.zeros(round(seconds * RATE))
    if floor_db is not None:
        samples += _rng("floor", seconds).standard_normal(len(samples)) * 10 ** (floor_db / 20)
    return _mp3(samples)


@maker
def click_and_silence(seconds: float) -> Made:
    """Silence with one short click at its start, as from a device that was switched on."""
    samples = np.zeros(round(seconds * RATE))
    samples[2400:2640] = 0.6 * np.hanning(240)
    return _mp3(samples)


@maker
def noise(seconds: float, level: float = 0.2, color: str = "white") -> Made:
    """Noise instead of speech: `white` or `brown`."""
    samples = _rng("noise", seconds, color).standard_normal(round(seconds * RATE))
    if color == "brown":
        samples = np.cumsum(samples - samples.mean())
        samples -= np.convolve(samples, np.ones(4001) / 4001, "same")
        samples /= samples.std()
    return _mp3(level * samples)


@maker
def tone(
    seconds: float, hz: float = 440.0, level: float = 0.4, overtones: int = 0, on: float = 0.0
) -> Made:
    """A steady tone; with overtones a hum, with `on` a tone that beeps for so many seconds."""
    time = np.arange(round(seconds * RATE)) / RATE
    samples = sum(np.sin(2 * np.pi * hz * k * time) / k for k in range(1, overtones + 2))
    if on:
        samples = samples * ((time % (2 * on)) < on)
    return _mp3(level * samples / (1 + overtones / 4))


@maker
def cut_speech(text: str, keep: float, voice: str = "woman-1", speed: float = 1.0) -> Made:
    """Speech that stops after a share of its length."""
    samples = voice_samples(text, voice, speed)
    return _mp3(samples[: round(keep * len(samples))])


@maker
def cut_bytes(of: Spec, keep: float) -> Made:
    """A file that was cut off after the first share of its bytes."""
    original = make(of)
    data = original.data[: round(keep * len(original.data))]
    facts = {"size_bytes": len(data)}
    if original.media_type == "audio/mpeg":
        facts["duration_ms"] = measure_mp3(data)
    return Made(data, original.media_type, facts)


@maker
def speech_then_silence(text: str, keep: float, voice: str = "woman-1") -> Made:
    """Speech of which only the start is heard: the rest of the playing time is silent."""
    samples = voice_samples(text, voice)
    samples[round(keep * len(samples)) :] = 0
    return _mp3(samples)


@maker
def stretched_speech(text: str, factor: float, voice: str = "woman-1") -> Made:
    """Speech whose syllables and pauses last `factor` times as long as asked."""
    return _mp3(voice_samples(text, voice, 1 / factor))


@maker
def repeated_speech(text: str, times: int, voice: str = "woman-1") -> Made:
    """The same speech several times over."""
    return _mp3(np.tile(voice_samples(text, voice), times))


@maker
def overlong_tail(text: str, tail: float, voice: str = "woman-1") -> Made:
    """Speech with seconds of hum after it."""
    samples = voice_samples(text, voice)
    time = np.arange(round(tail * RATE)) / RATE
    hum = 0.01 * np.sin(2 * np.pi * 50 * time)
    return _mp3(np.concatenate([samples, hum]))


@maker
def clipped_speech(text: str, gain: float, voice: str = "woman-1", speed: float = 1.0) -> Made:
    """Speech driven so far over full scale that its waves are cut flat."""
    return _mp3(np.clip(gain * voice_samples(text, voice, speed), -1, 1) * 0.999)


@maker
def wav_speech(text: str, voice: str = "woman-1") -> Made:
    """Speech as WAV, where MP3 was promised."""
    pcm = (voice_samples(text, voice) * 32767).astype("<i2")
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(pcm.tobytes())
    facts = {"size_bytes": buffer.tell(), "duration_ms": round(len(pcm) / RATE * 1000)}
    return Made(buffer.getvalue(), "audio/wav", facts)


@maker
def bytes_of(text: str, media_type: str) -> Made:
    """A text file, such as an error page, where a sound or a picture was promised."""
    data = text.encode()
    return Made(data, media_type, {"size_bytes": len(data)})


# --- Pictures ---------------------------------------------------------------------------------


def _png(image: Image.Image) -> Made:
    return _file(image, "png")


def _file(image: Image.Image, kind: str) -> Made:
    buffer = io.BytesIO()
    if kind in ("jpeg", "gif"):
        image = image.convert("RGB")
    options = {"jpeg": {"quality": 90}, "webp": {"quality": 88}}.get(kind, {})
    image.save(buffer, kind.upper(), **options)
    facts = {"width": image.width, "height": image.height, "size_bytes": buffer.tell()}
    return Made(buffer.getvalue(), f"image/{kind}", facts)


def _open(spec: Spec) -> Image.Image:
    image = Image.open(io.BytesIO(make(spec).data))
    return image.convert("RGBA" if image.mode == "RGBA" else "RGB")


def _gradient(width: int, height: int, *stops: Color) -> np.ndarray:
    """Blend colours from top to bottom; the array has floats from 0 to 255."""
    place = np.linspace(0, len(stops) - 1, height)
    table = np.array(stops, float)
    rows = np.stack(
        [np.interp(place, np.arange(len(stops)), table[:, band]) for band in range(3)], axis=1
    )
    return np.repeat(rows[:, None, :], width, axis=1)


def _to_image(array: np.ndarray) -> Image.Image:
    return Image.fromarray(np.clip(array, 0, 255).astype(np.uint8))


def _grain(array: np.ndarray, sigma: float, *seed: object) -> np.ndarray:
    return array + _rng("grain", *seed).normal(0, sigma, array.shape[:2])[..., None]


@maker
def sandbox_picture(prompt: str, width: int, height: int, seed: int, kind: str = "png") -> Made:
    """A good picture as the sandbox's vendor draws it."""
    from toolkit.sandbox.pictures.drawing import draw_picture

    data = draw_picture(prompt, width=width, height=height, seed=seed)
    if kind != "png":
        return _file(Image.open(io.BytesIO(data)), kind)
    return Made(data, "image/png", {"width": width, "height": height, "size_bytes": len(data)})


@maker
def night_street(width: int, height: int, seed: int) -> Made:
    """Good, though nearly black: houses at night with a few lit windows and a wet road."""
    chance = _rng("street", seed)
    image = _to_image(_gradient(width, height, (6, 8, 18), (12, 13, 24), (5, 5, 9)))
    draw = ImageDraw.Draw(image)
    x = 0
    while x < width:
        wide, tall = int(chance.integers(60, 150)), int(chance.integers(height // 4, height // 2))
        top = int(height * 0.72) - tall
        shade = int(chance.integers(3, 12))
        draw.rectangle((x, top, x + wide, height * 0.72), fill=(shade, shade, shade + 5))
        for wx in range(x + 12, x + wide - 18, 26):
            for wy in range(top + 14, int(height * 0.70) - 20, 34):
                if chance.random() < 0.08:
                    warm = int(chance.integers(150, 220))
                    draw.rectangle((wx, wy, wx + 11, wy + 16), fill=(warm, warm * 3 // 4, 70))
                    draw.line(
                        (wx + 5, height * 0.76, wx + 6, height * 0.9), fill=(50, 38, 18), width=5
                    )
        x += wide + int(chance.integers(0, 14))
    image = image.filter(ImageFilter.GaussianBlur(0.7))
    return _png(_to_image(_grain(np.asarray(image, float), 1.6, seed)))


@maker
def minimal_disc(
    width: int, height: int, paper: Color, ink: Color, at: tuple[float, float], radius: float
) -> Made:
    """Good, though nearly empty: one disc on a plain ground, and a thin line under it."""
    big = Image.new("RGB", (width * 2, height * 2), tuple(paper))
    draw = ImageDraw.Draw(big)
    x, y, r = at[0] * width * 2, at[1] * height * 2, radius * width * 2
    draw.ellipse((x - r, y - r, x + r, y + r), fill=tuple(ink))
    draw.line((width * 0.3, height * 1.7, width * 1.7, height * 1.7), fill=tuple(ink), width=3)
    return _png(big.resize((width, height), Image.Resampling.LANCZOS))


@maker
def line_cat(width: int, height: int) -> Made:
    """Good: the outline of a sitting cat, a few black strokes on white."""
    big = Image.new("RGB", (width * 2, height * 2), "white")
    draw = ImageDraw.Draw(big)
    scale_x, scale_y = width * 2 / 100, height * 2 / 100
    strokes = [
        [
            *((38, 30), (36, 18), (43, 24), (52, 24), (59, 18)),
            *((57, 30), (55, 37), (47, 41), (40, 37), (38, 30)),
        ],
        [(41, 39), (34, 52), (31, 68), (33, 82), (48, 83), (62, 82)],
        [(54, 39), (61, 50), (64, 66), (62, 82), (72, 84), (80, 78), (80, 68), (76, 66)],
        [(44, 60), (43, 82)],
        [(51, 60), (52, 82)],
        [(46, 34), (48, 35), (50, 34)],
    ]
    for stroke in strokes:
        points = [(x * scale_x, y * scale_y) for x, y in stroke]
        draw.line(points, fill="black", width=7, joint="curve")
    for x in (43.5, 51.5):
        draw.ellipse(
            ((x - 0.8) * scale_x, 29 * scale_y, (x + 0.8) * scale_x, 31 * scale_y), fill="black"
        )
    return _png(big.resize((width, height), Image.Resampling.LANCZOS))


@maker
def fog(width: int, height: int, seed: int) -> Made:
    """Good, though pale: tree trunks that fade into white fog."""
    chance = _rng("fog", seed)
    image = _to_image(_gradient(width, height, (226, 229, 231), (238, 239, 240), (222, 224, 222)))
    for depth in range(5):
        layer = Image.new("L", (width, height), 0)
        draw = ImageDraw.Draw(layer)
        for _ in range(3 + depth):
            x, wide = int(chance.integers(0, width)), 4 + 5 * depth
            foot = int(height * (0.7 + 0.05 * depth))
            draw.polygon(
                [(x, 0), (x + wide, 0), (x + wide * 1.3, foot), (x - wide * 0.3, foot)], fill=255
            )
            for _ in range(4):
                y = int(chance.integers(0, foot * 2 // 3))
                draw.line(
                    (x, y, x + int(chance.integers(-90, 90)), y - 40),
                    fill=255,
                    width=2 + depth // 2,
                )
        shade = 205 - 26 * depth
        layer = layer.filter(ImageFilter.GaussianBlur(4 - depth * 0.7))
        image.paste((shade, shade + 2, shade + 3), (0, 0), layer)
    return _png(_to_image(_grain(np.asarray(image, float), 1.2, seed)))


@maker
def pixel_sprite(width: int, height: int, seed: int) -> Made:
    """Good where pixel art was asked: a 16 by 16 robot with hard, large pixels."""
    chance = _rng("sprite", seed)
    small = Image.new("RGB", (16, 16), (34, 32, 52))
    draw = ImageDraw.Draw(small)
    body = tuple(int(v) for v in chance.integers(90, 220, 3))
    draw.rectangle((4, 2, 11, 7), fill=body)
    draw.point([(7, 0), (8, 0), (7, 1), (8, 1)], fill=(240, 90, 80))
    draw.rectangle((5, 4, 6, 5), fill=(240, 240, 120))
    draw.rectangle((9, 4, 10, 5), fill=(240, 240, 120))
    draw.line((6, 7, 9, 7), fill=(30, 20, 30))
    draw.rectangle((3, 8, 12, 12), fill=tuple(v * 3 // 4 for v in body))
    draw.rectangle((6, 9, 9, 11), fill=(90, 200, 220))
    draw.rectangle((1, 8, 2, 11), fill=body)
    draw.rectangle((13, 8, 14, 11), fill=body)
    draw.rectangle((4, 13, 6, 15), fill=body)
    draw.rectangle((9, 13, 11, 15), fill=body)
    return _png(small.resize((width, height), Image.Resampling.NEAREST))


@maker
def static_television(width: int, height: int, seed: int) -> Made:
    """Good if it was asked for: an old television that shows only static."""
    image = _to_image(_gradient(width, height, (122, 92, 66), (98, 72, 50), (70, 50, 36)))
    draw = ImageDraw.Draw(image)
    left, top, right, bottom = (
        int(v) for v in (width * 0.15, height * 0.18, width * 0.85, height * 0.8)
    )
    draw.line((width * 0.45, top, width * 0.3, height * 0.03), fill=(40, 40, 42), width=5)
    draw.line((width * 0.55, top, width * 0.72, height * 0.05), fill=(40, 40, 42), width=5)
    draw.rounded_rectangle((left, top, right, bottom), 40, fill=(58, 38, 26))
    snow = _rng("static", seed).integers(0, 256, (bottom - top - 90, (right - left) * 3 // 4 - 40))
    screen = Image.fromarray(snow.astype(np.uint8)).convert("RGB")
    image.paste(screen, (left + 40, top + 45))
    for n in range(3):
        y = top + 80 + n * 90
        draw.ellipse((right - 90, y, right - 40, y + 50), fill=(190, 170, 130))
        draw.line((right - 65, y + 25, right - 50, y + 8), fill=(60, 50, 40), width=4)
    draw.rectangle((left + 60, bottom, left + 90, bottom + 50), fill=(40, 26, 18))
    draw.rectangle((right - 90, bottom, right - 60, bottom + 50), fill=(40, 26, 18))
    return _png(image)


@maker
def sticker(width: int, height: int, fruit: Color) -> Made:
    """Good where a cut-out was asked: a smiling fruit on a ground that is transparent."""
    big = Image.new("RGBA", (width * 2, height * 2), (0, 0, 0, 0))
    draw = ImageDraw.Draw(big)
    w, h = width * 2, height * 2
    draw.ellipse((w * 0.16, h * 0.2, w * 0.84, h * 0.88), fill=(255, 255, 255, 255))
    draw.ellipse((w * 0.19, h * 0.23, w * 0.81, h * 0.85), fill=(*fruit, 255))
    draw.ellipse(
        (w * 0.28, h * 0.3, w * 0.45, h * 0.42),
        fill=(*tuple(min(255, v + 45) for v in fruit), 255),
    )
    draw.polygon(
        [(w * 0.5, h * 0.26), (w * 0.56, h * 0.1), (w * 0.68, h * 0.12)], fill=(70, 130, 60, 255)
    )
    for x in (0.4, 0.6):
        draw.ellipse((w * (x - 0.03), h * 0.48, w * (x + 0.03), h * 0.54), fill=(40, 25, 25, 255))
    draw.arc((w * 0.4, h * 0.5, w * 0.6, h * 0.68), 20, 160, fill=(40, 25, 25, 255), width=12)
    return _png(big.resize((width, height), Image.Resampling.LANCZOS))


@maker
def color_field(width: int, height: int, ground: Color, upper: Color, lower: Color) -> Made:
    """Good where abstraction was asked: two soft blocks of colour, as painters made them."""
    image = Image.new("RGB", (width, height), tuple(ground))
    for share, color in (((0.08, 0.52), upper), ((0.58, 0.93), lower)):
        mask = Image.new("L", (width, height), 0)
        box = (width * 0.09, height * share[0], width * 0.91, height * share[1])
        ImageDraw.Draw(mask).rectangle(box, fill=245)
        image.paste(tuple(color), (0, 0), mask.filter(ImageFilter.GaussianBlur(width / 50)))
    weave = np.asarray(image, float)
    strokes = _rng("weave", width).normal(0, 5, (height, 1, 1)) + _rng("w2", height).normal(
        0, 3, (height, width, 1)
    )
    return _png(_to_image(weave + strokes))


@maker
def tiles(width: int, height: int, ink: Color) -> Made:
    """Good: blue tiles in a repeating pattern, as in Lisbon."""
    image = Image.new("RGB", (width, height), (244, 241, 232))
    draw = ImageDraw.Draw(image)
    size = 128
    for x in range(0, width, size):
        for y in range(0, height, size):
            draw.rectangle((x, y, x + size, y + size), outline=(205, 200, 188), width=2)
            draw.ellipse((x + 34, y + 34, x + 94, y + 94), outline=tuple(ink), width=7)
            for dx, dy in ((0, 0), (size, 0), (0, size), (size, size)):
                draw.ellipse(
                    (x + dx - 36, y + dy - 36, x + dx + 36, y + dy + 36),
                    outline=tuple(ink),
                    width=5,
                )
            draw.polygon(
                [(x + 64, y + 44), (x + 84, y + 64), (x + 64, y + 84), (x + 44, y + 64)],
                fill=tuple(ink),
            )
    return _png(_to_image(_grain(np.asarray(image, float), 2.5, "tiles")))


@maker
def teacup(width: int, height: int, wall: Color, cup: Color) -> Made:
    """Good: a steaming cup on a table, drawn flat."""
    array = _gradient(width, height, tuple(wall), tuple(min(255, v + 20) for v in wall))
    image = _to_image(_grain(array, 2, "cup"))
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, height * 0.74, width, height), fill=(128, 88, 58))
    for y in range(int(height * 0.76), height, 26):
        draw.line((0, y, width, y + 7), fill=(112, 76, 50), width=2)
    draw.ellipse((width * 0.26, height * 0.74, width * 0.74, height * 0.84), fill=(232, 228, 220))
    draw.arc(
        (width * 0.6, height * 0.5, width * 0.76, height * 0.7), -90, 110, fill=tuple(cup), width=18
    )
    draw.pieslice(
        (width * 0.32, height * 0.24, width * 0.66, height * 0.8), 0, 180, fill=tuple(cup)
    )
    draw.ellipse((width * 0.32, height * 0.49, width * 0.66, height * 0.55), fill=(96, 52, 30))
    steam = Image.new("L", image.size, 0)
    pen = ImageDraw.Draw(steam)
    for x in (0.42, 0.49, 0.56):
        line = [
            ((x + 0.02 * math.sin(t / 3)) * width, (0.47 - t * 0.016) * height) for t in range(20)
        ]
        pen.line(line, fill=150, width=10)
    image.paste((255, 255, 255), (0, 0), steam.filter(ImageFilter.GaussianBlur(8)))
    return _png(image)


@maker
def snow_hare(width: int, height: int) -> Made:
    """Good, though white on white: a hare in the snow that only its shadows give away."""
    image = _to_image(_gradient(width, height, (228, 234, 240), (246, 248, 250), (238, 241, 245)))
    draw = ImageDraw.Draw(image)
    w, h = width, height
    draw.ellipse((w * 0.3, h * 0.78, w * 0.74, h * 0.84), fill=(214, 222, 232))
    draw.ellipse(
        (w * 0.32, h * 0.48, w * 0.66, h * 0.82),
        fill=(250, 251, 253),
        outline=(220, 226, 234),
        width=3,
    )
    draw.ellipse(
        (w * 0.56, h * 0.36, w * 0.74, h * 0.56),
        fill=(252, 253, 254),
        outline=(220, 226, 234),
        width=3,
    )
    for x in (0.59, 0.65):
        draw.ellipse(
            (w * x, h * 0.16, w * (x + 0.045), h * 0.4),
            fill=(250, 251, 253),
            outline=(218, 224, 232),
            width=3,
        )
        draw.ellipse((w * (x + 0.01), h * 0.16, w * (x + 0.035), h * 0.2), fill=(60, 58, 60))
    draw.ellipse((w * 0.67, h * 0.43, w * 0.69, h * 0.46), fill=(30, 26, 24))
    image = image.filter(ImageFilter.GaussianBlur(1.2))
    flakes = ImageDraw.Draw(image)
    chance = _rng("snow")
    for _ in range(260):
        x, y = chance.integers(0, w), chance.integers(0, h)
        flakes.ellipse((x, y, x + 4, y + 4), fill=(255, 255, 255))
    return _png(_to_image(_grain(np.asarray(image, float), 1.5, "hare")))


@maker
def bars_poster(width: int, height: int, seed: int) -> Made:
    """Good: coloured geometric shapes in a strict grid, as on a poster of the twenties."""
    chance = _rng("poster", seed)
    image = Image.new("RGB", (width, height), (238, 228, 205))
    draw = ImageDraw.Draw(image)
    colors = [(196, 58, 44), (30, 62, 108), (232, 176, 52), (34, 34, 34)]
    cell = width // 6
    for x in range(0, width - cell + 1, cell):
        for y in range(0, height - cell + 1, cell):
            color = colors[int(chance.integers(0, 4))]
            shape = int(chance.integers(0, 5))
            box = (x + 6, y + 6, x + cell - 6, y + cell - 6)
            if shape == 0:
                draw.rectangle(box, fill=color)
            elif shape == 1:
                draw.ellipse(box, fill=color)
            elif shape == 2:
                draw.pieslice(box, 0, 180, fill=color)
            elif shape == 3:
                draw.polygon([(box[0], box[3]), (box[2], box[3]), (box[2], box[1])], fill=color)
    return _png(image)


@maker
def blank(width: int, height: int, color: Color) -> Made:
    """A picture of one colour."""
    return _png(Image.new("RGB", (width, height), tuple(color)))


@maker
def faint_noise(width: int, height: int, color: Color, sigma: float) -> Made:
    """One colour under noise that is hardly seen."""
    array = np.broadcast_to(np.array(color, float), (height, width, 3))
    return _png(_to_image(array + _rng("faint", width, height).normal(0, sigma, array.shape)))


@maker
def pure_noise(width: int, height: int, coarse: int = 1) -> Made:
    """Random pixels; with `coarse` in blocks, as from a model that did not denoise."""
    shape = (-(-height // coarse), -(-width // coarse), 3)
    small = _to_image(_rng("pure", width, height, coarse).integers(0, 256, shape).astype(float))
    return _png(
        small.resize((shape[1] * coarse, shape[0] * coarse), Image.Resampling.NEAREST).crop(
            (0, 0, width, height)
        )
    )


@maker
def half_flat(of: Spec, color: Color, start: float, side: str = "bottom") -> Made:
    """A picture of which the `bottom` or the `right` from `start` on is one colour."""
    image = _open(of)
    w, h = image.size
    box = (0, round(start * h), w, h) if side == "bottom" else (round(start * w), 0, w, h)
    image.paste(tuple(color), box)
    return _png(image)


@maker
def upscaled(of: Spec, tiny: int, smooth: bool = True) -> Made:
    """A picture that was made `tiny` pixels wide and blown up to its promised size."""
    image = _open(of)
    small = image.resize((tiny, max(1, tiny * image.height // image.width)), Image.Resampling.BOX)
    way = Image.Resampling.BICUBIC if smooth else Image.Resampling.NEAREST
    return _png(small.resize(image.size, way))


@maker
def resized(of: Spec, width: int, height: int) -> Made:
    """The same picture at another size than asked."""
    return _png(_open(of).resize((width, height), Image.Resampling.LANCZOS))


@maker
def all_transparent(of: Spec, alpha: int = 0) -> Made:
    """The same picture, but no pixel of it is opaque enough to be seen."""
    image = _open(of).convert("RGBA")
    image.putalpha(alpha)
    return _png(image)


@maker
def as_file(of: Spec, kind: str) -> Made:
    """The same picture as another type of file, such as `gif`, `jpeg` or `webp`."""
    return _file(_open(of), kind)


# --- Cards ------------------------------------------------------------------------------------


@maker
def card(fields: Mapping[str, Any], image: Spec | None = None, shorten_upstream: str = "") -> Made:
    """A card as `composition.layout` draws it; its facts are the output of the capability."""
    from toolkit.capabilities._card_drawing import draw_card
    from toolkit.capabilities.composition_layout import LayoutInput

    layout = LayoutInput(**{k: v for k, v in fields.items() if k != "image"})
    picture = make(image).data if image else None
    upstream = [("text/plain", shorten_upstream.encode())] if shorten_upstream else []
    facts, data, _ = draw_card(layout.model_dump(exclude={"image"}), picture, upstream)
    return Made(data, str(facts["media_type"]), dict(facts))


@lru_cache(maxsize=64)
def _font(size: int, bold: bool, name: str = "DejaVuSans") -> ImageFont.FreeTypeFont:
    import importlib.util

    package = importlib.util.find_spec("matplotlib")
    folder = Path(str(package.origin)).parent / "mpl-data/fonts/ttf"  # as composition.layout
    return ImageFont.truetype(str(folder / f"{name}{'-Bold' if bold else ''}.ttf"), size)


def _wrap(text: str, font: ImageFont.FreeTypeFont, width: float) -> list[str]:
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split(" "):
            longer = f"{line} {word}".strip()
            if line and font.getlength(longer) > width:
                lines.append(line)
                line = word
            else:
                line = longer
        lines.append(line)
    return lines


@maker
def plain_card(
    width: int,
    height: int,
    background: Color,
    items: list[Mapping[str, Any]],
    image: Spec | None = None,
    image_box: tuple[int, int, int, int] | None = None,
    image_shown: bool = True,
    fmt: str = "png",
    frame: Color | None = None,
) -> Made:
    """A card from another, simpler painter, which draws each text exactly at its item's place.

    An item has role, text, x, y, size, color, and optionally bold, wrap (width in pixels; without
    it the text is one line), serif, and `told`, the text in the record if it differs from `text`.
    """
    picture = Image.new("RGB", (width, height), tuple(background))
    draw = ImageDraw.Draw(picture)
    if frame:
        draw.rectangle((14, 14, width - 15, height - 15), outline=tuple(frame), width=4)
    if image and image_box and image_shown:
        x, y, w, h = image_box
        picture.paste(_open(image).convert("RGB").resize((w, h), Image.Resampling.LANCZOS), (x, y))
    boxes, spans = [], []
    for item in items:
        family = "DejaVuSerif" if item.get("serif") else "DejaVuSans"
        font = _font(item["size"], bool(item.get("bold")), family)
        lines = (
            _wrap(item["text"], font, item["wrap"])
            if item.get("wrap")
            else item["text"].split("\n")
        )
        step = round(item["size"] * 1.3)
        color = tuple(item["color"])
        for number, line in enumerate(lines):
            draw.text((item["x"], item["y"] + number * step), line, font=font, fill=color)
            spans.append(
                f'<text x="{item["x"]}" y="{item["y"] + item["size"] + number * step}" '
                f'font-size="{item["size"]}" fill="#{color[0]:02x}{color[1]:02x}{color[2]:02x}"'
                f"{' font-weight=' + chr(34) + '700' + chr(34) if item.get('bold') else ''}>"
                f"{escape(line)}</text>"
            )
        recorded_text = item.get("told", "\n".join(lines))
        if recorded_text:
            boxes.append(
                {
                    "role": item["role"],
                    "text": recorded_text,
                    "x": float(item["x"]),
                    "y": float(item["y"]),
                    "width": round(max(font.getlength(line) for line in lines), 2),
                    "height": float(step * len(lines)),
                    "font_size": item["size"],
                }
            )
    facts: dict[str, Any] = {"width": width, "height": height, "warnings": [], "missing_glyphs": []}
    if fmt == "svg":
        ground = "#{:02x}{:02x}{:02x}".format(*background)
        data = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}">\n<rect width="{width}" height="{height}" '
            f'fill="{ground}"/>\n<g font-family="DejaVu Sans, sans-serif">\n'
            + "\n".join(spans)
            + "\n</g>\n</svg>\n"
        ).encode()
        media_type = "image/svg+xml"
    else:
        data, media_type = _png(picture).data, "image/png"
    facts |= {"media_type": media_type, "size_bytes": len(data), "text_boxes": boxes}
    return Made(data, media_type, facts)


@maker
def cropped_card(of: Spec, width: int, height: int, left: int = 0, top: int = 0) -> Made:
    """A card that was cropped: texts run out of the canvas, and the record says where."""
    original = make(of)
    image = (
        Image.open(io.BytesIO(original.data))
        .convert("RGB")
        .crop((left, top, left + width, top + height))
    )
    cropped = _png(image)
    boxes = [
        {**box, "x": box["x"] - left, "y": box["y"] - top} for box in original.facts["text_boxes"]
    ]
    facts = {**original.facts, **cropped.facts, "text_boxes": boxes}
    return Made(cropped.data, "image/png", facts)
