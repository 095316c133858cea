"""Vectors of texts as NumPy arrays."""

from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeAlias

from toolkit.contract.errors import ErrorCode, RequestError

if TYPE_CHECKING:
    import numpy as np

    Vectors: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]

# The most texts that a run takes inline.
MAX_TEXTS = 2_048


def read_vectors(data: bytes) -> "Vectors":
    """Read an artifact of `embed.generate` as an array of n × d 32-bit floats.

    Raises:
        RequestError: `INVALID_REQUEST` for anything else.
    """
    import numpy as np

    try:
        vectors: Vectors = np.lib.format.read_array(BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError):
        vectors = np.zeros(0, np.float32)
    if vectors.ndim != 2 or vectors.dtype != np.float32:
        message = "The artifact holds no vectors: only those of embed.generate do."
        raise RequestError(ErrorCode.INVALID_REQUEST, message)
    return vectors


def list_texts(texts: Iterable[object]) -> list[str]:
    """List the texts of a column or another iterable; a single text is a list of one.

    Raises:
        RequestError: `INVALID_REQUEST` if an item is no text, or empty; the message names it.
    """
    listed = [texts] if isinstance(texts, str) else list(texts)
    for place, text in enumerate(listed):
        if not isinstance(text, str) or not text:
            message = (
                f"Item {place} is {text!r:.40}, and only texts that are not empty are embedded."
            )
            raise RequestError(ErrorCode.INVALID_REQUEST, message)
    return [str(text) for text in listed]


def split_batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Split texts, without duplicates, into batches of at most 2,048, one for each run."""
    different = list(dict.fromkeys(texts))
    for start in range(0, len(different), MAX_TEXTS):
        yield different[start : start + MAX_TEXTS]


def align_vectors(
    texts: Sequence[str], batches: Sequence[Sequence[str]], vectors: Sequence["Vectors"]
) -> "Vectors":
    """Arrange the vectors of batches in the order of the texts; equal texts share a vector.

    Without any vectors the array is empty (0 × 0).

    Raises:
        RequestError: `CONFLICT` if batches have vectors of different lengths.
    """
    import numpy as np

    if len({part.shape[1] for part in vectors}) > 1:
        message = "Batches were embedded by different models: pin one by provider=…"
        raise RequestError(ErrorCode.CONFLICT, message)
    if not vectors:
        return np.zeros((0, 0), dtype=np.float32)
    places = {text: place for place, text in enumerate(t for batch in batches for t in batch)}
    joined: Vectors = np.concatenate(vectors)
    return joined[[places[text] for text in texts]]
