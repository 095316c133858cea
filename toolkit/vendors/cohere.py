"""Cohere: ranking and embeddings by its own API, text by its OpenAI-compatible one."""

from dataclasses import replace

from toolkit.contract.errors import ErrorCode
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
    TextReply,
    TextRequest,
    TokenBound,
    Vendor,
    run_in_thread,
)
from toolkit.vendors import openai
from toolkit.vendors._embeddings import build_cohere_body, make_cohere_reply, read_ranking
from toolkit.vendors._http import Json, VendorResponse, get_object, to_finite_number
from toolkit.vendors._prices import load_models
from toolkit.vendors._wire import VendorWire


def generate_text(operation: TextRequest, access: Access) -> Flow[TextReply]:
    """Generate text by the compatibility API.

    Raises:
        ProviderError: the vendor refused or failed, classified by its documented error table.
    """
    urls = {"api": access.base_urls["compatible"]}
    compatible = replace(access, base_urls=urls, compatible=True)
    return (yield from openai.generate_text(operation, compatible))


def embed_texts(operation: EmbedRequest, access: Access) -> Flow[EmbedReply]:
    """Embed the first texts, up to 24, by the embed API.

    Raises:
        ProviderError: the vendor refused or failed, classified by its documented error table.
    """
    fields = {"model": access.model, **build_cohere_body(operation)}
    answer, body = yield from _WIRE.post(access, "/v2/embed", fields)
    billed = get_object(get_object(body, "meta"), "billed_units")
    tokens = to_finite_number(billed.get("input_tokens"))
    return (yield from run_in_thread(make_cohere_reply, answer, body, operation, tokens))


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
    }
    answer, body = yield from _WIRE.post(access, "/v2/rerank", fields)
    billed = get_object(get_object(body, "meta"), "billed_units")
    searches = to_finite_number(billed.get("search_units"))
    cost = Cost({} if searches is None else {"searches": searches})
    return read_ranking(answer, body, "results", operation, cost)


def _build_failure(answer: VendorResponse, body: Json) -> ProviderError:
    # Cohere answers 498 to a bad or expired token, and 499 to a request that was cancelled.
    verdict = (ErrorCode.PROVIDER_AUTH_FAILED, False) if answer.status == 498 else None
    return answer.build_failure(body.get("message"), verdict=verdict)


_WIRE = VendorWire(_build_failure)
VENDOR = Vendor(
    id="cohere",
    title="Cohere",
    variable="COHERE_API_KEY",
    base_urls={
        "api": "https://api.cohere.com",
        "compatible": "https://api.cohere.ai/compatibility/v1",
    },
    operations={
        TextRequest: generate_text,
        EmbedRequest: embed_texts,
        RerankRequest: rerank_documents,
    },
    models=load_models("cohere"),
    bounds={
        TextRequest: TokenBound("compatibility API: max_completion_tokens bounds the output"),
        EmbedRequest: InputBound("API reference, embed: billed_units are the input tokens"),
        RerankRequest: RerankBound("price list: a search is a query with up to 100 documents"),
    },
    probe=_WIRE.make_probe("/v1/models", "models", "name"),
)
