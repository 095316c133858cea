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
    send,
)
from toolkit.vendors import openai
from toolkit.vendors._embeddings import MAX_JSON_TEXTS, make_reply, read_scores
from toolkit.vendors._http import (
    Json,
    VendorResponse,
    build_bearer_headers,
    build_json_request,
    collect_names,
    get_object,
    read_numbers,
    send_probe,
)
from toolkit.vendors._prices import load_models


def generate_text(operation: TextRequest, access: Access) -> Flow[TextReply]:
    """Generate text by the compatibility API.

    Raises:
        ProviderError: the vendor refused or failed, classified by its documented error table.
    """
    urls = {"api": access.base_urls["compatible"]}
    compatible = replace(access, base_urls=urls, vendor="cohere", compatible=True)
    return (yield from openai.generate_text(operation, compatible))


def embed_texts(operation: EmbedRequest, access: Access) -> Flow[EmbedReply]:
    """Embed texts by the embed API.

    Raises:
        ProviderError: the vendor refused or failed, classified by its documented error table.
    """
    texts = operation.texts[:MAX_JSON_TEXTS]
    fields: Json = {
        "model": access.model,
        "texts": list(texts),
        "input_type": "search_query" if operation.purpose == "query" else "search_document",
        "embedding_types": ["float"],
        "truncate": "NONE",
    }
    if operation.dimensions is not None:
        fields["output_dimension"] = operation.dimensions
    answer, body = yield from _post(access, "/v2/embed", fields)
    vectors = get_object(body, "embeddings").get("float")
    rows = vectors if isinstance(vectors, list) else []
    billed = get_object(get_object(body, "meta"), "billed_units")
    tokens, _ = read_numbers(billed, "input_tokens", "input_tokens")
    units = {} if tokens is None else {"input_tokens": tokens}
    return (yield from run_in_thread(make_reply, answer, len(texts), rows, units))


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
    answer, body = yield from _post(access, "/v2/rerank", fields)
    billed = get_object(get_object(body, "meta"), "billed_units")
    searches, _ = read_numbers(billed, "search_units", "search_units")
    return RerankReply(
        scores=read_scores(answer, body.get("results"), len(operation.documents)),
        model=access.model,
        vendor_request_id=answer.request_id or answer.read_label(body.get("id")),
        cost=Cost({} if searches is None else {"searches": searches}),
    )


def probe(access: Access) -> Flow[list[str]]:
    """List the models, which is free and needs a key.

    Raises:
        ProviderError: `PROVIDER_AUTH_FAILED` if the key is refused.
    """
    answer = yield from send_probe("cohere", access, "/v1/models", build_bearer_headers(access))
    body = answer.json()
    if answer.is_failure:
        raise _build_failure(answer, body)
    return collect_names(answer, body.get("models"), "name")


def _post(access: Access, path: str, fields: Json) -> Flow[tuple[VendorResponse, Json]]:
    request = build_json_request(access.url(path), fields, build_bearer_headers(access))
    answer = VendorResponse("cohere", access, (yield from send(request)))
    body = yield from run_in_thread(answer.json)
    if answer.is_failure:
        raise _build_failure(answer, body)
    return answer, body


def _build_failure(answer: VendorResponse, body: Json) -> ProviderError:
    # Cohere answers 498 to a bad or expired token, and 499 to a request that was cancelled.
    verdict = (ErrorCode.PROVIDER_AUTH_FAILED, False) if answer.status == 498 else None
    return answer.build_failure(body.get("message"), verdict=verdict)


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
    probe=probe,
)
