"""Reads how long an MP3 lasts from its frames; speech, voice cloning and the reviewer call it."""

from dataclasses import dataclass

# kbit/s by index, for MPEG 1 and for MPEG 2 and 2.5, layer III.
_BITRATES = {
    True: (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    False: (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_RATES = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}
_HEADER_BYTES = 4
_MAX_LEAD_IN_BYTES = 64 * 1024  # how far into the data the first frame is looked for


@dataclass(frozen=True, slots=True)
class _Frame:
    """One layer III frame; a free-format one does not say its size."""

    size: int | None
    samples: int
    rate: int
    side: int  # bytes of side information between the header and the main data


def measure_duration_ms(data: bytes) -> int | None:
    """Measure how long an MP3 plays, in milliseconds, counted from its frames.

    Args:
        data: the whole file; tags before and after the audio are skipped.

    Returns:
        the duration; none for free-format streams, whose frames do not say how long they are.

    Raises:
        ValueError: the data holds no MPEG layer III audio.

    >>> frame = bytes([0xFF, 0xFB, 0x90, 0xC4]) + bytes(413)
    >>> measure_duration_ms(frame * 100)
    2612
    """
    place = _find_first_frame(data)
    frame = _parse_frame(data, place)
    if frame is None:
        raise ValueError("no MPEG layer III frames")
    if frame.size is None:
        return None
    seconds = 0.0
    if _is_index(data, place, frame):
        place += frame.size  # a table of the stream, which plays as nothing
    while place + _HEADER_BYTES <= len(data):
        frame = _parse_frame(data, place)
        if frame is None or frame.size is None:
            place = _find_next_frame(data, place + 1)
            continue
        if place + frame.size > len(data):
            break  # cut off: no decoder plays it
        seconds += frame.samples / frame.rate
        place += frame.size
    return round(seconds * 1000)


def _find_first_frame(data: bytes) -> int:
    """Find where the first frame begins, the tag before it skipped."""
    place = 0
    while data[place : place + 3] == b"ID3" and len(data) >= place + 10:
        size = 0
        for byte in data[place + 6 : place + 10]:
            size = size << 7 | byte & 0x7F
        place += 10 + size + (10 if data[place + 5] & 0x10 else 0)
    frame = _parse_frame(data, place)
    if frame is not None and _is_confirmed(data, place, frame):
        return place
    found = _find_next_frame(data, place, place + _MAX_LEAD_IN_BYTES)
    if found + _HEADER_BYTES > len(data):
        raise ValueError("no MPEG layer III frames")
    return found


def _find_next_frame(data: bytes, start: int, end: int | None = None) -> int:
    """Find where the next frame begins that is followed by another; the data's end if none is."""
    last = len(data) if end is None else min(end, len(data))
    place = data.find(b"\xff", start, last)
    while place >= 0:
        frame = _parse_frame(data, place)
        if frame is not None and frame.size is not None and _is_confirmed(data, place, frame):
            return place
        place = data.find(b"\xff", place + 1, last)
    return len(data)


def _is_confirmed(data: bytes, place: int, frame: _Frame) -> bool:
    """Tell whether what follows a frame is another, or the end: two bytes alone may be chance."""
    if frame.size is None:
        return True
    after = place + frame.size
    if after == len(data) or data[after : after + 3] == b"TAG":
        return True
    following = _parse_frame(data, after)
    return following is not None and following.rate == frame.rate


def _parse_frame(data: bytes, place: int) -> _Frame | None:
    head = int.from_bytes(data[place : place + _HEADER_BYTES], "big")
    version, layer = head >> 19 & 3, head >> 17 & 3
    bit_index, rate_index = head >> 12 & 15, head >> 10 & 3
    if place + _HEADER_BYTES > len(data) or head >> 21 != 0x7FF or version == 1 or layer != 1:
        return None
    if bit_index == 15 or rate_index == 3:
        return None
    newer, mono = version == 3, head >> 6 & 3 == 3
    rate = _RATES[version][rate_index]
    samples = 1152 if newer else 576
    kbits = _BITRATES[newer][bit_index]
    size = samples // 8 * kbits * 1000 // rate + (head >> 9 & 1) if kbits else None
    side = (17 if mono else 32) if newer else (9 if mono else 17)
    return _Frame(size, samples, rate, side)


def _is_index(data: bytes, place: int, frame: _Frame) -> bool:
    """Tell whether a frame is a Xing, Info or VBRI header instead of audio."""
    table = place + _HEADER_BYTES + frame.side
    return data[table : table + 4] in (b"Xing", b"Info") or data[place + 36 : place + 40] == b"VBRI"
