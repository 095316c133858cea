"""The `cohere` wire: embed, rerank and models."""

from functools import partial
from typing import Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from toolkit.sandbox.json_http import (
    RefusalError,
    RequestBody,
    build_checked_routes,
    get_bearer_key,
    read_body,
    refuse_first_fault,
)
from toolkit.sandbox.state import SandboxState, get_request_digest, mark_billed
from toolkit.sandbox.text.chat import count_tokens
from toolkit.sandbox.text.vectors import count_searches, embed_text, rank_documents
from toolkit.sandbox.vendor_paths import SANDBOX_KEYS
from toolkit.sandbox.wires import cohere_compatible

MODELS = (*cohere_compatible.MODELS, "embed-v4.0", "rerank-v3.5")
MAX_EMBEDDED_TEXTS, MAX_DOCUMENTS = 96, 1_000


class EmbedBody(RequestBody):
    """The body of a request for vectors."""

    model: str
    texts: list[str] = Field(min_length=1, max_length=MAX_EMBEDDED_TEXTS)
    input_type: Literal["search_document", "search_query", "classification", "clustering"]
    embedding_types: list[Literal["float", "int8", "uint8", "binary", "ubinary", "base64"]]
    output_dimension: Literal[256, 512, 1024, 1536] | None = None
    truncate: Literal["NONE", "START", "END"] | None = None
    max_tokens: int | None = None


class RerankBody(RequestBody):
    """The body of a request to rank documents."""

    model: str
    query: str = Field(min_length=1)
    documents: list[str] = Field(min_length=1, max_length=MAX_DOCUMENTS)
    top_n: int | None = Field(None, ge=1)
    max_tokens_per_doc: int | None = None


def refuse(status: int, message: str) -> RefusalError:
    """Make a refusal in the vendor's format."""
    return RefusalError({"message": message}, status)


_refuse_body = refuse_first_fault(
    partial(refuse, 400), "invalid request: the body is no JSON", "invalid request: "
)


def build_routes(_: SandboxState) -> list[BaseRoute]:
    """Build the routes of the vendor's paths."""
    return build_checked_routes(
        _check_key,
        (
            ("GET", "/v1/models", _list_models),
            ("POST", "/v2/embed", _embed_texts),
            ("POST", "/v2/rerank", _rerank_documents),
        ),
    )


def _check_key(request: Request) -> None:
    if get_bearer_key(request) != SANDBOX_KEYS["COHERE_API_KEY"]:
        raise refuse(401, "invalid api token")


async def _list_models(_request: Request) -> Response:
    return JSONResponse({"models": [{"name": name} for name in MODELS]})


async def _embed_texts(request: Request) -> Response:
    body = await read_body(request, EmbedBody, _refuse_body)
    _check_model(body.model, "embed-v4.0")
    mark_billed(request)
    tokens = sum(map(count_tokens, body.texts))
    vectors = [embed_text(text, body.output_dimension or 1536) for text in body.texts]
    answer = {
        "id": get_request_digest(request)[:32],
        "embeddings": {"float": vectors},
        "texts": body.texts,
        "meta": {"api_version": {"version": "2"}, "billed_units": {"input_tokens": tokens}},
    }
    return JSONResponse(answer)


async def _rerank_documents(request: Request) -> Response:
    body = await read_body(request, RerankBody, _refuse_body)
    _check_model(body.model, "rerank-v3.5")
    mark_billed(request)
    rows = rank_documents(body.query, body.documents)
    searches = count_searches(body.query, body.documents)
    meta = {"api_version": {"version": "2"}, "billed_units": {"search_units": searches}}
    digest = get_request_digest(request)[:32]
    return JSONResponse({"id": digest, "results": rows[: body.top_n], "meta": meta})


def _check_model(name: str, known: str) -> None:
    if name != known:
        raise refuse(404, f"model '{name}' not found, make sure the correct model ID was used")
