"""Batches of Mistral, beside its chat on the compatible wire."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from uuid import UUID

from pydantic import Field
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from toolkit.sandbox.batches import Batch, BatchedCall, StoredFile, WireBatches
from toolkit.sandbox.json_http import JsonObject, RequestBody, build_checked_routes, read_body
from toolkit.sandbox.state import SandboxState
from toolkit.sandbox.vendor_paths import CompatibleVendor
from toolkit.sandbox.wires import openai
from toolkit.sandbox.wires.openai_batches import list_file_routes, read_lines, write_outputs

MAX_REQUESTS = 1_000_000
PAGE_SIZE = 100
_STATUSES = {
    "validating": "QUEUED",
    "failed": "FAILED",
    "in_progress": "RUNNING",
    "completed": "SUCCESS",
    "expired": "TIMEOUT_EXCEEDED",
    "cancelling": "CANCELLATION_REQUESTED",
    "cancelled": "CANCELLED",
}
# The parameters of the list; any other is a member of the metadata to filter by.
_LIST_PARAMETERS = frozenset(
    ("page", "page_size", "model", "agent_id", "created_after", "created_by_me", "status")
) | {"order_by"}


class JobLine(RequestBody, extra="ignore"):
    """A line of the file of requests."""

    custom_id: str | None = None
    body: JsonObject


class MistralJobBody(RequestBody):
    """The body of a request for a job."""

    input_files: list[str] = Field(min_length=1)
    endpoint: str
    model: str | None = None
    metadata: dict[str, str] | None = None
    timeout_hours: int = Field(24, ge=1, le=168)


def build_routes(state: SandboxState, vendor: CompatibleVendor) -> list[BaseRoute]:
    """Build the routes of files and jobs."""

    def describe(_: Request, batch: Batch) -> JsonObject:
        return _describe_job(batch, write_outputs(batches, batch, _make_id))

    batches = WireBatches(state, vendor.id, describe, openai.refuse)
    models = {"/v1/chat/completions": vendor.models, "/v1/embeddings": vendor.embeddings}

    async def create_job(request: Request) -> Response:
        body = await read_body(request, MistralJobBody, openai.refuse_body)
        if body.endpoint not in models:
            raise openai.refuse(422, f"Unknown endpoint {body.endpoint!r}.", "endpoint")
        if body.model is not None and body.model not in models[body.endpoint]:
            raise openai.refuse(400, f"Invalid model: {body.model}", "model", "invalid_model")
        for id in body.input_files:
            if id not in batches.files:
                raise openai.refuse(404, f"No file matches the id {id}.", "input_files")
        data = b"\n".join(batches.files[id].data for id in body.input_files)
        lines, errors = read_lines(data, JobLine)
        errors += _check_lines(lines, body.model, models[body.endpoint])
        chosen = {} if body.model is None else {"model": body.model}
        items = [
            BatchedCall(line.custom_id or str(number), body.endpoint, {**line.body, **chosen})
            for number, line in enumerate(lines)
        ]
        id = _make_id(batches.create_id())
        details = body.model_dump(exclude={"timeout_hours"})
        batch = batches.create(request, id, items, details, errors)
        return JSONResponse(describe(request, batch))

    async def list_jobs(request: Request) -> Response:
        jobs = [describe(request, job) for job in await batches.list_newest(request)]
        query = request.query_params
        try:
            kept = [job for job in jobs if _matches(job, query)]
            size = int(query.get("page_size", PAGE_SIZE))
            start = int(query.get("page", 0)) * size
        except ValueError as error:
            raise openai.refuse(422, str(error)) from None
        if query.get("order_by") == "created":
            kept.reverse()
        page = kept[start : start + size]
        return JSONResponse({"object": "list", "total": len(kept), "data": page})

    return build_checked_routes(
        partial(openai.check_key, vendor),
        (
            *list_file_routes(batches, vendor.base_path, _describe_file, _make_id),
            ("POST", f"{vendor.base_path}/batch/jobs", create_job),
            ("GET", f"{vendor.base_path}/batch/jobs", list_jobs),
            ("GET", f"{vendor.base_path}/batch/jobs/{{id}}", batches.get),
            ("POST", f"{vendor.base_path}/batch/jobs/{{id}}/cancel", batches.cancel),
        ),
    )


def _make_id(digits: str) -> str:
    return str(UUID(digits[:32]))


def _check_lines(
    lines: Sequence[JobLine], model: str | None, models: Sequence[str]
) -> Iterator[JsonObject]:
    """Yield the faults of the requests of a job."""
    if not 1 <= len(lines) <= MAX_REQUESTS:
        yield {"message": f"A job must have from 1 to {MAX_REQUESTS} requests."}
    custom_ids = [line.custom_id for line in lines if line.custom_id is not None]
    if len(custom_ids) != len(set(custom_ids)):
        yield {"message": "The custom_id of each request must be unique."}
    for line in lines:
        if model is None and line.body.get("model") not in models:
            yield {"message": f"Invalid model: {line.body.get('model')}"}
        if line.body.get("stream"):
            yield {"message": "stream is not supported in a batch"}


def _describe_file(file: StoredFile) -> JsonObject:
    is_upload = file.purpose == "batch"
    return {
        "id": file.id,
        "object": "file",
        "bytes": len(file.data),
        "created_at": file.created_at,
        "filename": file.filename,
        "purpose": "batch",
        "sample_type": "batch_request" if is_upload else "batch_result",
        "source": "upload" if is_upload else "mistral",
        "num_lines": len(file.data.splitlines()),
        "mimetype": "application/jsonl",
        "signature": None,
        "deleted": False,
    }


def _describe_job(batch: Batch, outputs: Sequence[str | None]) -> JsonObject:
    state, created_at = batch.state, int(batch.created_at)
    succeeded, failed = batch.count(succeeded=True), batch.count(succeeded=False)
    errors = batch.errors if state == "failed" else ()
    return {
        "id": batch.id,
        "object": "batch",
        **batch.details,
        "errors": [{"message": error["message"], "count": 1} for error in errors],
        "status": _STATUSES[state],
        "output_file": outputs[0],
        "error_file": outputs[1],
        "created_at": created_at,
        "started_at": None if state == "validating" else created_at,
        "completed_at": int(created_at + batch.ends_after_s) if batch.has_ended else None,
        "total_requests": len(batch.items),
        "completed_requests": succeeded + failed,
        "succeeded_requests": succeeded,
        "failed_requests": failed,
    }


def _matches(job: JsonObject, query: QueryParams) -> bool:
    """Check whether a job matches the filters of the list.

    Raises:
        ValueError: `created_after` is no time.
    """
    after = query.get("created_after")
    if after is not None and job["created_at"] < datetime.fromisoformat(after).timestamp():
        return False
    if query.get("model") not in (None, job["model"]):
        return False
    if "status" in query and job["status"] not in query.getlist("status"):
        return False
    wanted = {name: value for name, value in query.items() if name not in _LIST_PARAMETERS}
    return wanted.items() <= (job["metadata"] or {}).items()
