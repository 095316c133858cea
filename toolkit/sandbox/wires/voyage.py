"""The `voyage` wire: embeddings and rerank."""

from functools import partial
from typing import Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from toolkit.sandbox.json_http import (
    JsonObject,
    RefusalError,
    RequestBody,
    build_checked_routes,
    get_bearer_key,
    read_body,
    refuse_first_fault,
)
from toolkit.sandbox.state import SandboxState, mark_billed
from toolkit.sandbox.text.chat import count_tokens
from toolkit.sandbox.text.vectors import embed_text, rank_documents, spell_vector
from toolkit.sandbox.vendor_paths import SANDBOX_KEYS

EMBEDDING_MODELS = ("voyage-3.5", "voyage-3.5-lite")
RERANK_MODELS = ("rerank-2.5", "rerank-2.5-lite")


class VoyageEmbedBody(RequestBody):
    """The body of a request for vectors."""

    model: str
    input: str | list[str]
    input_type: Literal["query", "document"] | None = None
    truncation: bool | None = None
    output_dimension: Literal[256, 512, 1024, 2048] | None = None
    output_dtype: Literal["float", "int8", "uint8", "binary", "ubinary"] | None = None
    encoding_format: Literal["base64"] | None = None


class VoyageRerankBody(RequestBody):
    """The body of a request to rank documents."""

    model: str
    query: str = Field(min_length=1)
    documents: list[str] = Field(min_length=1, max_length=1_000)
    top_k: int | None = Field(None, ge=1)
    return_documents: bool | None = None
    truncation: bool | None = None


def refuse(status: int, message: str) -> RefusalError:
    """Make a refusal in the vendor's format."""
    return RefusalError({"detail": message}, status)


_refuse_body = refuse_first_fault(partial(refuse, 400), "The request body is not valid JSON.")


def build_routes(_: SandboxState) -> list[BaseRoute]:
    """Build the routes of the vendor's paths."""
    return build_checked_routes(
        _check_key,
        (("POST", "/v1/embeddings", _embed_texts), ("POST", "/v1/rerank", _rerank_documents)),
    )


def _check_key(request: Request) -> None:
    if get_bearer_key(request) != SANDBOX_KEYS["VOYAGE_API_KEY"]:
        raise refuse(401, "Provided API key is invalid.")


async def _embed_texts(request: Request) -> Response:
    body = await read_body(request, VoyageEmbedBody, _refuse_body)
    _check_model(body.model, EMBEDDING_MODELS)
    texts = [body.input] if isinstance(body.input, str) else body.input
    if not 1 <= len(texts) <= 1_000:
        raise refuse(400, "The batch size limit is 1000.")
    mark_billed(request)
    rows: list[JsonObject] = []
    for index, text in enumerate(texts):
        vector = embed_text(text, body.output_dimension or 1024)
        embedding = spell_vector(vector, in_base64=body.encoding_format == "base64")
        rows.append({"object": "embedding", "index": index, "embedding": embedding})
    usage = {"total_tokens": sum(map(count_tokens, texts))}
    return JSONResponse({"object": "list", "data": rows, "model": body.model, "usage": usage})


async def _rerank_documents(request: Request) -> Response:
    body = await read_body(request, VoyageRerankBody, _refuse_body)
    _check_model(body.model, RERANK_MODELS)
    mark_billed(request)
    rows = rank_documents(body.query, body.documents)
    query = count_tokens(body.query)
    usage = {"total_tokens": sum(query + count_tokens(each) for each in body.documents)}
    data = rows[: body.top_k]
    return JSONResponse({"object": "list", "data": data, "model": body.model, "usage": usage})


def _check_model(name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise refuse(400, f"Model {name} is not supported.")
