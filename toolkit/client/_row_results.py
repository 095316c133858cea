"""The rows of `client.map`: the pages that are sent, and the result of each row."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic_core import to_json

from toolkit.contract.base import to_canonical_json
from toolkit.contract.maps import MAX_PAGE_ROWS

NOT_BEGUN: Final = "not begun"  # the status of a row without a job
EMPTY_CELL: Final = "empty cell"
STOPPED: Final = "stopped"  # the reason of a row that the end of its map left out
MAX_PAGE_BYTES: Final = 400_000


def make_map_key(name: str, fields: Mapping[str, object], options: Mapping[str, object]) -> str:
    """Make the key of a map: the same for the same call, in any process.

    The options `cache`, `max_cost_usd` and `deadline_s` are no part of it.

    >>> make_map_key("llm.generate", {"objective": "On {n}"}, {"cache": True})
    '33d94b590055f6d9'
    """
    run_options = {
        option: value
        for option, value in options.items()
        if value is not None and option not in ("cache", "max_cost_usd", "deadline_s")
    }
    text = to_canonical_json([name, dict(fields), run_options])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def split_pages(rows: Sequence[Mapping[str, object]]) -> Iterator[list[Mapping[str, object]]]:
    """Split rows into pages that fit in one request, by their number and size."""
    page: list[Mapping[str, object]] = []
    size = 0
    for row in rows:
        row_size = len(to_json(row))
        if page and (len(page) == MAX_PAGE_ROWS or size + row_size > MAX_PAGE_BYTES):
            yield page
            page, size = [], 0
        page.append(row)
        size += row_size
    if page:
        yield page


@dataclass(slots=True)
class RowResult:
    """The result of one row of `map`: an answer with its cost, or the reason why there is none.

    Attributes:
        status: status of its job, or `NOT_BEGUN`.
        value: the answer: an instance of the output model, or the output.
        cost_usd: cost of the result in US dollars, even if it was paid earlier; None if unknown.
        cached: whether the result existed before, so that nothing was paid for it now.
        error: why there is no value, in one sentence; None if there is one.
        reason: why there is no value, as the code of an error, `EMPTY_CELL` or `STOPPED`.
        confidence: probability of the answer by the model's own account; None if not reported.
    """

    status: str
    value: object = None
    cost_usd: float | None = None
    latency_ms: int | None = None
    job_id: str | None = None
    cached: bool = False
    error: str | None = None
    reason: str | None = None
    confidence: float | None = None
