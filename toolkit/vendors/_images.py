"""Pictures in the outputs of image workers: found in whichever shape they come, and decoded."""

import re
from collections.abc import Iterable, Iterator

from toolkit.media.signatures import is_picture
from toolkit.vendors._encodings import decode_base64

_DATA_URI = re.compile(r"\Adata:image/[\w.+-]+;base64,", re.I)
_LINK = re.compile(r"\A[a-z][a-z0-9+.-]*://", re.I)


def find_embedded_image(output: object) -> bytes | None:
    """Return the first picture that an output carries itself, as a data URI or plain base64."""
    for text in _iter_texts(output):
        if _LINK.match(text):
            continue
        try:
            data = decode_base64(_DATA_URI.sub("", text, count=1))
        except ValueError:
            continue
        if is_picture(data):
            return data
    return None


def find_links(output: object) -> list[str]:
    """Return the addresses that an output names its pictures by."""
    return [text for text in _iter_texts(output) if _LINK.match(text)]


def _iter_texts(output: object) -> Iterator[str]:
    """Yield every text that may be a picture, in the shapes that workers are documented to answer
    in.
    """
    match output:
        case str():
            yield output
        case list():
            yield from _iter_item_texts(output)
        case dict():
            for name in ("images", "image", "image_url", "data"):
                yield from _iter_texts(output.get(name))


def _iter_item_texts(items: Iterable[object]) -> Iterator[str]:
    for item in items:
        yield from _iter_texts(item)
