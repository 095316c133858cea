"""Vectors as bytes, scores of documents, and the embeddings API of OpenAI-compatible servers."""

import base64
import sys
from array import array
from collections.abc import Sequence

from toolkit.plugins import Access, Cost, EmbedReply, EmbedRequest, RerankReply, RerankRequest
from toolkit.vendors._http import (
    Json,
    VendorResponse,
    get_object,
    list_objects,
    read_numbers,
    to_finite_number,
)

_BYTES_PER_NUMBER = 4
# Texts of a request whose vectors are answered as numbers in JSON, which is read with limits.
MAX_JSON_TEXTS = 24


def build_body(operation: EmbedRequest, access: Access) -> Json:
    """Build the body of a request to the embeddings API of OpenAI and compatible servers."""
    fields: Json = {
        "model": access.model,
        "input": list(operation.texts),
        "encoding_format": "base64",
    }
    return (
        fields if operation.dimensions is None else {**fields, "dimensions": operation.dimensions}
    )


def read_reply(answer: VendorResponse, body: Json, operation: EmbedRequest) -> EmbedReply:
    """Read an answer of an OpenAI-compatible embeddings API, with vectors as base64 or numbers.

    Raises:
        ProviderError: `PROVIDER_BAD_RESPONSE` if it has not one vector for each text.
    """
    tokens = to_finite_number(get_object(body, "usage").get("prompt_tokens"))
    model = answer.read_label(body.get("model"))
    return make_reply(answer, len(operation.texts), list_vectors(body), tokens, model)


def list_vectors(body: Json) -> list[object]:
    """List the vectors of an answer with a row in `data` for each text."""
    return [row.get("embedding") for row in list_objects(body, "data")]


def build_cohere_body(operation: EmbedRequest) -> Json:
    """Build the body of a request to a model of Cohere's, as Cohere and Bedrock take it."""
    fields: Json = {
        "texts": list(operation.texts[:MAX_JSON_TEXTS]),
        "input_type": "search_query" if operation.purpose == "query" else "search_document",
        "embedding_types": ["float"],
        "truncate": "NONE",
    }
    if operation.dimensions is not None:
        fields["output_dimension"] = operation.dimensions
    return fields


def make_cohere_reply(
    answer: VendorResponse, body: Json, operation: EmbedRequest, tokens: float | None
) -> EmbedReply:
    """Make the reply of such a model's answer.

    Raises:
        ProviderError: `PROVIDER_BAD_RESPONSE` if it has not one vector for each text.
    """
    vectors = get_object(body, "embeddings").get("float")
    rows = vectors if isinstance(vectors, list) else []
    return make_reply(answer, len(operation.texts[:MAX_JSON_TEXTS]), rows, tokens)


def make_reply(
    answer: VendorResponse,
    count: int,
    vectors: Sequence[object],
    tokens: float | None,
    model: str | None = None,
) -> EmbedReply:
    """Make the reply of vectors, each a list of numbers or the base64 of 32-bit floats.

    Args:
        answer: the answer of the vendor.
        count: number of texts that were sent.
        vectors: the vectors in the answer.
        tokens: the billed tokens; None if the answer does not tell.
        model: the model that the answer names.

    Raises:
        ProviderError: `PROVIDER_BAD_RESPONSE` if there is not one vector of equal length for each
            text.
    """
    try:
        packed = [_pack_vector(vector) for vector in vectors]
    except (TypeError, ValueError, OverflowError):
        packed = []
    lengths = {len(vector) for vector in packed}
    if len(packed) != count or len(lengths) != 1 or 0 in lengths:
        raise answer.build_bad_response(
            f"The answer of {answer.vendor} has not one vector of equal length for each text."
        )
    return EmbedReply(
        vectors=b"".join(packed),
        dimensions=lengths.pop() // _BYTES_PER_NUMBER,
        model=model or answer.access.model,
        vendor_request_id=answer.request_id,
        cost=Cost({} if tokens is None else {"input_tokens": tokens}),
    )


def read_ranking(
    answer: VendorResponse, body: Json, name: str, operation: RerankRequest, cost: Cost
) -> RerankReply:
    """Read the relevance of documents from a member's rows of `index` and `relevance_score`.

    Raises:
        ProviderError: `PROVIDER_BAD_RESPONSE` if a document has no score.
    """
    scores: dict[int, float] = {}
    for row in list_objects(body, name):
        place, score = read_numbers(row, "index", "relevance_score")
        if place is not None and score is not None:
            scores[int(place)] = score
    places = range(len(operation.documents))
    if scores.keys() != set(places):
        raise answer.build_bad_response(
            f"The answer of {answer.vendor} has not one score for each document."
        )
    return RerankReply(
        scores=tuple(scores[place] for place in places),
        model=answer.access.model,
        vendor_request_id=answer.request_id or answer.read_label(body.get("id")),
        cost=cost,
    )


def _pack_vector(vector: object) -> bytes:
    """Return a vector, a list of numbers or base64, as 32-bit floats in little-endian order.

    >>> _pack_vector([1.0, 0.5]).hex(), _pack_vector("AACAPw==").hex()
    ('0000803f0000003f', '0000803f')
    """
    if isinstance(vector, str):
        data = base64.b64decode(vector, validate=True)
        if len(data) % _BYTES_PER_NUMBER:
            raise ValueError("the bytes are no 32-bit floats")
        return data
    if not isinstance(vector, list):
        raise TypeError("a vector is a list")
    numbers = array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()
