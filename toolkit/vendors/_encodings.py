"""Decoding of bytes that came as text, piece by piece, so that other threads run in between."""

import base64

PIECE_CHARACTERS = 1024 * 1024  # a multiple of the step of either decoder
_BLANKS = " \t\r\n"


def decode_hex(text: str) -> bytes:
    """Decode hexadecimal digits, between which white space may stand.

    >>> decode_hex("746561")
    b'tea'

    Raises:
        ValueError: the text is not hexadecimal.
    """
    if any(blank in text for blank in _BLANKS):
        text = "".join(text.split())
    return b"".join(bytes.fromhex(piece) for piece in _split_pieces(text))


def decode_base64(text: str) -> bytes:
    """Decode strict Base64.

    >>> decode_base64("dGVh")
    b'tea'

    Raises:
        ValueError: the text is not Base64.
    """
    if 0 <= text.find("=") < len(text) - 2:
        raise ValueError("data follows the padding")
    return b"".join(base64.b64decode(piece, validate=True) for piece in _split_pieces(text))


def _split_pieces(text: str) -> list[str]:
    return [text[at : at + PIECE_CHARACTERS] for at in range(0, len(text), PIECE_CHARACTERS)]
