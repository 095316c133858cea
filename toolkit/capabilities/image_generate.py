"""`image.generate`: an image from a prompt; the registry loads it."""

import io

from pydantic import Field

from toolkit.contract.base import Record, Request
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import (
    Blob,
    Call,
    Capability,
    Flow,
    ImageReply,
    ImageRequest,
    Result,
    VendorFault,
    compute,
    operate,
)

MEDIA_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp"}
MOST_PIXELS = 4096 * 4096  # far over what can be asked for; a small file may unpack to gigabytes


class ImageInput(Request):
    """What `image.generate` takes."""

    prompt: str = Field(
        min_length=1,
        max_length=4_000,
        pattern=r"\S",
        description="what the image shows",
        json_schema_extra={"x-role": "prompt"},
    )
    negative_prompt: str = Field(
        default="", max_length=4_000, description="what the image must not show"
    )
    width: int = Field(default=1024, ge=256, le=1536, multiple_of=8, description="in pixels")
    height: int = Field(default=1024, ge=256, le=1536, multiple_of=8, description="in pixels")
    steps: int = Field(default=25, ge=1, le=50, description="denoising steps: more is slower")
    seed: int | None = Field(
        default=None, ge=0, le=2**32 - 1, description="the same seed repeats an image"
    )


class ImageOutput(Record):
    """What `image.generate` answers."""

    artifact_id: str = Field(description="the artifact that holds the image")
    media_type: str = Field(description="`image/png`, `image/jpeg` or `image/webp`")
    width: int = Field(gt=0, description="the image's own, in pixels")
    height: int = Field(gt=0, description="the image's own, in pixels")
    size_bytes: int = Field(gt=0, description="how large the file is")
    seed: int | None = Field(default=None, description="the seed it was made with, where known")
    model: str = Field(description="the model that made it")


def request(given: ImageInput) -> ImageRequest:
    """The one operation that an input leads to."""
    return ImageRequest(
        prompt=given.prompt,
        negative_prompt=given.negative_prompt,
        width=given.width,
        height=given.height,
        steps=given.steps,
        seed=given.seed,
    )


def generate(call: Call[ImageInput]) -> Flow[Result]:
    """Have an image made, and see that what came is one.

    Raises:
        VendorFault: `INVALID_OUTPUT` when it is not.
    """
    reply = yield from operate(request(call.input))
    media_type, width, height = yield from compute(lambda: _opened(reply))
    seed = reply.seed if reply.seed is not None else call.input.seed
    facts: dict[str, object] = {
        "media_type": media_type,
        "width": width,
        "height": height,
        "size_bytes": len(reply.image),
        "seed": seed,
        "model": reply.model,
    }
    metadata = {name: facts[name] for name in ("width", "height", "seed", "model")}
    return Result(facts, Blob(reply.image, media_type, metadata))


def _opened(reply: ImageReply) -> tuple[str, int, int]:
    """What the bytes say they are: a provider's label is not believed."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(reply.image), formats=tuple(MEDIA_TYPES)) as image:
            width, height = image.size
            if width * height <= MOST_PIXELS:
                image.load()
                return MEDIA_TYPES[image.format or ""], width, height
        reason = f"is larger than {MOST_PIXELS} pixels"
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        reason = f"is larger than {MOST_PIXELS} pixels"
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError):
        reason = "does not open as PNG, JPEG or WebP"
    raise VendorFault(
        ErrorCode.INVALID_OUTPUT,
        f"The image the provider sent {reason}.",
        vendor_request_id=reply.vendor_request_id,
    )


CAPABILITY = Capability(
    id="image.generate",
    title="Generate an image",
    description="Makes an image from a prompt on a GPU, serverless or on an endpoint of yours.",
    input_model=ImageInput,
    output_model=ImageOutput,
    flow=generate,
    operation=ImageRequest,
    default_provider="runpod",
    yields="image/png",
    estimate=request,
    job_type="image",
    keywords=(
        "image", "illustration", "illustrated", "illustrate", "picture", "photo", "photograph",
        "artwork", "drawing", "painting", "render", "visual", "background image", "icon",
    ),
)  # fmt: skip
