"""The batch API of Bedrock: jobs that read requests from a bucket of S3 and write answers there.

The secret is JSON with a pair of keys, `batch_bucket` (which may end with a folder) and
`batch_role_arn`, the role by which Bedrock reads and writes in the bucket.

Sources: user guide of Bedrock, "Process multiple prompts with batch inference"; API reference,
`CreateModelInvocationJob`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import quote, unquote

import httpx

from toolkit.contract.errors import ErrorCode
from toolkit.plugins import (
    Access,
    BatchItem,
    BatchJob,
    BatchResult,
    BatchWire,
    Flow,
    ProviderError,
    send,
)
from toolkit.vendors._aws_access import (
    REGION,
    AwsCredentials,
    build_request,
    parse_credentials,
    resolve_endpoint,
)
from toolkit.vendors._batches import iter_lines, make_result, parse_time
from toolkit.vendors._http import (
    Json,
    VendorResponse,
    get_object,
    list_objects,
    make_secret_error,
    read_json_secret,
    read_text_member,
)
from toolkit.vendors._wire import VendorWire

_JOBS, _JOB = "/model-invocation-jobs", "/model-invocation-job"
_PREFIX = "toolkit-"  # of the names of jobs
_ENDED = frozenset(("Completed", "PartiallyCompleted", "Failed", "Stopped", "Expired"))
_NO_RESULTS = 404


@dataclass(frozen=True, slots=True)
class _Place:
    """The bucket and folder of the requests and the answers, and what may reach it."""

    keys: AwsCredentials
    bucket: str
    folder: str
    role: str

    def name_input(self, key: str) -> str:
        """Name the object with the requests of a batch."""
        return f"{self.folder}{key}.jsonl"


@dataclass(frozen=True, slots=True)
class _Bedrock:
    """The flows of the batch API."""

    wire: VendorWire

    def submit(self, key: str, items: Sequence[BatchItem], access: Access) -> Flow[str]:
        """Upload the requests, and create the job; the key makes that idempotent."""
        place = _read_place(access)
        rows = ({"recordId": item.id, "modelInput": _strip_tier(item.body)} for item in items)
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        yield from self._store(access, place, place.name_input(key), lines.encode())
        root = f"s3://{place.bucket}/{place.folder}"
        fields: Json = {
            "jobName": _PREFIX + key.replace("_", "-"),
            "clientRequestToken": key,
            "roleArn": place.role,
            "modelId": unquote(items[0].path.split("/")[-2]),
            "modelInvocationType": "Converse",
            "inputDataConfig": {"s3InputDataConfig": {"s3Uri": f"{root}{key}.jsonl"}},
            "outputDataConfig": {"s3OutputDataConfig": {"s3Uri": f"{root}{key}/"}},
        }
        answer, body = yield from self._ask(access, place.keys, _JOB, fields)
        job_id = body.get("jobArn")
        if not isinstance(job_id, str):
            raise answer.build_bad_response(f"{answer.vendor} created a job without an ARN.")
        return job_id

    def find(self, since: datetime, access: Access) -> Flow[Sequence[BatchJob]]:
        """List the jobs since a time that have our names."""
        keys, found, token = _read_place(access).keys, list[BatchJob](), ""
        while True:
            after = quote(since.strftime("%Y-%m-%dT%H:%M:%SZ"), safe="")
            query = f"?nameContains={_PREFIX}&submitTimeAfter={after}&maxResults=100"
            query += f"&nextToken={quote(token, safe='')}" if token else ""
            _, body = yield from self._ask(access, keys, _JOBS + query)
            found += [_read_job(row) for row in list_objects(body, "invocationJobSummaries")]
            token = str(body.get("nextToken") or "")
            if not token:
                return found

    def check(self, batch_id: str, access: Access) -> Flow[BatchJob]:
        """Read a job by its ARN."""
        path = f"{_JOB}/{quote(batch_id, safe='')}"
        _, body = yield from self._ask(access, _read_place(access).keys, path)
        return _read_job(body)

    def read(self, job: BatchJob, access: Access) -> Flow[Sequence[BatchResult]]:
        """Read the file of answers; there is none if the job was stopped before its first."""
        place, name = _read_place(access), f"{job.key}/{job.id.rpartition('/')[2]}/{job.key}.jsonl"
        request = _build_object_request(access, place, f"{place.folder}{name}.out", method="GET")
        answer = VendorResponse(access, (yield from send(request)))
        if answer.status == _NO_RESULTS:
            return []
        if answer.is_failure:
            raise answer.build_failure("")
        return [_read_row(row) for row in iter_lines(answer.response.content)]

    def cancel(self, batch_id: str, access: Access) -> Flow[None]:
        """Stop a job."""
        path = f"{_JOB}/{quote(batch_id, safe='')}/stop"
        yield from self._ask(access, _read_place(access).keys, path, {}, free=True)

    def _ask(
        self,
        access: Access,
        keys: AwsCredentials,
        path: str,
        fields: Json | None = None,
        *,
        free: bool = False,
    ) -> Flow[tuple[VendorResponse, Json]]:
        """Ask Bedrock, by POST if there are fields and by GET otherwise; read the answer."""
        url = _place_host(access, "bedrock", keys) + path
        headers = {"accept": "application/json", "content-type": "application/json"}
        method, content = ("GET", b"") if fields is None else ("POST", json.dumps(fields).encode())
        request = build_request(access, keys, url, content, headers, method=method)
        answer = VendorResponse(access, (yield from send(request, free=free)))
        return answer, self.wire.read(answer)

    def _store(self, access: Access, place: _Place, name: str, content: bytes) -> Flow[None]:
        request = _build_object_request(access, place, name, content, method="PUT")
        answer = VendorResponse(access, (yield from send(request)))
        if answer.is_failure:
            raise answer.build_failure("the bucket refused the requests")


def make_batch_wire(wire: VendorWire) -> BatchWire:
    """Make the batch API.

    Args:
        wire: the API of the vendor.
    """
    flows = _Bedrock(wire)
    return BatchWire(
        submit=flows.submit,
        find=flows.find,
        check=flows.check,
        read=flows.read,
        cancel=flows.cancel,
        max_items=50_000,
        max_bytes=1_000_000_000,
        source="quotas of Bedrock: 50,000 records and 1 GB a file, and at least 100 records",
    )


def _read_place(access: Access) -> _Place:
    """Read the bucket and the role of a secret.

    Raises:
        ProviderError: `SECRET_UNRESOLVED` without a pair of keys, a bucket and a role.
    """
    members, keys = read_json_secret(access.secret), parse_credentials(access.secret)
    bucket = read_text_member(members, "batch_bucket").strip("/")
    role = read_text_member(members, "batch_role_arn")
    if not (bucket and role and keys.access_key):
        raise make_secret_error(
            "Batches of aws need a secret of JSON with `access_key_id`, `secret_access_key`,"
            " `batch_bucket` and `batch_role_arn`."
        )
    name, _, folder = bucket.partition("/")
    _, region = resolve_endpoint(access, keys)
    return _Place(replace(keys, region=region), name, f"{folder}/" if folder else "", role)


def _place_host(access: Access, host: str, keys: AwsCredentials) -> str:
    """Return the base URL of a host in the region of the keys."""
    return access.url("", host).replace(REGION, keys.region or REGION)


def _build_object_request(
    access: Access, place: _Place, name: str, content: bytes = b"", *, method: str
) -> httpx.Request:
    url = f"{_place_host(access, 's3', place.keys)}/{place.bucket}/{quote(name)}"
    return build_request(access, place.keys, url, content, method=method, service="s3")


def _strip_tier(body: Json) -> Json:
    return {name: value for name, value in body.items() if name != "serviceTier"}


def _read_job(body: Json) -> BatchJob:
    status, name = str(body.get("status")), str(body.get("jobName"))
    failure = None
    if status == "Failed":
        message = f"aws refused the batch: {body.get('message') or status}"
        failure = ProviderError(ErrorCode.PROVIDER_REJECTED, message)
    count = body.get("totalRecordCount")
    return BatchJob(
        id=str(body.get("jobArn")),
        key=name.removeprefix(_PREFIX).replace("-", "_", 1) if name.startswith(_PREFIX) else "",
        created_at=parse_time(body.get("submitTime")),
        count=count if isinstance(count, int) else None,
        is_ended=status in _ENDED,
        failure=failure,
    )


def _read_row(row: Json) -> BatchResult:
    error = get_object(row, "error")
    if not error:
        return make_result(row.get("recordId"), 200, row.get("modelOutput"))
    message = {"message": error.get("errorMessage")}
    return make_result(row.get("recordId"), error.get("errorCode"), message)
