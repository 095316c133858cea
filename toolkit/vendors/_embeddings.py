"""Vectors as bytes, scores of documents, and the embeddings wire of compatible servers."""

import base64
import sys
from array import array
from collections.abc import Sequence

from toolkit.contract.errors import ErrorCode
from toolkit.plugins import Access, Cost, EmbedReply, EmbedRequest, ProviderError
from toolkit.vendors._http import Json, VendorResponse, get_object, read_numbers

_BYTES_PER_NUMBER = 4
# Texts of a request whose vectors are answered as numbers in JSON, which is read with limits.
MAX_JSON_TEXTS = 24


def build_body(operation: EmbedRequest, access: Access) -> Json:
    """Build the body of a request on the wire that OpenAI's compatible servers share."""
    fields: Json = {
        "model": access.model,
        "input": list(operation.texts),
        "encoding_format": "base64",
    }
    return (
        fields if operation.dimensions is None else {**fields, "dimensions": operation.dimensions}
    )


def read_reply(answer: VendorResponse, body: Json, operation: EmbedRequest) -> EmbedReply:
    """Read an answer on that wire; servers that do not know base64 answer with numbers.

    Raises:
        ProviderError: `PROVIDER_BAD_RESPONSE` if it has not one vector for each text.
    """
    vectors = list_vectors(body)
    tokens, _ = read_numbers(get_object(body, "usage"), "prompt_tokens", "total_tokens")
    units = {} if tokens is None else {"input_tokens": tokens}
    model = answer.read_label(body.get("model"))
    return make_reply(answer, len(operation.texts), vectors, units, model)


def list_vectors(body: Json) -> list[object]:
    """List the vectors of an answer with a row in `data` for each text."""
    rows = body.get("data")
    rows = rows if isinstance(rows, list) else []
    return [row.get("embedding") for row in rows if isinstance(row, dict)]


def make_reply(
    answer: VendorResponse,
    count: int,
    vectors: Sequence[object],
    units: dict[str, float],
    model: str | None = None,
) -> EmbedReply:
    """Make the reply of vectors, each a list of numbers or the base64 of 32-bit floats.

    Args:
        answer: the answer of the vendor.
        count: number of texts that were sent.
        vectors: the vectors in the answer.
        units: the billed units.
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
        raise _build_fault(answer)
    return EmbedReply(
        vectors=b"".join(packed),
        dimensions=lengths.pop() // _BYTES_PER_NUMBER,
        model=model or answer.access.model,
        vendor_request_id=answer.request_id,
        cost=Cost(units),
    )


def read_scores(answer: VendorResponse, rows: object, count: int) -> tuple[float, ...]:
    """Read the relevance of documents from rows with `index` and `relevance_score`.

    Raises:
        ProviderError: `PROVIDER_BAD_RESPONSE` if a document has no score.
    """
    scores: dict[int, float] = {}
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict):
            place, score = read_numbers(row, "index", "relevance_score")
            if place is not None and score is not None:
                scores[int(place)] = score
    if scores.keys() != set(range(count)):
        raise answer.build_error(
            (ErrorCode.PROVIDER_BAD_RESPONSE, None),
            f"The answer of {answer.vendor} has not one score for each document.",
        )
    return tuple(scores[place] for place in range(count))


def _build_fault(answer: VendorResponse) -> ProviderError:
    return answer.build_error(
        (ErrorCode.PROVIDER_BAD_RESPONSE, None),
        f"The answer of {answer.vendor} has not one vector of equal length for each text.",
    )


def _pack_vector(vector: object) -> bytes:
    """Pack the numbers of a vector.

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
