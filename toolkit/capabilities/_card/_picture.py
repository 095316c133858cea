"""Opening pictures that come from outside and cutting them to a box; used by the layout."""

import io
import struct

from PIL import Image, ImageOps

from toolkit.capabilities._card._scene import Box, CardError, Color
from toolkit.media.pictures import PICTURE_TYPES

MAX_PIXELS = 40_000_000
_FORMATS = tuple(PICTURE_TYPES)
# The errors that Pillow raises for data that is no picture, is cut off or claims to be enormous.
_READ_ERRORS = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    struct.error,
    Image.DecompressionBombError,
    Image.DecompressionBombWarning,
)


def open_picture(data: bytes) -> Image.Image:
    """Check and decode a picture, and turn it upright and into RGB or RGBA.

    Args:
        data: the bytes of a PNG, JPEG or WebP file; of an animation the first frame counts.

    Raises:
        CardError: the bytes are no such picture, are damaged, or hold over 40 megapixels.
    """
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as probe:
            # Before anything is decoded: a small file may unpack to gigabytes.
            if probe.width * probe.height > MAX_PIXELS:
                raise CardError(
                    f"the picture has {probe.width} by {probe.height} pixels; at most "
                    f"{MAX_PIXELS // 1_000_000} megapixels are accepted"
                )
            probe.verify()
        with Image.open(io.BytesIO(data), formats=_FORMATS) as picture:
            picture.load()
            return _to_rgb(ImageOps.exif_transpose(picture))
    except CardError:
        raise
    except _READ_ERRORS as error:
        raise CardError("the picture is not a readable PNG, JPEG or WebP file") from error


def _to_rgb(picture: Image.Image) -> Image.Image:
    if picture.mode.startswith("I"):
        # 16 bits of grey: converting would clip all but the darkest 256 shades to white.
        picture = picture.convert("I").point(lambda grey: grey * (1 / 257)).convert("L")
    return picture.convert("RGBA" if picture.has_transparency_data else "RGB")


def cut_picture(picture: Image.Image, box: Box, ground: Color) -> Image.Image:
    """Cut out the middle of a picture, scaled to cover a box; see-through parts show the ground.

    Args:
        box: target box in whole pixels.

    >>> cut_picture(Image.new("RGB", (40, 20)), Box(0, 0, 10, 10), (0, 0, 0)).size
    (10, 10)
    """
    size = (max(1, round(box.w)), max(1, round(box.h)))
    fitted = ImageOps.fit(picture, size, Image.Resampling.LANCZOS)
    if fitted.mode != "RGBA":
        return fitted
    flat = Image.new("RGB", size, ground)
    flat.paste(fitted, (0, 0), fitted)
    return flat
