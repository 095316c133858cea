"""The `aws-bedrock` wire: jobs that invoke a model for each record of files in S3."""

from collections import Counter
from datetime import datetime
from typing import Literal

from pydantic import Field, ValidationError
from pydantic.alias_generators import to_camel
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from toolkit.sandbox.batches import (
    Batch,
    BatchedCall,
    WireBatches,
    format_lines,
)
from toolkit.sandbox.json_http import (
    JsonObject,
    RefusalError,
    RequestBody,
    build_checked_routes,
    read_body,
)
from toolkit.sandbox.state import SandboxState, get_call
from toolkit.sandbox.vendor_paths import BUCKET, SANDBOX_KEYS
from toolkit.sandbox.wires.aws import (
    COHERE_MODEL,
    TITAN_MODEL,
    check_caller,
    parse_region,
    refuse,
    refuse_body,
    resolve_model,
)
from toolkit.sandbox.wires.aws_s3 import Bucket

MIN_RECORDS, MAX_RECORDS, MAX_FILE_BYTES = 100, 50_000, 1_000_000_000
_ACCOUNT = "123456789012"
_URI = r"^s3://[a-z0-9][-.a-z0-9]{1,61}[a-z0-9](/[-!_*'().a-z0-9A-Z]+)*/?$"
_STATUSES = {
    "validating": "Submitted",
    "failed": "Failed",
    "in_progress": "InProgress",
    "completed": "Completed",
    "expired": "PartiallyCompleted",
    "cancelling": "Stopping",
    "cancelled": "Stopped",
}
# The signature of a job covers none of its records.
_ITEM_HEADERS = [(b"authorization", f"Bearer {SANDBOX_KEYS['AWS_BEARER_TOKEN_BEDROCK']}".encode())]


class S3Location(RequestBody, alias_generator=to_camel, extra="ignore"):
    """A place in S3: of the input, a file or a folder; of the output, a folder."""

    s3_uri: str = Field(pattern=_URI, max_length=1_024)


class BedrockJobBody(RequestBody, alias_generator=to_camel):
    """The body of a request for a job."""

    job_name: str = Field(pattern=r"^[a-zA-Z0-9]{1,63}(-*[a-zA-Z0-9+\-.]){0,63}$", max_length=63)
    role_arn: str = Field(pattern=r"^arn:aws(-[^:]+)?:iam::([0-9]{12})?:role/.+$")
    model_id: str = Field(min_length=1)
    input_data_config: dict[Literal["s3InputDataConfig"], S3Location] = Field(min_length=1)
    output_data_config: dict[Literal["s3OutputDataConfig"], S3Location] = Field(min_length=1)
    client_request_token: str | None = Field(None, min_length=1, max_length=256)
    model_invocation_type: Literal["InvokeModel", "Converse"] = "InvokeModel"
    timeout_duration_in_hours: int = Field(24, ge=24, le=168)
    vpc_config: JsonObject | None = None
    tags: list[JsonObject] | None = None


class RecordLine(RequestBody, alias_generator=to_camel, extra="ignore"):
    """A line of a file of records."""

    record_id: str | None = None
    model_input: JsonObject


def build_routes(state: SandboxState) -> list[BaseRoute]:
    """Build the routes of jobs."""
    bucket = state.get_records(Bucket)

    def describe(_: Request, job: Batch) -> JsonObject:
        _write_output(bucket, job)
        return _describe_job(job)

    jobs = WireBatches(state, "aws-bedrock", describe, _refuse_status, "aws")

    async def create_job(request: Request) -> Response:
        body = await read_body(request, BedrockJobBody, refuse_body)
        token = body.client_request_token
        for job in jobs.batches.values():
            if token is not None and job.details.get("clientRequestToken") == token:
                get_call(request).batch_id = job.id
                return JSONResponse({"jobArn": job.details["jobArn"]})
        path = _choose_path(body)
        output_key = _split_uri(body.output_data_config["s3OutputDataConfig"].s3_uri)
        files = _read_files(bucket, body.input_data_config["s3InputDataConfig"].s3_uri)
        items, error = _read_records(files, path)
        id = jobs.create_id()[:12]
        region = parse_region(request) or "us-east-1"
        arn = f"arn:aws:bedrock:{region}:{_ACCOUNT}:model-invocation-job/{id}"
        details = body.model_dump(by_alias=True, exclude_none=True, exclude={"vpc_config", "tags"})
        details |= {"jobArn": arn, "folder": f"{output_key.rstrip('/')}/{id}".lstrip("/")}
        errors = [{"message": error}] if error else []
        jobs.create(request, id, items, details, errors, _ITEM_HEADERS)
        return JSONResponse({"jobArn": arn})

    async def stop_job(request: Request) -> Response:
        await jobs.cancel(request)
        return JSONResponse({})

    async def list_jobs(request: Request) -> Response:
        newest, query = await jobs.list_newest(request), request.query_params
        if query.get("sortOrder") == "Ascending":
            newest.reverse()
        kept = [job for job in newest if _matches(describe(request, job), query)]
        names = ("nextToken", "maxResults")
        page, has_more = jobs.take_page(request, kept, names, range(100, 1_000))
        following = {"nextToken": page[-1].id} if has_more else {}
        summaries = [describe(request, job) for job in page]
        return JSONResponse({"invocationJobSummaries": summaries, **following})

    return build_checked_routes(
        check_caller,
        (
            ("POST", "/model-invocation-job", create_job),
            ("GET", "/model-invocation-jobs", list_jobs),
            ("GET", "/model-invocation-job/{id:path}", jobs.get),
            ("POST", "/model-invocation-job/{id:path}/stop", stop_job),
        ),
    )


