"""Voyage AI: embeddings and ranking."""

from toolkit.plugins import (
    Access,
    Cost,
    EmbedReply,
    EmbedRequest,
    Flow,
    InputBound,
    RerankBound,
    RerankReply,
    RerankRequest,
    Vendor,
    run_in_thread,
)
from toolkit.vendors._embeddings import list_vectors, make_reply, read_ranking
from toolkit.vendors._http import Json, get_object, to_finite_number
from toolkit.vendors._prices import load_models
from toolkit.vendors._wire import VendorWire


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
    answer, body = yield from _WIRE.post(access, "/v1/embeddings", fields)
    vectors, tokens = list_vectors(body), _read_tokens(body)
    return (yield from run_in_thread(make_reply, answer, len(operation.texts), vectors, tokens))


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
    answer, body = yield from _WIRE.post(access, "/v1/rerank", fields)
    tokens = _read_tokens(body)
    cost = Cost({} if tokens is None else {"input_tokens": tokens})
    return read_ranking(answer, body, "data", operation, cost)


def _read_tokens(body: Json) -> float | None:
    return to_finite_number(get_object(body, "usage").get("total_tokens"))


_WIRE = VendorWire(lambda answer, body: answer.build_failure(body.get("detail")))
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
