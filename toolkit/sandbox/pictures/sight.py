"""The simulated model's sight: what it says of a picture, by its size and its mean colour."""

import io
import math

Color = tuple[int, int, int]
_COLORS: dict[str, Color] = {
    "black": (20, 20, 20), "white": (240, 240, 240), "grey": (128, 128, 128),
    "red": (200, 50, 50), "orange": (240, 150, 60), "yellow": (240, 220, 80),
    "green": (70, 160, 80), "blue": (60, 110, 200), "purple": (130, 80, 170),
    "pink": (230, 140, 180), "brown": (130, 90, 60),
}  # fmt: skip


def measure_picture(data: bytes) -> tuple[int, int]:
    """Return the width and height of a picture in pixels.

    Raises:
        ValueError: the data is no picture.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data)) as picture:
            return picture.size
    except (UnidentifiedImageError, OSError, ValueError):
        raise ValueError("the data is no picture") from None


def count_patches(data: bytes, *, patch: int, longest: int, most: int, factor: float = 1.0) -> int:
    """Count the tokens of a picture by the patches that cover it, as most vendors do.

    Args:
        longest: length of a side in pixels that a picture is scaled down to.
        factor: tokens of a patch.
    """
    sides = measure_picture(data)
    longer = max(sides)
    rows, columns = (
        math.ceil((side * longest // longer if longer > longest else side) / patch)
        for side in sides
    )
    return math.ceil(min(most, rows * columns) * factor)


def describe_picture(data: bytes) -> str:
    """Describe a picture in a sentence.

    >>> from PIL import Image
    >>> stored = io.BytesIO()
    >>> Image.new("RGB", (64, 48), (210, 40, 40)).save(stored, "PNG")
    >>> describe_picture(stored.getvalue())
    'The picture has 64 × 48 pixels and is mostly red.'

    Raises:
        ValueError: the data is no picture.
    """
    from PIL import Image

    width, height = measure_picture(data)
    with Image.open(io.BytesIO(data)) as picture:
        pixel = picture.convert("RGB").resize((1, 1), Image.Resampling.BOX).tobytes()
    mean = (pixel[0], pixel[1], pixel[2])
    name = min(_COLORS, key=lambda name: math.dist(_COLORS[name], mean))
    return f"The picture has {width} × {height} pixels and is mostly {name}."
