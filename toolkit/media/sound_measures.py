"""Measures of sounds: loudness, silence, variation, clipping, repeats, the end.

Speech in any language and any voice differs from noise and tones. Its loudness and the shape of its
spectrum change all the time, within tenths of a second. Noise keeps both, tones keep the spectrum.
So the measures need no speech recognition.

Import it inside functions, because it loads numpy.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]

FRAMES_PER_S = 50
_OTHER_RATE = 16_000  # Hz: the frequencies that matter in speech are below half of it
_CHUNK_FRAMES = 1_500  # 30 s are measured at a time, so that memory stays small
MAX_SECONDS = 1_500  # measured part of a sound: more than the longest text of one request takes
_SILENT_DB = -100.0
_AUDIBLE_DB = -60.0  # of full scale; hiss and hum of a quiet recording are below
_ACTIVE_BELOW_TOP_DB = 30.0
_FLOOR_BELOW_PEAK_DB = 40.0
# Hz: the critical bands of hearing.
_BAND_EDGES = (
    100, 200, 300, 400, 510, 630, 770, 920, 1080, 1270, 1480, 1720, 2000, 2320, 2700, 3150, 3700,
    4400, 5300, 6400, 7600,
)  # fmt: skip
_BANDS = np.array(_BAND_EDGES) // 25
_STEADY_LAG = 5  # frames: 0.1 s, longer than any sound of speech stays the same
_STEADY_LIKENESS = 0.97
_TONAL_SHARE = 0.9
_LOUD_SHARE = 0.85
_OVERSHOOT_SHARE = 0.0005
_MIN_REPEAT_FRAMES = 20  # 0.4 s: shorter sounds recur in any speech
_MIN_FRAMES = 5
_END_FRAMES = 4  # 80 ms, as an MP3 is padded by up to 60


@dataclass(frozen=True, slots=True)
class SoundMeasures:
    """The measures of a sound, which the checks of a review compare with thresholds.

    Attributes:
        seconds: playing time of the measured part.
        is_whole: whether the measured part is the whole sound.
        loudness_db: loudness of its loud parts, relative to full scale; -100 for digital silence.
        heard_s: seconds that are audible.
        spoken_s: seconds from the first audible frame to the last, without long pauses.
        level_change_db: standard deviation of the loudness of the audible frames.
        shape_change_db: median distance between the spectrum's shape and its usual shape.
        steady_share: share of audible frames that are the same a tenth of a second later.
        tonal_share: share of audible frames that are one pure tone.
        peak: highest sample value, without the few overshoots of a decoder; full scale is 1.
        clipped_share: share of the samples of audible frames that are near the peak.
        repeat_s: seconds after which the sound repeats itself; 0 if it does not.
        ends_loud: whether it is still loud in its last moments.
    """

    seconds: float
    is_whole: bool
    loudness_db: float
    heard_s: float
    spoken_s: float
    level_change_db: float
    shape_change_db: float
    steady_share: float
    tonal_share: float
    peak: float
    clipped_share: float
    repeat_s: float
    ends_loud: bool


def measure_samples(data: bytes) -> SoundMeasures | None:
    """Measure an MP3, WAV, FLAC or Ogg Vorbis; returns None if it cannot be decoded.

    >>> frame = bytes([0xFF, 0xFB, 0x90, 0xC4]) + bytes(413)
    >>> measured = measure_samples(frame * 100)
    >>> measured is not None and (measured.loudness_db, measured.heard_s)
    (-100.0, 0.0)
    """
    import miniaudio

    try:
        chunks = [_measure_chunk(chunk) for chunk in _decode_chunks(data)]
    except miniaudio.MiniaudioError:
        return None
    return _join_chunks(chunks) if chunks else None


@dataclass(frozen=True, slots=True)
class _Samples:
    """Some seconds of a sound, a row for each channel, and the number of samples of a frame."""

    channels: Floats
    hop: int


@dataclass(frozen=True, slots=True)
class _Chunk:
    """The measures of some seconds: a value for each frame, or for each frame and band."""

    seconds: float
    levels: Floats
    loud: Floats
    shapes: Floats
    tonal: Flags
    steady: Flags


def _decode_chunks(data: bytes) -> Iterator[_Samples]:
    """Decode a sound as chunks of whole frames; the last may end anywhere."""
    import miniaudio

    from toolkit.media.signatures import match_signature

    rate, channels = _OTHER_RATE, 2
    if match_signature(data) == "audio/mpeg":  # its own rate: resampling takes half the time
        info = miniaudio.mp3_get_info(data)
        rate, channels = info.sample_rate, info.nchannels
    factor = max(1, rate // _OTHER_RATE)
    hop = rate // factor // FRAMES_PER_S
    size = hop * factor * _CHUNK_FRAMES
    samples = np.zeros((0, channels), np.int16)
    total = 0
    for piece in miniaudio.stream_memory(
        data, nchannels=channels, sample_rate=rate, frames_to_read=size
    ):
        samples = np.concatenate([samples, np.frombuffer(piece, np.int16).reshape(-1, channels)])
        while len(samples) >= size:
            yield _Samples(_thin_out(samples[:size], factor), hop)
            samples, total = samples[size:], total + size
        if total >= MAX_SECONDS * rate:
            return
    if len(samples):
        yield _Samples(_thin_out(samples, factor), hop)


def _thin_out(samples: npt.NDArray[np.int16], times: int) -> Floats:
    """Convert samples to floats by channel, each the mean of `times` samples."""
    end = len(samples) // times * times
    parts = samples[:end].reshape(-1, times, samples.shape[1])
    total = parts[:, 0].astype(np.float32)
    for place in range(1, times):
        total += parts[:, place]
    return np.ascontiguousarray(total.T) / np.float32(32768 * times)


def _measure_chunk(chunk: _Samples) -> _Chunk:
    hop, window = chunk.hop, 2 * chunk.hop
    mono = (chunk.channels[0] + chunk.channels[-1]) / 2
    length = len(mono)
    frames = max(1, length // hop)
    mono = np.pad(mono, (0, frames * hop + window - length if length < frames * hop else window))
    squares = mono[: frames * hop].reshape(frames, hop)
    windows = np.lib.stride_tricks.sliding_window_view(mono, window)[: frames * hop : hop]
    spectra = np.fft.rfft(windows * np.hanning(window).astype(np.float32), axis=1)
    squared = np.asarray(spectra.real**2 + spectra.imag**2 + 1e-9, np.float32)
    # A bin is 25 Hz at any rate, as a window is 40 ms; the part above the last band is ignored.
    power = _cut_spectra(squared)
    sums = np.pad(np.cumsum(power, axis=1), ((0, 0), (1, 0)))
    return _Chunk(
        seconds=length / hop / FRAMES_PER_S,
        levels=_to_db((squares**2).mean(axis=1)),
        loud=_count_by_height(squares),
        shapes=_shape_spectra(sums),
        tonal=_find_tonal(power, sums),
        steady=_find_steady(power),
    )


def _cut_spectra(power: Floats) -> Floats:
    padding = int(_BANDS[-1]) + 1 - power.shape[1]
    if padding > 0:  # sounds with a low sample rate
        return np.pad(power, ((0, 0), (0, padding)), constant_values=1e-9)
    return power[:, : int(_BANDS[-1]) + 1]


def _to_db(power: Floats | npt.NDArray[np.float64]) -> Floats:
    return np.asarray(10 * np.log10(power + 1e-10), np.float32)


_HEIGHTS = 50  # steps from silence to full scale in which samples are counted


def _count_by_height(squares: Floats) -> Floats:
    """Count each frame's samples by their height, because the peak is not known yet."""
    heights = np.minimum(np.abs(squares) * _HEIGHTS, _HEIGHTS - 1).astype(np.int32)
    offsets = np.arange(len(squares), dtype=np.int32)[:, None] * _HEIGHTS
    counts = np.bincount((heights + offsets).ravel(), minlength=len(squares) * _HEIGHTS)
    return counts.reshape(len(squares), _HEIGHTS).astype(np.float32)


