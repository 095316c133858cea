"""The batch APIs of OpenAI and Mistral, which take requests and give results as files.

Sources: OpenAI's guide "Batch API" and its API reference, "Batch" and "Files"; Mistral's guide
"Batch inference" and the types of its SDK.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

import httpx

from toolkit.contract.errors import ErrorCode
from toolkit.plugins import Access, BatchItem, BatchJob, BatchResult, BatchWire, Flow, ProviderError
from toolkit.vendors._batches import (
    KEY_FIELD,
    PAGE_SIZE,
    list_pages,
    make_lines,
    make_result,
    parse_time,
    read_lines,
)
from toolkit.vendors._http import Json, get_first, get_object, list_objects, read_numbers
from toolkit.vendors._wire import VendorWire

_UNREACHED = frozenset(("batch_expired", "batch_cancelled"))
# A limit on the tokens of all batches in progress, which passes.
_FULL_CODES = frozenset(("token_limit_exceeded", "rate_limit_exceeded"))


@dataclass(frozen=True, slots=True)
class BatchForm:
    """The names in a batch API with files.

    Attributes:
        path: path of the batches.
        ended: the states in which no request is carried out any more.
        failed: the state of a batch whose requests were all refused.
        results: the members that name files of results.
        left_out: members of calls that items do not have: the batch has them instead.
    """

    path: str
    ended: frozenset[str]
    failed: str
    results: tuple[str, ...]
    left_out: tuple[str, ...]


_OPENAI = BatchForm(
    path="/batches",
    ended=frozenset(("completed", "failed", "expired", "cancelled")),
    failed="failed",
    results=("output_file_id", "error_file_id"),
    left_out=("service_tier",),
)
_MISTRAL = BatchForm(
    path="/batch/jobs",
    ended=frozenset(("SUCCESS", "FAILED", "TIMEOUT_EXCEEDED", "CANCELLED")),
    failed="FAILED",
    results=("output_file", "error_file"),
    left_out=("service_tier", "model"),
)


@dataclass(frozen=True, slots=True)
class FileBatches:
    """The batch API of a wire, in the form that the dialect of a server names.

    Attributes:
        wire: the API of the vendor.
    """

    wire: VendorWire

    def submit(self, key: str, items: Sequence[BatchItem], access: Access) -> Flow[str]:
        """Upload the requests, and create the batch."""
        form, path = _find_form(access), _name_path(items[0])
        members: Json = {} if form is _MISTRAL else {"method": "POST", "url": path}
        lines = make_lines(items, form.left_out, members)
        _, uploaded = yield from self.wire.post_form(
            access,
            "/files",
            {"purpose": "batch"},
            {"file": (f"{key}.jsonl", lines, "application/jsonl")},
            free=True,
        )
        fields: Json = {"endpoint": path, "metadata": {KEY_FIELD: key}}
        if form is _MISTRAL:
            fields |= {"input_files": [uploaded.get("id")], "model": access.model}
        else:
            fields |= {"input_file_id": uploaded.get("id"), "completion_window": "24h"}
        answer, body = yield from self.wire.post(access, form.path, fields)
        batch_id = body.get("id")
        if not isinstance(batch_id, str):
            raise answer.build_bad_response(f"{answer.vendor} created a batch without an id.")
        return batch_id

    def find(self, since: datetime, access: Access) -> Flow[Sequence[BatchJob]]:
        """List the batches since a time."""

        form, pages = _find_form(access), list[int]()

        def build_path(mark: str) -> str:
            if form is _MISTRAL:
                return f"{form.path}?page={mark or 0}&page_size={PAGE_SIZE}&order_by=-created"
            return f"{form.path}?limit={PAGE_SIZE}{f'&after={quote(mark)}' if mark else ''}"

        def read_page(body: Json) -> tuple[list[BatchJob], str]:
            rows = list_objects(body, "data")
            pages.append(len(rows))
            mark = str(rows[-1].get("id")) if rows and body.get("has_more") else ""
            if form is _MISTRAL:
                mark = str(len(pages)) if len(rows) == PAGE_SIZE else ""
            return [_read_job(row, access) for row in rows], mark

        return (yield from list_pages(self.wire, access, since, build_path, read_page))

    def check(self, batch_id: str, access: Access) -> Flow[BatchJob]:
        """Read a batch by its id."""
        _, body = yield from self.wire.get(access, _build_path(batch_id, access))
        return _read_job(body, access)

    def read(self, job: BatchJob, access: Access) -> Flow[Sequence[BatchResult]]:
        """Read the files of results and of errors."""
        results: list[BatchResult] = []
        for file_id in job.results:
            answer = yield from self.wire.fetch(access, f"/files/{quote(file_id, safe='')}/content")
            results += read_lines(self.wire, answer, _read_row)
        return results

    def cancel(self, batch_id: str, access: Access) -> Flow[None]:
        """End a batch."""
        path = f"{_build_path(batch_id, access)}/cancel"
        yield from self.wire.ask(access, path, {}, free=True)

    def make_wire(self) -> BatchWire:
        """Make the batch API with OpenAI's limits; Mistral's are higher."""
        return BatchWire(
            submit=self.submit,
            find=self.find,
            check=self.check,
            read=self.read,
            cancel=self.cancel,
            max_items=50_000,
            max_bytes=200_000_000,
            source="API reference, batches: 50,000 requests and 200 MB",
        )


def _find_form(access: Access) -> BatchForm:
    return _MISTRAL if access.dialect.batches == "mistral" else _OPENAI


def _build_path(batch_id: str, access: Access) -> str:
    return f"{_find_form(access).path}/{quote(batch_id, safe='')}"


def _read_job(body: Json, access: Access) -> BatchJob:
    form, status = _find_form(access), str(body.get("status"))
    files = [body.get(name) for name in form.results]
    failure = None
    if status == form.failed and not any(files):
        error = get_first(get_object(body, "errors"), "data") or get_first(body, "errors")
        is_full = error.get("code") in _FULL_CODES
        failure = ProviderError(
            ErrorCode.PROVIDER_RATE_LIMITED if is_full else ErrorCode.PROVIDER_REJECTED,
            f"{access.vendor} refused the batch: {error.get('message') or status}",
        )
    (total,) = read_numbers(get_object(body, "request_counts"), "total")
    (requests,) = read_numbers(body, "total_requests")
    count = requests if total is None else total
    return BatchJob(
        id=str(body.get("id")),
        key=str(get_object(body, "metadata").get(KEY_FIELD) or ""),
        created_at=parse_time(body.get("created_at")),
        count=None if count is None else int(count),
        is_ended=status in form.ended,
        results=tuple(str(name) for name in files if name),
        failure=failure,
    )


def _name_path(item: BatchItem) -> str:
    """Name the path of a call as the vendor's documents do: from its version."""
    return "/v1" + httpx.URL(item.path).path.partition("/v1")[2]


def _read_row(row: Json) -> BatchResult:
    error, response = get_object(row, "error"), get_object(row, "response")
    if response:
        return make_result(row.get("custom_id"), response.get("status_code"), response.get("body"))
    if error.get("code") in _UNREACHED:
        return BatchResult(str(row.get("custom_id")), None)
    return make_result(row.get("custom_id"), 500, {"error": error})
