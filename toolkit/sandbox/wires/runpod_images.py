"""The `runpod-images` wire: the host that public endpoints link to, where pictures last a week."""

from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from toolkit.sandbox.state import SandboxState
from toolkit.sandbox.vendor_paths import VENDOR_PATHS

PICTURE_RETENTION_S = 7 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class LinkedPicture:
    """A picture behind a link: it is drawn when it is fetched, the same each time."""

    prompt: str
    width: int
    height: int
    steps: int
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
        found = gallery.pictures.get(request.path_params["name"])
        if found is None or state.clock() - found.made_at > PICTURE_RETENTION_S:
            return Response("Not Found", 404, media_type="text/plain")
        from toolkit.sandbox.pictures.drawing import draw_picture  # with Pillow, slow to import

        size = {"width": found.width, "height": found.height}
        picture = await run_in_threadpool(
            draw_picture, found.prompt, **size, steps=found.steps, seed=found.seed
        )
        return Response(picture, media_type="image/png")

    return [Route("/{name}/output.png", show, methods=["GET"])]
