"""The `runpod-images` wire: the host that public endpoints link to, where pictures last a week."""

from dataclasses import dataclass, field

from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from toolkit.sandbox.json_http import RequestBody
from toolkit.sandbox.state import SandboxState
from toolkit.sandbox.vendor_paths import VENDOR_PATHS

PICTURE_RETENTION_S = 7 * 24 * 3600.0


class PictureInput(RequestBody, extra="ignore"):
    """The input of a worker that draws pictures."""

    prompt: str = Field(pattern=r"\S")
    width: int = Field(1024, ge=256, le=1536)
    height: int = Field(1024, ge=256, le=1536)
    num_inference_steps: int = Field(25, ge=1)
    seed: int | None = None
    num_images: int = Field(1, ge=1, le=2)

    def choose_seed(self, usual: int) -> int:
        """Return the seed, or the usual seed if the input leaves it to the worker."""
        return usual if self.seed is None or self.seed < 0 else self.seed

    def draw(self, seed: int) -> bytes:
        """Draw the picture of a seed: the same each time."""
        from toolkit.sandbox.pictures.drawing import draw_picture  # with Pillow, slow to import

        size = {"width": self.width, "height": self.height}
        return draw_picture(self.prompt, **size, steps=self.num_inference_steps, seed=seed)


@dataclass(frozen=True, slots=True)
class LinkedPicture:
    """A picture behind a link, which is drawn when it is fetched."""

    spec: PictureInput
    seed: int
    made_at: float


@dataclass(slots=True)
class PictureGallery:
    """The pictures behind links, by the name in the link."""

    pictures: dict[str, LinkedPicture] = field(default_factory=dict)


def build_picture_url(request: Request, name: str) -> str:
    """Build the URL of a picture on the host that a request to another wire was sent to."""
    root = str(request.url).partition("/runpod")[0]
    return f"{root}{VENDOR_PATHS['runpod-images']}/{name}/output.png"


def build_routes(state: SandboxState) -> list[BaseRoute]:
    """Build the route of every picture, which needs no key."""
    gallery = state.get_records(PictureGallery)

    async def show(request: Request) -> Response:
        link = gallery.pictures.get(request.path_params["name"])
        if link is None or state.clock() - link.made_at > PICTURE_RETENTION_S:
            return Response("Not Found", 404, media_type="text/plain")
        picture = await run_in_threadpool(link.spec.draw, link.seed)
        return Response(picture, media_type="image/png")

    return [Route("/{name}/output.png", show, methods=["GET"])]
