"""Checks of sounds: speech of any kind passes, and other sounds do not."""

import time
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pytest

from benchmarks.sets.review import makers
from tests.planning.review.evidence import build_evidence
from tests.planning.sample_capabilities import SPEECH
from toolkit.planning.review.evidence import Inspection, ReviewIssue
from toolkit.planning.review.node_checks import check_node
from toolkit.planning.review.sound_checks import estimate_speaking_time
from toolkit.plugins import Blob
from toolkit.sandbox.audio.speech import VoiceSettings, synthesize_speech

TEXT = (
    "Turbines under water turn the tide into power for every house near the coast, and gulls look "
    "on."
)
SPOKEN = makers.voice_samples(TEXT)
SECONDS = len(SPOKEN) / makers.RATE
TIME = np.arange(len(SPOKEN)) / makers.RATE


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


def make(maker: str, **args: object) -> bytes:
    """Make a sound by a maker of the written set."""
    return makers.make({"maker": maker, "args": args}).data


def make_siren() -> bytes:
    """Make a tone that rises and falls."""
    hz = 700 + 300 * np.sin(np.pi * TIME)
    return mp3(0.4 * np.sin(2 * np.pi * np.cumsum(hz) / makers.RATE))


def make_tune() -> bytes:
    """Make a fast tune of steady notes."""
    notes = np.random.default_rng(2).integers(0, 12, 200)[(TIME / 0.12).astype(int)]
    return mp3(0.4 * np.sin(2 * np.pi * np.cumsum(220 * 2 ** (notes / 12)) / makers.RATE))


mp3 = makers.encode_mp3
NOISE = np.random.default_rng(5).normal(0, 0.2, len(SPOKEN))
SPOILED: dict[str, tuple[Callable[[], bytes], str]] = {
    "silence": (lambda: make("silence", seconds=SECONDS), "silence"),
    "inaudible hiss": (lambda: make("silence", seconds=SECONDS, floor_db=-70), "silence"),
    "one click": (lambda: make("click_and_silence", seconds=SECONDS), "silence"),
    "white noise": (lambda: make("noise", seconds=SECONDS), "noise"),
    "brown noise": (lambda: make("noise", seconds=SECONDS, color="brown"), "noise"),
    "soft noise": (lambda: make("noise", seconds=SECONDS, level=0.01), "noise"),
    "noise in the rhythm of speech": (
        lambda: mp3(NOISE * (1 + np.sin(2 * np.pi * 4 * TIME)) / 2), "noise"),
    "a tone": (lambda: make("tone", seconds=SECONDS), "tone"),
    "a mains hum": (lambda: make("tone", seconds=SECONDS, hz=50, overtones=9), "tone"),
    "beeps": (lambda: make("tone", seconds=SECONDS, hz=1000, on=0.5), "tone"),
    "a fast tune": (make_tune, "tone"),
    "a siren": (make_siren, "tone"),
    "a repeated second": (lambda: mp3(np.resize(SPOKEN[: makers.RATE], len(SPOKEN))), "repeats"),
    "the same twice": (lambda: make("repeated_speech", text=TEXT[:40], times=2), "repeats"),
    "clipped": (lambda: make("clipped_speech", text=TEXT, gain=10), "clipping"),
    "the first third": (lambda: make("cut_speech", text=TEXT, keep=0.33), "end"),
    "the first seconds, then nothing": (
        lambda: make("speech_then_silence", text=TEXT, keep=0.2), "duration"),
    "thrice as long": (lambda: make("stretched_speech", text=TEXT, factor=3), "duration"),
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


GOOD: dict[str, Mapping[str, object]] = {
    "soft": {"gain_db": -30},
    "loud": {"gain_db": 4},
    "in a room": {"room_db": -48},
    "with long pauses": {"lead": 2, "tail": 3},
    "in two channels": {"channels": 2},
    "by a man": {"voice": "man-2"},
}


@pytest.mark.parametrize("name", GOOD)
def test_passes_speech(name: str) -> None:
    """Given speech of any kind, then it has no issue."""
    assert find_issues(make("speech", text=TEXT, **GOOD[name])) == []


@pytest.mark.parametrize("voice", ["English_Woman", "man_calm", "narrator"])
@pytest.mark.parametrize(("words", "speed"), [(1, 1), (6, 0.5), (6, 2), (30, 1)])
def test_passes_speech_of_the_sandbox(voice: str, words: int, speed: float) -> None:
    """Given speech of the simulated vendors, then it passes at any length and speed."""
    text = " ".join((TEXT.split() * 2)[:words])
    data, length = synthesize_speech(text, VoiceSettings(voice, speed))
    assert find_issues(data, text, claimed_ms=length, speed=speed) == []


def test_passes_the_speech_of_a_repetitive_text() -> None:
    """Given a text that repeats itself, then a sound that repeats itself passes."""
    line = "Row the boat to me. "
    assert find_issues(make("repeated_speech", text=line, times=4), line * 4) == []


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
    text = " ".join([TEXT] * round(60 / SECONDS))
    data = make("speech", text=text)
    run = partial(find_issues, data, text)
    run()
    started = time.thread_time()
    run()
    assert time.thread_time() - started < 0.5