def _refuse_value(message: str) -> RefusalError:
    return _refuse_status(400, message)


def _refuse_status(status: int, message: str) -> RefusalError:
    name = {404: "ResourceNotFoundException", 409: "ConflictException"}.get(status)
    # A conflict comes with the status 400 here.
    return refuse(404 if status == 404 else 400, name or "ValidationException", message)


def _choose_path(body: BedrockJobBody) -> str:
    """Choose the path of the call that a record stands for."""
    if body.model_invocation_type == "Converse":
        resolve_model(body.model_id, region=None)
        return f"/model/{body.model_id}/converse"
    if body.model_id not in (TITAN_MODEL, COHERE_MODEL):
        raise _refuse_value("The provided model identifier is invalid.")
    return f"/model/{body.model_id}/invoke"


def _read_files(bucket: Bucket, uri: str) -> dict[str, bytes]:
    """Read the file of an address, or the files of a folder, by their names."""
    key = _split_uri(uri)
    folder = f"{key.rstrip('/')}/" if key else ""
    return {
        name.rpartition("/")[2]: data
        for name, data in bucket.items()
        if name.endswith(".jsonl") and (name == key or name.startswith(folder))
    }


def _split_uri(uri: str) -> str:
    """Return the key of an address in the bucket that the job's role can reach."""
    name, _, key = uri.removeprefix("s3://").partition("/")
    if name != BUCKET:
        raise _refuse_value(f"The role has no access to the bucket {name}.")
    return key


def _read_records(files: dict[str, bytes], path: str) -> tuple[list[BatchedCall], str]:
    """Read the records of the files, and return them with the fault that lets the job fail."""
    records: list[BatchedCall] = []
    for name, data in files.items():
        if len(data) > MAX_FILE_BYTES:
            return [], f"The input file {name} is larger than {MAX_FILE_BYTES} bytes."
        for number, line in enumerate(data.splitlines(), start=1):
            try:
                record = RecordLine.model_validate_json(line)
            except ValidationError:
                return [], f"Line {number} of the input file {name} is not a valid record."
            record_id = record.record_id or f"RECORD{len(records):05}"
            records.append(BatchedCall(record_id, path, record.model_input, name))
    if not MIN_RECORDS <= len(records) <= MAX_RECORDS:
        limits = f"the required minimum of {MIN_RECORDS} and the maximum of {MAX_RECORDS}"
        return [], f"The job has {len(records)} records, which is not between {limits}."
    return records, ""


def _write_output(bucket: Bucket, job: Batch) -> None:
    """Write the answers of a job that has ended, once: a file for each input, and a summary."""
    if not job.has_ended or job.errors or job.outputs:
        return
    lines: dict[str, list[JsonObject]] = {item.source: [] for item in job.items}
    tokens = Counter[str]()
    for item in reversed(job.items):
        if item.status:
            lines[item.source].append(_describe_answer(item))
            tokens.update(item.answer.get("usage", {}))
    folder = job.details["folder"]
    for name, rows in lines.items():
        bucket[f"{folder}/{name}.out"] = format_lines(rows)
    summary = {**_count_records(job), "inputTokenCount": tokens["inputTokens"]}
    summary["outputTokenCount"] = tokens["outputTokens"]
    bucket[f"{folder}/manifest.json.out"] = format_lines([summary])
    job.outputs = [folder]


def _describe_answer(item: BatchedCall) -> JsonObject:
    """Describe an answer; a job's records that have no answer are not in its output."""
    line = {"recordId": item.custom_id, "modelInput": item.body}
    if item.status == 200:
        return {**line, "modelOutput": item.answer}
    error = {"errorCode": item.status, "errorMessage": item.answer.get("message", "")}
    return {**line, "error": error}


def _count_records(job: Batch) -> dict[str, int]:
    succeeded, failed = job.count(succeeded=True), job.count(succeeded=False)
    return {
        "totalRecordCount": len(job.items),
        "processedRecordCount": succeeded + failed,
        "successRecordCount": succeeded,
        "errorRecordCount": failed,
    }


def _describe_job(job: Batch) -> JsonObject:
    state = job.state
    ended = {"endTime": job.spell_time(job.ends_after_s)} if job.has_ended else {}
    return {
        **{name: value for name, value in job.details.items() if name != "folder"},
        **_count_records(job),
        "status": _STATUSES[state],
        **({"message": job.errors[0]["message"]} if state == "failed" else {}),
        "submitTime": job.spell_time(),
        "lastModifiedTime": job.spell_time(job.ends_after_s if job.has_ended else 0.0),
        "jobExpirationTime": job.spell_time(job.details["timeoutDurationInHours"] * 3_600),
        **ended,
    }


def _matches(job: JsonObject, query: QueryParams) -> bool:
    """Check whether a job matches the filters of the list.

    Raises:
        RefusalError: a time is not valid.
    """
    submitted = datetime.fromisoformat(job["submitTime"])
    try:
        after, before = (
            datetime.fromisoformat(query[name]) if name in query else submitted
            for name in ("submitTimeAfter", "submitTimeBefore")
        )
    except ValueError:
        raise _refuse_value("A time of the filter is not valid.") from None
    return (
        after <= submitted <= before
        and query.get("statusEquals") in (None, job["status"])
        and query.get("nameContains", "") in job["jobName"]
    )
