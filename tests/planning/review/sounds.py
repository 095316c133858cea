"""Sounds made by rule, good and spoiled, for the checks of sound; each follows from its seed."""

import lameenc
import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float64]
RATE = 24_000
_STEP, _FRAME = 120, 480  # samples: the filter of the voice changes each 5 ms
# Three resonances in Hz, by vowel.
_VOWELS = (
    (730, 1090, 2440), (530, 1840, 2480), (270, 2290, 3010), (570, 840, 2410), (300, 870, 2240),
    (440, 1020, 2240), (390, 1990, 2550), (640, 1190, 2390),
)  # fmt: skip
_HISSES = (1500, 2500, 4000, 5500)


def encode_mp3(samples: Samples, *, kbps: int = 64, rate: int = RATE) -> bytes:
    """Encode samples as MP3: one row is mono, two are stereo."""
    rows = np.atleast_2d(samples)
    pcm = (np.clip(rows, -1, 1).T * 32767).astype("<i2")
    encoder = lameenc.Encoder()
    encoder.silence()
    encoder.set_in_sample_rate(rate)
    encoder.set_bit_rate(kbps)
    encoder.set_channels(len(rows))
    encoder.set_quality(7)
    return bytes(encoder.encode(pcm.tobytes())) + bytes(encoder.flush())