def _shape_spectra(sums: Floats) -> Floats:
    """Return each frame's loudness by band minus its mean: the shape without the volume."""
    widths = np.diff(_BANDS)
    bands = _to_db((sums[:, _BANDS[1:]] - sums[:, _BANDS[:-1]]) / widths)
    bands = np.maximum(bands, bands.max(axis=1, keepdims=True) - _FLOOR_BELOW_PEAK_DB)
    return np.asarray(bands - bands.mean(axis=1, keepdims=True), np.float32)


def _find_tonal(power: Floats, sums: Floats) -> Flags:
    """Find the frames with nearly all of their energy at one frequency."""
    top = power.argmax(axis=1)
    rows = np.arange(len(power))
    last = sums.shape[1] - 1
    near = sums[rows, np.minimum(top + 3, last)] - sums[rows, np.maximum(top - 2, 0)]
    return np.asarray(near > _TONAL_SHARE * sums[:, -1], np.bool_)


def _find_steady(power: Floats) -> Flags:
    """Find the frames whose spectrum a tenth of a second later is the same."""
    roots = np.sqrt(power)
    roots /= np.linalg.norm(roots, axis=1, keepdims=True)
    likeness = np.zeros(len(power), np.float32)
    likeness[:-_STEADY_LAG] = (roots[_STEADY_LAG:] * roots[:-_STEADY_LAG]).sum(axis=1)
    return likeness > _STEADY_LIKENESS


