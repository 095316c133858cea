"""Checks of sounds: speech of any kind passes, and other sounds do not."""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from tests.planning.review import sounds
from tests.planning.review.evidence import build_evidence
from tests.planning.sample_capabilities import SPEECH
from toolkit.planning.review.evidence import Inspection, ReviewIssue
from toolkit.planning.review.node_checks import check_node
from toolkit.planning.review.sound_checks import estimate_speaking_time
from toolkit.plugins import Blob
from toolkit.sandbox.audio.speech import VoiceSettings, synthesize_speech

WORDS = [
    "the", "tide", "comes", "in", "twice", "a", "day", "and", "turbines", "under", "water", "turn",
    "it", "into", "power", "for", "every", "house", "near", "coast", "while", "gulls", "look",
]  # fmt: skip


def write_text(seed: int, letters: float) -> str:
    """Write words with at least this number of letters."""
    draw = np.random.default_rng(seed)
    words: list[str] = []
    while sum(map(len, words)) < letters:
        words.append(WORDS[draw.integers(len(WORDS))])
    return " ".join(words)


TEXT = write_text(1, 80)  # about 8 s
SPOKEN = sounds.speak(1, 8)


def find_issues(
    data: bytes,
    text: str = TEXT,
    *,
    media_type: str = "audio/mpeg",
    claimed_ms: int | None = None,
    speed: float = 1.0,
) -> list[ReviewIssue]:
    """Find the issues of a sound that should speak a text."""
    evidence = build_evidence(
        SPEECH,
        {"text": text, "speed": speed},
        Blob(data, media_type),
        duration_ms=claimed_ms,
        characters=len(text),
    )
    return check_node(Inspection(evidence, "read it aloud"))


