"""The media types of pictures and sounds, by the first bytes of a file."""

import re

SIGNATURE_BYTES = 16  # number of bytes of a file that are enough
_SIGNATURES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"RIFF....WEBP", re.S), "image/webp"),
    (re.compile(rb"RIFF....WAVE", re.S), "audio/wav"),
    # A tag, or the head of a frame of layer II or III; of layer I it looks like a text in UTF-16.
    (re.compile(rb"ID3|\xff[\xe2-\xe5\xf2-\xf5\xfa-\xfd]"), "audio/mpeg"),
    (re.compile(rb"....ftyp", re.S), "audio/mp4"),
)


def match_signature(data: bytes) -> str | None:
    """Return the media type whose signature a file begins with, or None if it is unknown.

    Args:
        data: content of the file, or its first `SIGNATURE_BYTES` bytes.

    >>> match_signature(bytes.fromhex("ffd8ffe0"))
    'image/jpeg'
    """
    head = data[:SIGNATURE_BYTES]
    return next((kind for signature, kind in _SIGNATURES if signature.match(head)), None)


def is_picture(data: bytes) -> bool:
    """Check whether a file begins as PNG, JPEG or WebP."""
    return (match_signature(data) or "").startswith("image/")
