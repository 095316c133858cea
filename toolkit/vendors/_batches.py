"""Batches: JSON lines, answers of single items, and lists of batches page by page."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime

import httpx

from toolkit.plugins import Access, BatchItem, BatchJob, BatchResult, Flow
from toolkit.plugins.json_reader import read_json
from toolkit.vendors._http import Json, VendorResponse, to_finite_number
from toolkit.vendors._wire import VendorWire

KEY_FIELD = "toolkit_batch"  # member of a batch's metadata that holds our key
MAX_PAGES = 20  # of a vendor's list of batches
PAGE_SIZE = 100


def make_lines(
    items: Iterable[BatchItem], left_out: Collection[str], members: Mapping[str, object]
) -> bytes:
    """Write items as JSON lines, each with its id as `custom_id` and with further members.

    Args:
        left_out: members of the bodies that are not sent.
    """
    rows = (
        {
            "custom_id": item.id,
            **members,
            "body": {name: value for name, value in item.body.items() if name not in left_out},
        }
        for item in items
    )
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def iter_lines(content: bytes) -> Iterator[Json]:
    """Yield the objects among JSON lines; other lines are left out."""
    for line in content.splitlines():
        try:
            row = read_json(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            yield row


def make_result(item_id: object, status: object, body: object) -> BatchResult:
    """Make the result of an item whose call would have had this status and this JSON body."""
    code = to_finite_number(status)
    response = httpx.Response(int(code) if code and 100 <= code < 600 else 502, json=body)
    return BatchResult(str(item_id), response)


def read_lines(
    wire: VendorWire, answer: VendorResponse, read_row: Callable[[Json], BatchResult]
) -> list[BatchResult]:
    """Read the results in a file of JSON lines.

    Raises:
        ProviderError: the answer reports a failure.
    """
    if answer.is_failure:
        wire.read(answer)
    return [read_row(row) for row in iter_lines(answer.response.content)]


def list_pages(
    wire: VendorWire,
    access: Access,
    since: datetime,
    build_path: Callable[[str], str],
    read_page: Callable[[Json], tuple[list[BatchJob], str]],
) -> Flow[list[BatchJob]]:
    """List the batches since a time, of a vendor that lists the newest first.

    Args:
        build_path: builds the path of a page from the mark of the page; "" marks the first page.
        read_page: returns the batches of a page, and the mark of the next page; "" after the last.
    """
    found: list[BatchJob] = []
    mark = ""
    for _ in range(MAX_PAGES):
        _, body = yield from wire.get(access, build_path(mark))
        jobs, mark = read_page(body)
        found += [job for job in jobs if job.created_at is None or job.created_at >= since]
        if not mark or not jobs or found[-1:] != jobs[-1:]:
            break
    return found


def parse_time(value: object) -> datetime | None:
    """Parse a time in seconds since the epoch or by RFC 3339; returns None if it is invalid.

    >>> parse_time(0) == parse_time("1970-01-01T00:00:00Z")
    True
    """
    seconds = to_finite_number(value)
    try:
        if seconds is not None:
            return datetime.fromtimestamp(seconds, UTC)
        return datetime.fromisoformat(str(value)).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None
