"""JSON of any size, read without blocking other threads for long.

The standard reader parses a document in a single step. 64 MB take a quarter of a second, and
seconds if they are made of empty lists. A thread that reads here lets others run in between: it
reads long texts piece by piece. The rest of the document is short, and limited.
"""

import json
import re
from collections.abc import Iterator
from typing import NoReturn

SMALL_BYTES = 256 * 1024
PIECE_BYTES = 64 * 1024
LONG_TEXT_BYTES = 4 * 1024
# No vendor's honest answer has as much around its long texts: more is meant to slow us down.
MAX_VALUES = 100_000
MAX_SHORT_BYTES = 4 * 1024 * 1024
_PEEK_BYTES = 16
_BOM = b"\xef\xbb\xbf"
_STRING_BODY = re.compile(rb'(?:[^"\\]++|\\(?:u.{4}|[^u]))*+', re.S)


def read_json(raw: bytes) -> object:
    """Read a JSON document; a document over 256 KiB in pieces, so that other threads can run.

    >>> read_json(b'{"tea": [1, 2]}')
    {'tea': [1, 2]}

    Raises:
        ValueError: the bytes are not JSON, which has no NaN. Or over 256 KiB, they have more
            values, or more data apart from long texts, than any vendor answers.
        RecursionError: the document is nested too deeply.
    """
    if len(raw) <= SMALL_BYTES:
        return _DECODER.decode(raw.decode(json.detect_encoding(raw), "surrogatepass"))
    reader = _LargeDocumentReader(raw)
    short = reader.cut_out_long_texts().decode("utf-8", "surrogatepass")
    texts = iter(reader.long_texts)

    def put_back(name: str) -> str:
        return next(texts) if name == "NaN" else _refuse_constant(name)

    return json.loads(short, parse_constant=put_back)


class _LargeDocumentReader:
    """Replaces the long texts of a JSON document by `NaN`, which no valid document contains."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._values = 0
        self.long_texts: list[str] = []

    def cut_out_long_texts(self) -> bytes:
        """Return the document with `NaN` for each long text, which is added to `long_texts`.

        Raises:
            ValueError: a text has no end or is invalid, or too much stands around the long texts.
        """
        raw, pieces = self._raw, list[bytes]()
        size, begin = 0, 3 if self._raw.startswith(_BOM) else 0
        at = begin
        while (quote := raw.find(b'"', at)) >= 0:
            self._count_values(at, quote)
            end = self._find_text_end(quote + 1)
            at = end + 1
            is_name = raw[at : at + _PEEK_BYTES].lstrip()[:1] == b":"
            if end - quote > LONG_TEXT_BYTES and not is_name:
                pieces += [raw[begin:quote], b"NaN"]
                size += quote - begin
                self.long_texts.append(_join_pieces(self._read_pieces(quote + 1, end)))
                begin = at
            if size + at - begin > MAX_SHORT_BYTES:
                break
        if size + len(raw) - begin > MAX_SHORT_BYTES:
            raise ValueError("it is too long without its long texts")
        self._count_values(at, len(raw))
        return b"".join([*pieces, raw[begin:]])

    def _count_values(self, start: int, end: int) -> None:
        """Add the values between two texts, and the text after them, to the count.

        Reject too many values, and an `N`, because a `NaN` would be taken for a long text.
        """
        raw = self._raw
        if raw.find(b"N", start, end) >= 0:  # a NaN would be taken for a long text
            raise ValueError("it has an invalid number")
        self._values += 1 + sum(raw.count(sign, start, end) for sign in (b",", b"[", b"{"))
        if self._values > MAX_VALUES:
            raise ValueError("it has too many values")

    def _find_text_end(self, start: int) -> int:
        """Find the offset of the quote that ends a text; reject a text without an end."""
        at, raw = start, self._raw
        while True:
            end = self._find_piece_end(at)
            if raw[end : end + 1] == b'"':
                return end
            if end == at:
                raise ValueError("a text has no end")
            at = end

    def _read_pieces(self, start: int, end: int) -> Iterator[str]:
        at = start
        while at < end:
            upto = self._find_piece_end(at)
            text: str = json.loads(f'"{self._raw[at:upto].decode("utf-8", "surrogatepass")}"')
            yield text
            at = upto

    def _find_piece_end(self, at: int) -> int:
        """Find the end of a piece: the text's end, or between two characters within 64 KiB."""
        upto = min(at + PIECE_BYTES, len(self._raw))
        for _ in range(3):  # the bytes of one character stay together
            if upto < len(self._raw) and self._raw[upto] & 0xC0 == 0x80:
                upto -= 1
        match = _STRING_BODY.match(self._raw, at, upto)
        return at if match is None else match.end()


def _join_pieces(pieces: Iterator[str]) -> str:
    """Join the pieces of a text, and each surrogate pair that was cut into two pieces."""
    parts: list[str] = []
    for piece in pieces:
        last = parts[-1] if parts else ""
        if "\ud800" <= last[-1:] <= "\udbff" and "\udc00" <= piece[:1] <= "\udfff":
            parts[-1] = last[:-1]
            character = (last[-1] + piece[0]).encode("utf-16", "surrogatepass").decode("utf-16")
            piece = character + piece[1:]
        parts.append(piece)
    return "".join(parts)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