def _join_chunks(chunks: list[_Chunk]) -> SoundMeasures:
    levels = np.concatenate([chunk.levels for chunk in chunks])
    loudness = float(np.percentile(levels, 95)) if len(levels) else _SILENT_DB
    # A short word in a long pause is not among the loudest 5 % of frames.
    top = max(loudness, float(levels.max(initial=_SILENT_DB)) - 6)
    active = levels > max(top - _ACTIVE_BELOW_TOP_DB, _AUDIBLE_DB)
    seconds = sum(chunk.seconds for chunk in chunks)
    is_whole = seconds < MAX_SECONDS
    if active.sum() < _MIN_FRAMES:
        heard = float(active.sum()) / FRAMES_PER_S
        loudness = max(_SILENT_DB, loudness)
        return SoundMeasures(seconds, is_whole, loudness, heard, heard, 0, 0, 0, 0, 0, 0, 0, False)
    shapes = np.concatenate([chunk.shapes for chunk in chunks])
    usual = np.median(shapes[active], axis=0)
    tonal = np.concatenate([chunk.tonal for chunk in chunks])
    peak, clipped = _measure_clipping(chunks, active)
    followed = active.copy()
    followed[:-_STEADY_LAG] &= active[_STEADY_LAG:]
    followed[-_STEADY_LAG:] = False
    steady = np.concatenate([chunk.steady for chunk in chunks])[followed]
    return SoundMeasures(
        seconds=seconds,
        is_whole=is_whole,
        loudness_db=top,
        heard_s=float(active.sum()) / FRAMES_PER_S,
        spoken_s=_measure_span(active),
        level_change_db=float(levels[active].std()),
        shape_change_db=float(np.median(np.abs(shapes[active] - usual).mean(axis=1))),
        steady_share=float(steady.mean()) if len(steady) else 0.0,
        tonal_share=float(tonal[active].mean()),
        peak=peak,
        clipped_share=clipped,
        repeat_s=_find_repeat(shapes, active),
        ends_loud=bool((levels[-_END_FRAMES:] > top - 10).any()),
    )


def _measure_span(active: Flags, longest_pause_s: float = 0.7) -> float:
    """Measure the seconds between the first and last audible frame; long pauses are capped."""
    places = np.flatnonzero(active)
    steps = np.diff(places) / FRAMES_PER_S
    return float(np.minimum(steps, longest_pause_s).sum()) + 1 / FRAMES_PER_S


def _measure_clipping(chunks: list[_Chunk], active: Flags) -> tuple[float, float]:
    """Measure the highest value, and the share of samples near it."""
    counts = np.concatenate([chunk.loud for chunk in chunks])[active].sum(axis=0)
    above = np.cumsum(counts[::-1])[::-1] / counts.sum()
    peak = int(np.flatnonzero(above > _OVERSHOOT_SHARE)[-1]) + 1
    return peak / _HEIGHTS, float(above[min(_HEIGHTS - 1, round(_LOUD_SHARE * peak))])


def _find_repeat(shapes: Floats, active: Flags, min_likeness: float = 0.85) -> float:
    """Find the seconds after which at least a third of a sound repeats itself; 0 if none does."""
    frames = len(shapes)
    lags = np.arange(_MIN_REPEAT_FRAMES, frames * 2 // 3)
    if len(lags) < _MIN_REPEAT_FRAMES or frames > 20_000:
        return 0.0
    audible_shapes = np.where(active[:, None], shapes, 0).astype(np.float32)
    size = 1 << (2 * frames - 1).bit_length()
    spectrum = np.fft.rfft(audible_shapes, size, axis=0)
    together = np.fft.irfft((np.abs(spectrum) ** 2).sum(axis=1), size)[:frames]
    energy = np.concatenate([[0.0], np.cumsum((audible_shapes**2).sum(axis=1), dtype=np.float64)])
    likeness = together[lags] / np.sqrt(
        (energy[frames - lags]) * (energy[frames] - energy[lags]) + 1e-9
    )
    best = int(likeness.argmax())
    return float(lags[best] / FRAMES_PER_S) if likeness[best] > min_likeness else 0.0
