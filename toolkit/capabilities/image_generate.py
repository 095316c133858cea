"""`image.generate`: an image from a prompt; the registry loads it."""

from pydantic import Field

from toolkit.contract.base import Record, Request
from toolkit.contract.errors import ErrorCode
from toolkit.media.pictures import read_picture
from toolkit.plugins import (
    Blob,
    Call,
    Capability,
    Flow,
    ImageRequest,
    ProviderError,
    Result,
    request_operation,
    run_in_process,
)


class ImageInput(Request):
    """The input of `image.generate`."""

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
    """The output of `image.generate`."""

    artifact_id: str = Field(description="the artifact that holds the image")
    media_type: str = Field(description="`image/png`, `image/jpeg` or `image/webp`")
    width: int = Field(gt=0, description="the image's own, in pixels")
    height: int = Field(gt=0, description="the image's own, in pixels")
    size_bytes: int = Field(gt=0, description="how large the file is")
    seed: int | None = Field(default=None, description="the seed it was made with, where known")
    model: str = Field(description="the model that made it")


def build_request(fields: ImageInput) -> ImageRequest:
    """Build the request for an image from an input, to price it and to send it."""
    return ImageRequest(**fields.model_dump())


def generate_image(call: Call[ImageInput]) -> Flow[Result]:
    """Request an image, and check that the reply is an image.

    Raises:
        ProviderError: `INVALID_OUTPUT` if the reply is no image.
    """
    reply = yield from request_operation(build_request(call.input))
    try:
        media_type, width, height = yield from run_in_process(read_picture, reply.image)
    except ValueError as error:
        raise ProviderError(
            ErrorCode.INVALID_OUTPUT,
            f"The image the provider sent {error}.",
            vendor_request_id=reply.vendor_request_id,
        ) from None
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


CAPABILITY = Capability(
    id="image.generate",
    title="Generate an image",
    description="Makes an image from a prompt on a GPU, serverless or on an endpoint of yours.",
    input_model=ImageInput,
    output_model=ImageOutput,
    flow=generate_image,
    operation=ImageRequest,
    default_provider="runpod",
    cpu_steps=(read_picture,),
    produces="image/png",
    estimate=build_request,
    job_type="image",
    keywords=(
        "image", "illustration", "illustrated", "illustrate", "picture", "photo", "photograph",
        "artwork", "drawing", "painting", "render", "visual", "background image", "icon",
    ),
)  # fmt: skip