def speak(
    seed: int, seconds: float, *, pitch: float = 0, syllables_per_s: float = 0, breath: float = 0.02
) -> Samples:
    """Speak made-up syllables: a source of pulses and hiss through the resonances of a throat.

    Args:
        seed: seed of the syllables.
        seconds: approximate length in seconds.
        pitch: pitch in Hz; 0 draws a random pitch.
        syllables_per_s: pace; 0 draws a random pace.
        breath: share of hiss in vowels; 1 whispers.
    """
    draw = np.random.default_rng(seed)
    pitch = pitch or float(draw.uniform(85, 290))
    pace = syllables_per_s or float(draw.uniform(3, 6.5))
    frames = round(seconds * RATE / _STEP)
    voiced, hissed = np.zeros(frames), np.zeros(frames)
    peaks, centers = np.zeros((frames, 3)), np.full(frames, 3000.0)
    at = 0
    while at < frames:
        for _ in range(int(draw.integers(3, 12))):
            length = round(RATE / _STEP / pace * draw.uniform(0.6, 1.5))
            onset = int(length * draw.uniform(0.15, 0.4))
            vowel = slice(at + onset, at + length)
            peaks[at : at + length] = _VOWELS[draw.integers(8)] * draw.uniform(0.93, 1.07, 3)
            size = len(voiced[vowel])
            voiced[vowel] = np.hanning(2 * length)[:size] ** 0.4 * draw.uniform(0.4, 1)
            kind = draw.integers(3)
            start = slice(at + (onset // 2 if kind == 1 else 0), at + onset)
            if kind < 2:
                hissed[start] = draw.uniform(0.05, 0.35)
            else:
                voiced[start] = draw.uniform(0.05, 0.25)
            centers[at : at + onset] = _HISSES[draw.integers(4)]
            at += length
        at += round(RATE / _STEP * draw.uniform(0.12, 0.7))
    smooth = np.hanning(9) / np.hanning(9).sum()
    voiced, hissed = (np.convolve(row, smooth, "same") for row in (voiced, hissed))
    melody = pitch * (1 + 0.12 * np.convolve(draw.standard_normal(frames), np.ones(60) / 8, "same"))
    hz = np.interp(np.arange(frames * _STEP) / _STEP, np.arange(frames), np.maximum(60, melody))
    phase = np.cumsum(hz) / RATE
    pulses = np.diff(np.floor(phase), prepend=0)
    noise = draw.standard_normal(frames * _STEP)
    return _filter_source(pulses, noise, voiced, hissed, peaks, centers, breath)


def _filter_source(
    pulses: Samples,
    noise: Samples,
    voiced: Samples,
    hissed: Samples,
    peaks: Samples,
    centers: Samples,
    breath: float,
) -> Samples:
    """Shape the spectrum of each short frame of the source, and add the frames."""
    hz = np.fft.rfftfreq(_FRAME, 1 / RATE)
    window = np.hanning(_FRAME)
    starts = np.arange(len(voiced)) * _STEP
    spans = starts[:, None] + np.arange(_FRAME)
    pulsed = np.pad(pulses * (1 - breath) * 8, (0, _FRAME))[spans]
    breathed = np.pad(noise, (0, _FRAME))[spans]
    throat = sum(
        gain / (1 + ((hz - peaks[:, [place]]) / width) ** 2)
        for place, (width, gain) in enumerate(((90, 1), (120, 0.5), (170, 0.25)))
    )
    vowel = np.fft.rfft((pulsed + breath * breathed) * window) * throat
    hiss = np.fft.rfft(breathed * window) / (1 + ((hz - centers[:, None]) / 900) ** 2)
    frames = np.fft.irfft(voiced[:, None] * vowel + hissed[:, None] * hiss, _FRAME)
    samples = np.zeros(len(pulses) + 2 * _FRAME)
    for place in range(0, _FRAME, _STEP):  # a frame overlaps the next ones
        part = frames[:, place : place + _STEP]
        samples[place : place + part.size] += part.ravel()
    samples = samples[: len(pulses)]
    return samples / max(1e-9, float(np.abs(samples).max())) * 0.6


def add_silence(samples: Samples, before: float, after: float) -> Samples:
    """Put silence around a sound, in seconds."""
    return np.pad(samples, (round(before * RATE), round(after * RATE)))


def make_noise(seed: int, seconds: float, color: float = 0, level: float = 0.2) -> Samples:
    """Make noise whose power falls with frequency: 0 is white, 1 pink, 2 brown."""
    draw = np.random.default_rng(seed)
    size = round(seconds * RATE)
    spectrum = np.fft.rfft(draw.standard_normal(size))
    hz = np.maximum(30, np.fft.rfftfreq(size, 1 / RATE))
    samples = np.fft.irfft(spectrum / hz ** (color / 2), size)
    return samples / samples.std() * level


def make_tone(seconds: float, hz: float = 440, overtones: int = 0, level: float = 0.4) -> Samples:
    """Make a steady tone."""
    time = np.arange(round(seconds * RATE)) / RATE
    samples = sum(np.sin(2 * np.pi * hz * n * time) / n for n in range(1, overtones + 2))
    return level * np.asarray(samples) / (1 + overtones / 4)


def make_beeps(seconds: float, hz: float, on: float, off: float) -> Samples:
    """Make beeps."""
    time = np.arange(round(seconds * RATE)) / RATE
    return make_tone(seconds, hz) * (time % (on + off) < on)


def make_melody(seed: int, seconds: float, note: float = 0.3, overtones: int = 3) -> Samples:
    """Make a tune of steady notes, each with its overtones."""
    draw = np.random.default_rng(seed)
    steps = draw.integers(0, 12, round(seconds / note) + 1)
    notes = [make_tone(note, 220 * 2 ** (step / 12), overtones) for step in steps]
    fade = np.minimum(1, np.linspace(0, 20, len(notes[0])))
    return np.concatenate([tone * fade * fade[::-1] for tone in notes])


def make_siren(seconds: float, period: float = 2) -> Samples:
    """Make a tone that rises and falls."""
    time = np.arange(round(seconds * RATE)) / RATE
    return 0.4 * np.sin(2 * np.pi * np.cumsum(700 + 300 * np.sin(2 * np.pi * time / period)) / RATE)


def make_clicks(seconds: float, every: float = 0.5) -> Samples:
    """Make a metronome."""
    samples = np.zeros(round(seconds * RATE))
    for at in range(0, len(samples) - 300, round(every * RATE)):
        samples[at : at + 240] = 0.6 * np.hanning(240)
    return samples
