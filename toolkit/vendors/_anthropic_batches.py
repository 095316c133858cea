"""The batch API of Anthropic, which shows no key: a batch has a time, a size, and ids of its items.

Source: API reference, "Message Batches".
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from urllib.parse import quote

from toolkit.plugins import Access, BatchItem, BatchJob, BatchResult, BatchWire, Flow
from toolkit.vendors._batches import PAGE_SIZE, list_pages, make_result, parse_time, read_lines
from toolkit.vendors._http import Json, get_object, list_objects, read_numbers
from toolkit.vendors._wire import VendorWire

_PATH = "/v1/messages/batches"
_COUNTS = ("processing", "succeeded", "errored", "canceled", "expired")


def make_batch_wire(wire: VendorWire, statuses: Mapping[str, int]) -> BatchWire:
    """Make the batch API.

    Args:
        wire: the API of the vendor.
        statuses: the HTTP status of each type of error.
    """

    def submit(key: str, items: Sequence[BatchItem], access: Access) -> Flow[str]:
        del key  # there is no place for it but in the ids of the items
        requests = [{"custom_id": item.id, "params": item.body} for item in items]
        answer, body = yield from wire.post(access, _PATH, {"requests": requests})
        batch_id = body.get("id")
        if not isinstance(batch_id, str):
            raise answer.build_bad_response(f"{answer.vendor} created a batch without an id.")
        return batch_id

    def find(since: datetime, access: Access) -> Flow[Sequence[BatchJob]]:
        def build_path(mark: str) -> str:
            return f"{_PATH}?limit={PAGE_SIZE}{f'&after_id={quote(mark)}' if mark else ''}"

        def read_page(body: Json) -> tuple[list[BatchJob], str]:
            mark = str(body.get("last_id") or "") if body.get("has_more") else ""
            return [_read_job(row) for row in list_objects(body, "data")], mark

        return (yield from list_pages(wire, access, since, build_path, read_page))

    def check(batch_id: str, access: Access) -> Flow[BatchJob]:
        _, body = yield from wire.get(access, f"{_PATH}/{quote(batch_id, safe='')}")
        return _read_job(body)

    def read(job: BatchJob, access: Access) -> Flow[Sequence[BatchResult]]:
        # Not at the address that the batch names: the key goes to the vendor's own host alone.
        answer = yield from wire.fetch(access, f"{_PATH}/{quote(job.id, safe='')}/results")
        return read_lines(wire, answer, read_row)

    def read_row(row: Json) -> BatchResult:
        item_id, result = row.get("custom_id"), get_object(row, "result")
        match result.get("type"):
            case "succeeded":
                return make_result(item_id, 200, result.get("message"))
            case "errored":
                error = get_object(get_object(result, "error"), "error")
                status = statuses.get(str(error.get("type")), 500)
                return make_result(item_id, status, result.get("error"))
        return BatchResult(str(item_id), None)

    def cancel(batch_id: str, access: Access) -> Flow[None]:
        path = f"{_PATH}/{quote(batch_id, safe='')}/cancel"
        yield from wire.ask(access, path, {}, free=True)

    return BatchWire(
        submit=submit,
        find=find,
        check=check,
        read=read,
        cancel=cancel,
        max_items=100_000,
        max_bytes=256_000_000,
        source="guide to batch processing: 100,000 requests or 256 MB",
    )


def _read_job(body: Json) -> BatchJob:
    counts = read_numbers(get_object(body, "request_counts"), *_COUNTS)
    return BatchJob(
        id=str(body.get("id")),
        created_at=parse_time(body.get("created_at")),
        count=int(sum(count or 0 for count in counts)),
        is_ended=body.get("processing_status") == "ended",
    )
