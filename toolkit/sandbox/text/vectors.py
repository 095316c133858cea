"""The vectors of the simulated embedding models: texts that share words are near to each other."""

import base64
import hashlib
import math
import struct
from collections.abc import Sequence
from operator import mul

from toolkit.sandbox.json_http import JsonObject
from toolkit.sandbox.text.sentences import list_stems, split_words

_SCORED_DIMENSIONS = 512


def embed_text(text: str, dimensions: int) -> list[float]:
    """Return a vector of length 1, by feature hashing of the words.

    Source: Weinberger and others, "Feature Hashing for Large Scale Multitask Learning", 2009.

    >>> tides, tide = embed_text("the tide turns", 64), embed_text("tides", 64)
    >>> round(sum(a * b for a, b in zip(tides, tide, strict=True)), 3)
    0.707
    """
    vector = [0.0] * dimensions
    for word in list_stems(text) or tuple(text.split()) or (text,):
        digest = hashlib.sha256(word.encode()).digest()
        place = int.from_bytes(digest[:8], "little") % dimensions
        vector[place] += 1.0 if digest[8] & 1 else -1.0
    length = math.sqrt(sum(number * number for number in vector)) or 1.0
    return [number / length for number in vector]


def spell_vector(vector: list[float], *, in_base64: bool) -> list[float] | str:
    """Spell a vector for an answer: its numbers, or the base64 of little-endian 32-bit floats."""
    packed = struct.pack(f"<{len(vector)}f", *vector)
    return base64.b64encode(packed).decode() if in_base64 else vector


def rank_documents(query: str, documents: Sequence[str]) -> list[JsonObject]:
    """Return a row of each document's place and relevance to a query, the most relevant first.

    The relevance is from 0 to 1, by the words that they share.

    >>> rows = rank_documents("high tides", ["a mill", "tides"])
    >>> [(row["index"], round(row["relevance_score"], 2)) for row in rows]
    [(1, 0.71), (0, 0.0)]
    """
    asked = embed_text(query, _SCORED_DIMENSIONS)
    vectors = (embed_text(document, _SCORED_DIMENSIONS) for document in documents)
    rows = [
        {"index": place, "relevance_score": max(0.0, sum(map(mul, asked, vector)))}
        for place, vector in enumerate(vectors)
    ]
    return sorted(rows, key=lambda row: -row["relevance_score"])


def count_searches(query: str, documents: Sequence[str]) -> int:
    """Count the searches that ranking is billed: of 100 chunks of 500 tokens, with the query."""
    asked = len(split_words(query))
    chunks = sum(max(1, math.ceil((asked + len(split_words(each))) / 500)) for each in documents)
    return math.ceil(chunks / 100)
