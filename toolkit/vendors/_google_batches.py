"""The batch API of Gemini, with the requests and the results inline.

Source: API reference, "Batch API".
"""

import re
from collections.abc import Sequence
from datetime import datetime

from toolkit.contract.errors import ErrorCode
from toolkit.plugins import Access, BatchItem, BatchJob, BatchResult, BatchWire, Flow, ProviderError
from toolkit.vendors._batches import PAGE_SIZE, list_pages, make_result, parse_time
from toolkit.vendors._http import Json, get_object, list_objects, quote_path_segment
from toolkit.vendors._wire import VendorWire

_VERSION = "/v1beta"
_NAME = re.compile(r"batches/([\w-]+)", re.ASCII)
_ENDED = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED")
# The HTTP statuses of google.rpc codes (googleapis, google/rpc/code.proto).
_STATUSES = {
    1: 499, 2: 500, 3: 400, 4: 504, 5: 404, 6: 409, 7: 403, 8: 429,
    9: 400, 10: 409, 11: 400, 12: 501, 13: 500, 14: 503, 15: 500, 16: 401,
}  # fmt: skip
_CANCELLED = 1


def make_batch_wire(wire: VendorWire) -> BatchWire:
    """Make the batch API.

    Args:
        wire: the API of the vendor.
    """

    def submit(key: str, items: Sequence[BatchItem], access: Access) -> Flow[str]:
        requests = [{"request": item.body, "metadata": {"key": item.id}} for item in items]
        fields = {"displayName": key, "inputConfig": {"requests": {"requests": requests}}}
        path = f"{_VERSION}/models/{quote_path_segment(access.model)}:batchGenerateContent"
        answer, body = yield from wire.post(access, path, {"batch": fields})
        name = _NAME.fullmatch(str(body.get("name")))
        if name is None:
            raise answer.build_bad_response(f"{answer.vendor} created a batch without a name.")
        return name[1]

    def find(since: datetime, access: Access) -> Flow[Sequence[BatchJob]]:
        def build_path(mark: str) -> str:
            token = f"&pageToken={quote_path_segment(mark)}" if mark else ""
            return f"{_VERSION}/batches?pageSize={PAGE_SIZE}{token}"

        def read_page(body: Json) -> tuple[list[BatchJob], str]:
            rows = list_objects(body, "operations")
            jobs = [_read_job(row, access) for row in rows]
            return jobs, str(body.get("nextPageToken") or "")

        return (yield from list_pages(wire, access, since, build_path, read_page))

    def check(batch_id: str, access: Access) -> Flow[BatchJob]:
        _, body = yield from wire.get(access, _build_path(batch_id))
        return _read_job(body, access)

    def read(job: BatchJob, access: Access) -> Flow[Sequence[BatchResult]]:
        _, body = yield from wire.get(access, _build_path(job.id))
        answers = get_object(body, "response") or get_object(get_object(body, "metadata"), "output")
        rows = list_objects(get_object(answers, "inlinedResponses"), "inlinedResponses")
        return [_read_row(row) for row in rows]

    def cancel(batch_id: str, access: Access) -> Flow[None]:
        yield from wire.ask(access, f"{_build_path(batch_id)}:cancel", {}, free=True)

    return BatchWire(
        submit=submit,
        find=find,
        check=check,
        read=read,
        cancel=cancel,
        max_items=10_000,
        max_bytes=20_000_000,
        source="guide to the batch API: inline requests of up to 20 MB",
    )


def _build_path(batch_id: str) -> str:
    return f"{_VERSION}/batches/{quote_path_segment(batch_id)}"


def _read_job(body: Json, access: Access) -> BatchJob:
    metadata = get_object(body, "metadata")
    name = _NAME.search(str(body.get("name") or metadata.get("name")))
    state = str(metadata.get("state")).removeprefix("BATCH_STATE_")
    error, failure = get_object(body, "error"), None
    if state == "FAILED" or error:
        failure = ProviderError(
            ErrorCode.PROVIDER_REJECTED,
            f"{access.vendor} refused the batch: {error.get('message') or state}",
        )
    count = str(get_object(metadata, "batchStats").get("requestCount") or "")
    return BatchJob(
        id=name[1] if name else "",
        key=str(metadata.get("displayName") or ""),
        created_at=parse_time(metadata.get("createTime")),
        count=int(count) if count.isdecimal() else None,
        is_ended=body.get("done") is True or state in _ENDED,
        failure=failure,
    )


def _read_row(row: Json) -> BatchResult:
    key, error = get_object(row, "metadata").get("key"), get_object(row, "error")
    if not error:
        return make_result(key, 200, row.get("response"))
    code = error.get("code")
    if code == _CANCELLED:
        return BatchResult(str(key), None)
    status = _STATUSES.get(code, code) if isinstance(code, int) else 500
    return make_result(key, status, {"error": error})
