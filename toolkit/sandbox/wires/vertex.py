"""The `vertex` wire: the Gemini API under the path of a project, with granted tokens as keys."""

import time
from dataclasses import dataclass, field

from pydantic import Field
from pydantic.alias_generators import to_camel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from toolkit.sandbox.json_http import RequestBody, build_checked_routes, get_bearer_key, read_body
from toolkit.sandbox.state import SandboxState, mark_billed
from toolkit.sandbox.vendor_paths import VERTEX_TOKEN
from toolkit.sandbox.wires import google

_MODELS = "/{version:str}/projects/{project}/locations/{location}/publishers/google/models"
_VERSIONS = ("v1", "v1beta1")


@dataclass
class GrantedTokens:
    """The tokens that service accounts were granted, each with the end of its life."""

    ends: dict[str, float] = field(default_factory=dict)

    def accepts(self, token: str | None) -> bool:
        """Check whether a token is valid now."""
        return token == VERTEX_TOKEN or self.ends.get(token or "", 0.0) > time.time()


class EmbedConfig(RequestBody, extra="ignore", alias_generator=to_camel):
    """The settings of a vector."""

    task_type: str | None = None
    output_dimensionality: int | None = Field(None, ge=1, le=3_072)


class VertexEmbedBody(RequestBody, alias_generator=to_camel):
    """The body of a request for the vector of one text."""

    content: google.Content
    embed_content_config: EmbedConfig = Field(default_factory=EmbedConfig)


class VertexEmbedBatch(RequestBody):
    """The body of a request for the vectors of several texts."""

    requests: list[VertexEmbedBody] = Field(min_length=1, max_length=100)


def build_routes(state: SandboxState) -> list[BaseRoute]:
    """Build the routes of a project's paths, in both versions."""
    tokens = state.get_records(GrantedTokens)

    def check(request: Request) -> None:
        if request.path_params["version"] not in _VERSIONS:
            raise google.refuse(404, "Not found.")
        if not tokens.accepts(get_bearer_key(request)):
            message = "Request had invalid authentication credentials. Expected OAuth 2 token."
            raise google.refuse(401, message, "ACCESS_TOKEN_TYPE_UNSUPPORTED")

    act = google.make_action({"embedContent": _embed_one, "batchEmbedContents": _embed_many})
    return build_checked_routes(check, (("POST", _MODELS + "/{action}", act),))


async def _embed_one(request: Request) -> Response:
    body = await read_body(request, VertexEmbedBody, google.refuse_body)
    return _answer(request, [body], "embedding")


async def _embed_many(request: Request) -> Response:
    body = await read_body(request, VertexEmbedBatch, google.refuse_body)
    return _answer(request, body.requests, "embeddings")


def _answer(request: Request, bodies: list[VertexEmbedBody], member: str) -> Response:
    mark_billed(request)
    vectors = [
        google.embed_content(body.content, body.embed_content_config.output_dimensionality)
        for body in bodies
    ]
    tokens = sum(google.count_words(body.content) for body in bodies)
    usage = {"promptTokenCount": tokens, "totalTokenCount": tokens}
    value = vectors[0] if member == "embedding" else vectors
    return JSONResponse({member: value, "usageMetadata": usage})
