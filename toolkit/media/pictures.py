"""The types and sizes of pictures; call it in a worker process, because it unpacks them."""

import io
from collections.abc import Sequence

PICTURE_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp"}
MAX_PIXELS = 4096 * 4096  # far above any allowed request; a small file may unpack to gigabytes


def read_picture(data: bytes) -> tuple[str, int, int]:
    """Return a picture's media type, width and height in pixels.

    Raises:
        ValueError: the picture does not open, or is too large; the text states the reason.
    """
    from PIL import Image, UnidentifiedImageError

    too_large = f"is larger than {MAX_PIXELS} pixels"
    try:
        with Image.open(io.BytesIO(data), formats=tuple(PICTURE_TYPES)) as image:
            width, height = image.size
            if width * height <= MAX_PIXELS:
                image.load()
                return PICTURE_TYPES[image.format or ""], width, height
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise ValueError(too_large) from None
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError):
        raise ValueError("does not open as PNG, JPEG or WebP") from None
    raise ValueError(too_large)


def measure_pictures(pictures: Sequence[bytes]) -> list[tuple[int, int] | None]:
    """Return the width and height of each picture in pixels; None if it does not open."""
    from PIL import Image

    sizes: list[tuple[int, int] | None] = []
    for data in pictures:
        try:
            with Image.open(io.BytesIO(data)) as image:
                sizes.append(image.size)
        except (Image.DecompressionBombError, Image.DecompressionBombWarning, OSError, ValueError):
            sizes.append(None)
    return sizes
