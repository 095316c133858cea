"""Large answers have a reader of their own, with the same results."""

import base64
import json
from collections.abc import Callable
from random import Random

import pytest

from toolkit.plugins import json_reader
from toolkit.vendors._encodings import PIECE_CHARACTERS, decode_base64, decode_hex

LETTERS = ["a", '"', "\\", "\n", "\u00e9", "\u6f6e", "\U0001f375", "\ud83d", "\x00", "/"]
DAMAGE = [b"", b'"', b"\\", b"N", b"NaN", b"\xff", b"\x01"]


def any_text(chance: Random) -> str:
    """Draw a text of characters that are hard to cut between."""
    return "".join(chance.choices(LETTERS, k=chance.choice([0, 3, 50])))


def any_value(chance: Random, depth: int = 0) -> object:
    """Draw a JSON value."""
    drawn = chance.random() if depth < 3 else 1
    if drawn < 0.3:
        return [any_value(chance, depth + 1) for _ in range(chance.randrange(4))]
    if drawn < 0.6:
        return {any_text(chance): any_value(chance, depth + 1) for _ in range(chance.randrange(4))}
    return chance.choice([None, True, 1.5e9, -3, any_text(chance), any_text(chance)])


def read_or_fail(read: Callable[[bytes], object], raw: bytes) -> object:
    """Return the document, or ValueError if the reader refuses it."""
    try:
        return read(raw)
    except ValueError:
        return ValueError


def read_strictly(raw: bytes) -> object:
    """Read JSON by the standard library, without Python's extra constants."""
    value = json.loads(raw)
    json.dumps(value, allow_nan=False)
    return value


def test_both_readers_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given documents, valid and damaged, in small pieces, then both readers agree."""
    for name, size in (("SMALL_BYTES", 0), ("LONG_TEXT_BYTES", 20), ("PIECE_BYTES", 13)):
        monkeypatch.setattr(json_reader, name, size)
    chance = Random(1)
    for _ in range(1_500):
        value, indent = any_value(chance), chance.choice([None, 2])
        text = json.dumps(value, ensure_ascii=chance.random() < 0.5, indent=indent)
        raw = text.encode("utf-8", "surrogatepass")
        if chance.random() < 0.3:
            at = chance.randrange(len(raw) + 1)
            raw = raw[:at] + chance.choice(DAMAGE) + raw[at + chance.randrange(2) :]
        assert read_or_fail(json_reader.read_json, raw) == read_or_fail(read_strictly, raw), raw


def test_decodes_data_of_several_pieces() -> None:
    """Given more than one piece, with line breaks or without, then all data is decoded."""
    data = bytes(range(256)) * (PIECE_CHARACTERS // 200)
    assert decode_hex(data.hex()) == decode_hex(data.hex("\n", 32)) == data
    for padding in range(3):
        padded = data + b"x" * padding
        assert decode_base64(base64.b64encode(padded).decode()) == padded
    with pytest.raises(ValueError, match="follows the padding"):
        decode_base64("QQ==QQ==")
