"""Voyage AI: embeddings and ranking."""

from toolkit.plugins import (
    Access,
    Cost,
    EmbedReply,
    EmbedRequest,
    Flow,
    InputBound,
    ProviderError,
    RerankBound,
    RerankReply,
    RerankRequest,
    Vendor,
    run_in_thread,
    send,
)
from toolkit.vendors._embeddings import list_vectors, make_reply, read_scores
from toolkit.vendors._http import (
    Json,
    VendorResponse,
    build_bearer_headers,
    build_json_request,
    get_object,
    read_numbers,
)
from toolkit.vendors._prices import load_models


def embed_texts(operation: EmbedRequest, access: Access) -> Flow[EmbedReply]:
    """Embed texts by the embeddings API.

    Raises:
        ProviderError: the vendor refused or failed, classified by its documented error table.
    """
    fields: Json = {
        "model": access.model,
        "input": list(operation.texts),
        "input_type": operation.purpose,
        "encoding_format": "base64",
        "truncation": False,
    }
    if operation.dimensions is not None:
        fields["output_dimension"] = operation.dimensions
    answer, body = yield from _post(access, "/v1/embeddings", fields)
    vectors, units = list_vectors(body), _read_units(body)
    return (yield from run_in_thread(make_reply, answer, len(operation.texts), vectors, units))


def rerank_documents(operation: RerankRequest, access: Access) -> Flow[RerankReply]:
    """Rank documents by the rerank API.

    Raises:
        ProviderError: the vendor refused or failed; `PROVIDER_BAD_RESPONSE` without a score for
            each document.
    """
    fields: Json = {
        "model": access.model,
        "query": operation.query,
        "documents": list(operation.documents),
        "truncation": False,
    }
    answer, body = yield from _post(access, "/v1/rerank", fields)
    return RerankReply(
        scores=read_scores(answer, body.get("data"), len(operation.documents)),
        model=access.model,
        vendor_request_id=answer.request_id,
        cost=Cost(_read_units(body)),
    )


def _post(access: Access, path: str, fields: Json) -> Flow[tuple[VendorResponse, Json]]:
    request = build_json_request(access.url(path), fields, build_bearer_headers(access))
    answer = VendorResponse("voyage", access, (yield from send(request)))
    body = yield from run_in_thread(answer.json)
    if answer.is_failure:
        raise _build_failure(answer, body)
    return answer, body


def _read_units(body: Json) -> dict[str, float]:
    tokens, _ = read_numbers(get_object(body, "usage"), "total_tokens", "total_tokens")
    return {} if tokens is None else {"input_tokens": tokens}


def _build_failure(answer: VendorResponse, body: Json) -> ProviderError:
    return answer.build_failure(body.get("detail"))


VENDOR = Vendor(
    id="voyage",
    title="Voyage AI",
    variable="VOYAGE_API_KEY",
    base_urls={"api": "https://api.voyageai.com"},
    operations={EmbedRequest: embed_texts, RerankRequest: rerank_documents},
    models=load_models("voyage"),
    bounds={
        EmbedRequest: InputBound("price list: the tokens of the input alone"),
        RerankRequest: RerankBound("guide to rerankers: the query's tokens for each document"),
    },
)