mp3 = sounds.encode_mp3
SPOILED: dict[str, tuple[Callable[[], bytes], str]] = {
    "silence": (lambda: mp3(np.zeros(8 * sounds.RATE)), "silence"),
    "inaudible hiss": (lambda: mp3(sounds.make_noise(1, 8, level=0.0004)), "silence"),
    "one click": (lambda: mp3(sounds.make_clicks(8, 20)), "silence"),
    "white noise": (lambda: mp3(sounds.make_noise(1, 8)), "noise"),
    "pink noise": (lambda: mp3(sounds.make_noise(2, 8, 1)), "noise"),
    "soft noise": (lambda: mp3(sounds.make_noise(4, 8, 1, 0.01)), "noise"),
    "noise in the rhythm of speech": (
        lambda: mp3(sounds.make_noise(5, 8) * (1 + np.sin(np.arange(8 * sounds.RATE) / 900)) / 2),
        "noise",
    ),
    "a tone": (lambda: mp3(sounds.make_tone(8)), "tone"),
    "a mains hum": (lambda: mp3(sounds.make_tone(8, 50, 9)), "tone"),
    "beeps": (lambda: mp3(sounds.make_beeps(8, 1000, 0.5, 0.5)), "tone"),
    "a fast tune": (lambda: mp3(sounds.make_melody(2, 8, 0.12)), "tone"),
    "a siren": (lambda: mp3(sounds.make_siren(8)), "tone"),
    "a metronome": (lambda: mp3(sounds.make_clicks(8)), "silence"),
    "a repeated second": (lambda: mp3(np.tile(SPOKEN[: sounds.RATE], 8)), "repeats"),
    "the same twice": (lambda: mp3(np.tile(sounds.speak(1, 4), 2)), "repeats"),
    "clipped": (lambda: mp3(np.clip(10 * SPOKEN, -1, 1)), "clipping"),
    "the first third": (lambda: mp3(SPOKEN[: 5 * sounds.RATE // 2]), "end"),
    "the first seconds, then nothing": (
        lambda: mp3(sounds.add_silence(sounds.speak(1, 1.5), 0, 6)), "duration"),
    "thrice as long": (lambda: mp3(sounds.speak(1, 26)), "duration"),
    "a file that was cut off": (lambda: mp3(SPOKEN)[:900], "duration"),
    "a web page": (lambda: b"<html><body>502 Bad Gateway</body></html>", "sound_file"),
}  # fmt: skip


@pytest.mark.parametrize("name", SPOILED)
def test_blocks_a_spoiled_sound(name: str) -> None:
    """Given a sound that does not speak its text, then the check of its defect blocks it."""
    make, check = SPOILED[name]
    issues = find_issues(make())
    assert check in {issue.check for issue in issues if issue.is_blocking}
    assert all(issue.message.endswith(".") for issue in issues)


GOOD: dict[str, Callable[[], bytes]] = {
    "soft": lambda: mp3(0.02 * SPOKEN),
    "in a room": lambda: mp3(SPOKEN + sounds.make_noise(1, 8, 1, 0.004)[: len(SPOKEN)]),
    "whispered": lambda: mp3(sounds.speak(2, 8, breath=1)),
    "with long pauses": lambda: mp3(sounds.add_silence(SPOKEN, 2, 3)),
    "in two channels": lambda: mp3(np.stack([SPOKEN, 0.7 * SPOKEN])),
    "in few bits": lambda: mp3(SPOKEN, kbps=32),
    "loud": lambda: mp3(SPOKEN / 0.61),
}


@pytest.mark.parametrize("name", GOOD)
def test_passes_speech(name: str) -> None:
    """Given speech of any kind, then it has no issue."""
    assert find_issues(GOOD[name]()) == []


@pytest.mark.parametrize("voice", ["English_Woman", "man_calm", "narrator"])
@pytest.mark.parametrize(("letters", "speed"), [(2, 1), (30, 0.5), (30, 2), (150, 1)])
def test_passes_speech_of_the_sandbox(voice: str, letters: int, speed: float) -> None:
    """Given speech of the simulated vendors, then it passes at any length and speed."""
    text = write_text(letters, letters)
    data, length = synthesize_speech(text, VoiceSettings(voice, speed))
    assert find_issues(data, text, claimed_ms=length, speed=speed) == []


def test_passes_generated_voices() -> None:
    """Given 100 generated voices, soft and loud, then at most 1 voice is blocked."""
    blocked = 0
    for seed in range(100):
        draw = np.random.default_rng(seed)
        seconds = float(draw.uniform(0.8, 6))
        voice = sounds.speak(seed, seconds, breath=float(draw.choice([0.02, 0.1, 0.3, 1])))
        voice = sounds.add_silence(voice * 10 ** draw.uniform(-1.5, 0), 0.2, draw.uniform(0.1, 1))
        room = sounds.make_noise(seed, len(voice) / sounds.RATE, 1, 10 ** draw.uniform(-4, -3))
        text = write_text(seed, seconds * float(draw.uniform(9, 14)))
        issues = find_issues(mp3(voice + room[: len(voice)]), text)
        blocked += any(issue.is_blocking for issue in issues)
    assert blocked <= 1


def test_passes_the_speech_of_a_repetitive_text() -> None:
    """Given a text that repeats itself, then a sound that repeats itself passes."""
    again = np.tile(sounds.speak(1, 1.5), 4)
    text = "Row the boat to me. " * 4
    assert find_issues(mp3(sounds.add_silence(again, 0, 0.3)), text) == []


def test_reports_a_sound_without_a_decoder() -> None:
    """Given a sound that cannot be decoded here, then the issue names its media type."""
    issues = find_issues(b"\0\0\0\x20ftypM4A " + bytes(99), media_type="audio/mp4")
    assert "The sound is audio/mp4, not audio/mpeg." in [issue.message for issue in issues]


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xfb\x90\xc4", b"RIFF\0\0\0\0WAVE", b"ID3" + bytes(99)]
)
def test_blocks_truncated_files(data: bytes) -> None:
    """Given the first bytes of a file, then it is blocked without an exception."""
    assert any(issue.is_blocking for issue in find_issues(data))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [  # as espeak-ng 1.52 speaks them at 165 words a minute
        ("Tidal power turns the rise and fall of the sea into electricity.", 4.0),
        ("La bibliothèque sera fermée demain matin, mais elle ouvrira à midi.", 3.2),
        ("ちょうせきはつでんは、しおのみちひきをりようして、でんきをつくるほうほうです。", 5.3),
        ("조력 발전은 바닷물의 움직임을 전기로 바꾸는 방법입니다.", 4.8),
        ("تعمل الطاقة المدية على تحويل حركة البحر إلى كهرباء نظيفة كل يوم.", 6.1),
        ("Năng lượng thủy triều biến chuyển động của biển thành điện.", 2.6),
        ("ज्वारीय ऊर्जा समुद्र की गति को बिजली में बदल देती है।", 3.4),
    ],
)
def test_estimates_the_speaking_time(text: str, seconds: float) -> None:
    """Given texts of many scripts, then their speaking time lies between the bounds."""
    estimate = estimate_speaking_time(text)
    assert estimate.least_s < seconds < estimate.most_s
    assert estimate.most_s < 4 * seconds


def test_checks_a_minute_of_speech_in_half_a_second() -> None:
    """Given a minute of speech, then its checks take less than half a second on any machine."""
    data = mp3(np.tile(sounds.speak(1, 15), 4))
    text = write_text(1, 600)
    run = partial(find_issues, data, text)
    run()
    started = time.thread_time()
    run()
    assert time.thread_time() - started < 0.5
