"""Batches of the `openai` wire: files of requests, and of their answers."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from toolkit.sandbox.batches import (
    EXPIRY_S,
    Batch,
    BatchedCall,
    StoredFile,
    WireBatches,
    format_lines,
)
from toolkit.sandbox.json_http import (
    Handler,
    JsonObject,
    RequestBody,
    build_checked_routes,
    list_faults,
    read_body,
    read_form,
)
from toolkit.sandbox.state import SandboxState
from toolkit.sandbox.wires import openai

MAX_REQUESTS, MAX_BYTES = 50_000, 200_000_000
FILE_LIFETIME_S = 30 * 24 * 3_600
ENDPOINTS: Mapping[str, Container[str]] = {
    "/v1/chat/completions": openai.MODELS,
    "/v1/embeddings": openai.EMBEDDING_MODELS,
}
UNANSWERED = {
    "expired": (
        "batch_expired",
        "This request could not be executed before the completion window expired.",
    ),
    "cancelled": ("batch_cancelled", "This request was cancelled before it was executed."),
}
_TIMES = ("in_progress", "completed", "failed", "expired", "cancelling", "cancelled")
# The vendor's codes of faults of a line, by the names that pydantic has for them.
_LINE_CODES = {"json_invalid": "invalid_json_line", "missing": "missing_required_parameter"}
L = TypeVar("L", bound=RequestBody)
Metadata: TypeAlias = Annotated[
    dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]],
    Field(max_length=16),
]
DescribeFile: TypeAlias = Callable[[StoredFile], JsonObject]
MakeId: TypeAlias = Callable[[str], str]  # makes the id of a file from hexadecimal digits


class BatchLine(RequestBody):
    """A line of the file of requests."""

    custom_id: str = Field(min_length=1)
    method: Literal["POST"]
    url: str
    body: JsonObject


class OpenAIBatchBody(RequestBody):
    """The body of a request for a batch."""

    input_file_id: str
    endpoint: Literal["/v1/chat/completions", "/v1/embeddings"]
    completion_window: Literal["24h"]
    metadata: Metadata | None = None


def build_routes(state: SandboxState) -> list[BaseRoute]:
    """Build the routes of files and batches."""

    def describe(_: Request, batch: Batch) -> JsonObject:
        return _describe_batch(batch, write_outputs(batches, batch, _make_file_id))

    batches = WireBatches(state, "openai", describe, openai.refuse)

    async def create_batch(request: Request) -> Response:
        body = await read_body(request, OpenAIBatchBody, openai.refuse_body)
        file = batches.files.get(body.input_file_id)
        if file is None or file.purpose != "batch":
            message = f"'{body.input_file_id}' is not the id of a file with the purpose 'batch'."
            raise openai.refuse(400, message, "input_file_id", "invalid_value")
        lines, errors = read_lines(file.data, BatchLine)
        errors += _check_lines(lines, body.endpoint)
        items = [BatchedCall(line.custom_id, line.url, line.body) for line in lines]
        details = body.model_dump() | {"model": lines[0].body.get("model") if lines else None}
        id = f"batch_{batches.create_id()[:32]}"
        return JSONResponse(describe(request, batches.create(request, id, items, details, errors)))

    async def list_batches(request: Request) -> Response:
        newest = await batches.list_newest(request)
        page, has_more = batches.take_page(request, newest, ("after", "limit"), range(20, 100))
        ids = {"first_id": page[0].id, "last_id": page[-1].id} if page else {}
        data = [describe(request, batch) for batch in page]
        return JSONResponse({"object": "list", "data": data, **ids, "has_more": has_more})

    return build_checked_routes(
        partial(openai.check_key, openai.VENDOR),
        (
            *list_file_routes(batches, "/v1", describe_file, _make_file_id),
            ("POST", "/v1/batches", create_batch),
            ("GET", "/v1/batches", list_batches),
            ("GET", "/v1/batches/{id}", batches.get),
            ("POST", "/v1/batches/{id}/cancel", batches.cancel),
        ),
    )


def describe_file(file: StoredFile) -> JsonObject:
    """Describe a file in the vendor's format."""
    return {
        "id": file.id,
        "object": "file",
        "bytes": len(file.data),
        "created_at": file.created_at,
        "expires_at": file.created_at + FILE_LIFETIME_S,
        "filename": file.filename,
        "purpose": file.purpose,
        "status": "processed",
        "status_details": None,
    }


def list_file_routes(
    batches: WireBatches, base_path: str, describe: DescribeFile, make_id: MakeId
) -> Sequence[tuple[str, str, Handler]]:
    """List the routes of files."""

    async def upload_file(request: Request) -> Response:
        form = await read_form(request, lambda: openai.refuse(400, "Could not parse the form."))
        file = next(iter(form.files.get("file", ())), None)
        if file is None or form.fields.get("purpose") != "batch":
            message = "A file and the purpose 'batch' are required."
            raise openai.refuse(400, message, "file" if file is None else "purpose")
        if len(file.data) > MAX_BYTES:
            raise openai.refuse(413, f"The file is larger than {MAX_BYTES} bytes.")
        id = make_id(batches.create_id())
        return JSONResponse(describe(batches.add_file(id, file.filename, "batch", file.data)))

    def find(request: Request) -> StoredFile:
        id = str(request.path_params["id"])
        if id not in batches.files:
            raise openai.refuse(404, f"No such File object: {id}", "id")
        return batches.files[id]

    async def get_file(request: Request) -> Response:
        return JSONResponse(describe(find(request)))

    async def get_content(request: Request) -> Response:
        return Response(find(request).data, media_type="application/octet-stream")

    async def delete_file(request: Request) -> Response:
        file = batches.files.pop(find(request).id)
        return JSONResponse({"id": file.id, "object": "file", "deleted": True})

    return (
        ("POST", f"{base_path}/files", upload_file),
        ("GET", f"{base_path}/files/{{id}}", get_file),
        ("GET", f"{base_path}/files/{{id}}/content", get_content),
        ("DELETE", f"{base_path}/files/{{id}}", delete_file),
    )


def read_lines(data: bytes, model: type[L]) -> tuple[list[L], list[JsonObject]]:
    """Read the lines of a file of requests, and return them with the faults of other lines."""
    lines: list[L] = []
    errors: list[JsonObject] = []
    for number, text in enumerate(data.splitlines(), start=1):
        try:
            lines.append(model.model_validate_json(text))
        except ValidationError as error:
            fault = list_faults(error)[0]
            code = _LINE_CODES.get(fault.kind, "invalid_request")
            errors.append(_describe_fault(code, str(fault), number, fault.name or None))
    return lines, errors


def _describe_fault(
    code: str, message: str, line: int | None = None, param: str | None = None
) -> JsonObject:
    return {"code": code, "message": message, "line": line, "param": param}


def _check_lines(lines: Sequence[BatchLine], endpoint: str) -> Iterator[JsonObject]:
    """Yield the faults of the requests of a batch."""
    if not lines:
        yield _describe_fault("empty_file", "The input file is empty.")
    if len(lines) > MAX_REQUESTS:
        yield _describe_fault("too_many_tasks", f"A file may have {MAX_REQUESTS} requests.")
    known: set[str] = set()
    for number, line in enumerate(lines, start=1):
        model = line.body.get("model")
        served = str(model).removesuffix(openai.MODEL_SUFFIX) in ENDPOINTS[endpoint]
        faults = {
            ("duplicate_custom_id", "custom_id"): line.custom_id in known,
            ("url_mismatch", "url"): line.url != endpoint,
            ("model_not_found", "body.model"): not served,
            ("model_mismatch", "body.model"): model != lines[0].body.get("model"),
            ("invalid_request", "body.stream"): bool(line.body.get("stream")),
        }
        known.add(line.custom_id)
        for code, param in (names for names, is_fault in faults.items() if is_fault):
            message = f"The value of '{param}' is not valid in this batch: {code}."
            yield _describe_fault(code, message, number, param)


def write_outputs(batches: WireBatches, batch: Batch, make_id: MakeId) -> Sequence[str | None]:
    """Write the files of a batch that has ended, once; return the ids of output and errors.

    The answers are in an order other than that of the requests, as the vendor's may be.
    """
    if batch.has_ended and not batch.outputs:
        answers: dict[str, list[JsonObject]] = {"output": [], "error": []}
        for number, item in reversed(list(enumerate(batch.items))):
            kind = "output" if item.status == 200 else "error"
            answers[kind].append(_describe_answer(batch, item, number))
        ids: list[str | None] = []
        for kind, rows in answers.items():
            is_written = bool(rows) and not batch.errors
            ids.append(make_id(batches.create_id()) if is_written else None)
            if ids[-1] is not None:
                name = f"{batch.id}_{kind}.jsonl"
                batches.add_file(ids[-1], name, "batch_output", format_lines(rows))
        batch.outputs = ids
    return batch.outputs or (None, None)


def _describe_answer(batch: Batch, item: BatchedCall, number: int) -> JsonObject:
    response, error = None, None
    if item.status:
        response = {
            "status_code": item.status,
            "request_id": item.request_id,
            "body": item.answer,
        }
    elif batch.state in UNANSWERED:
        code, message = UNANSWERED[batch.state]
        error = {"code": code, "message": message}
    id = f"batch_req_{batch.id[-12:]}{number}"
    return {"id": id, "custom_id": item.custom_id, "response": response, "error": error}


def _make_file_id(digits: str) -> str:
    return f"file-{digits[:22]}"


def _describe_batch(batch: Batch, outputs: Sequence[str | None]) -> JsonObject:
    state, created_at = batch.state, int(batch.created_at)
    times = dict.fromkeys(f"{name}_at" for name in _TIMES)
    if state not in ("validating", "failed"):
        times["in_progress_at"] = created_at
    if batch.cancelled_after_s is not None:
        times["cancelling_at"] = int(batch.created_at + batch.cancelled_after_s)
    if batch.has_ended:
        times[f"{state}_at"] = int(batch.created_at + batch.ends_after_s)
    succeeded = batch.count(succeeded=True)
    total = 0 if state in ("validating", "failed") else len(batch.items)
    failed = batch.count(succeeded=False)  # without lines that have no answer
    return {
        "id": batch.id,
        "object": "batch",
        **batch.details,
        "errors": {"object": "list", "data": batch.errors} if state == "failed" else None,
        "status": state,
        "output_file_id": outputs[0],
        "error_file_id": outputs[1],
        "created_at": created_at,
        "expires_at": int(created_at + EXPIRY_S),
        **times,
        "request_counts": {"total": total, "completed": succeeded, "failed": failed},
    }
