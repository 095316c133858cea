"""Jobs of the simulated Bedrock and their files in S3, by boto3 and its service models."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.sdk.conftest import Order
from toolkit.sandbox.vendor_paths import ACCESS_KEY, BUCKET, SIGNING_KEY

boto3 = pytest.importorskip("boto3", reason="needs the extra `sdk`")
REGION, MODEL = "eu-central-1", "eu.amazon.nova-2-lite-v1:0"
ENDED = ("Completed", "PartiallyCompleted", "Failed", "Stopped", "Expired")
Connect = Callable[..., Any]


@pytest.fixture
def connect(cloud_url: str, monkeypatch: pytest.MonkeyPatch) -> Connect:
    """Connects a client of boto3 to a service."""
    monkeypatch.delenv("AWS_BEARER_TOKEN_BEDROCK", raising=False)

    def make_client(service: str, secret: str = SIGNING_KEY) -> Any:
        wire = {"bedrock": "aws-bedrock", "s3": "aws-s3", "bedrock-runtime": "aws"}[service]
        return boto3.client(
            service,
            endpoint_url=f"{cloud_url}/{wire}",
            region_name=REGION,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=secret,
        )

    return make_client


def build_records(count: int) -> list[dict[str, Any]]:
    """Build records for jobs of the type `Converse`."""
    return [
        {
            "recordId": f"row{number:08}",
            "modelInput": {
                "messages": [{"role": "user", "content": [{"text": f"Write {number} words."}]}],
                "inferenceConfig": {"maxTokens": 50},
            },
        }
        for number in range(count)
    ]


def submit(connect: Connect, records: list[Any], folder: str, **options: Any) -> str:
    """Upload records and submit their job; return the job's ARN."""
    data = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in records)
    key = f"{folder}/in/rows.jsonl"
    connect("s3").put_object(Bucket=BUCKET, Key=key, Body=data.encode())
    job = {
        "jobName": "map-1",
        "roleArn": "arn:aws:iam::123456789012:role/batches",
        "modelId": MODEL,
        "modelInvocationType": "Converse",
        "inputDataConfig": {"s3InputDataConfig": {"s3Uri": f"s3://{BUCKET}/{key}"}},
        "outputDataConfig": {"s3OutputDataConfig": {"s3Uri": f"s3://{BUCKET}/{folder}/out/"}},
    }
    arn: str = connect("bedrock").create_model_invocation_job(**{**job, **options})["jobArn"]
    return arn


def wait_for_end(connect: Connect, arn: str) -> dict[str, Any]:
    """Wait for the end of a job."""
    client = connect("bedrock")
    for _ in range(2_000):
        job: dict[str, Any] = client.get_model_invocation_job(jobIdentifier=arn)
        if job["status"] in ENDED:
            return job
    raise AssertionError("the job never ends")


def read_output(connect: Connect, folder: str, arn: str) -> tuple[list[dict[str, Any]], Any]:
    """Read the answers of a job, and its summary."""
    s3, prefix = connect("s3"), f"{folder}/out/{arn.rpartition('/')[2]}/"
    listed = s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix)["Contents"]
    names = [entry["Key"].removeprefix(prefix) for entry in listed]
    assert names == ["manifest.json.out", "rows.jsonl.out"]
    texts = [
        s3.get_object(Bucket=BUCKET, Key=prefix + name)["Body"].read().decode() for name in names
    ]
    return [json.loads(line) for line in texts[1].splitlines()], json.loads(texts[0])


def list_items(cloud_url: str, arn: str) -> list[dict[str, Any]]:
    """List the logged calls of a job's records."""
    calls = httpx.get(f"{cloud_url}/_sandbox/calls").json()["calls"]
    id = arn.rpartition("/")[2]
    return [call for call in calls if call["batch_id"] == id and call["custom_id"]]


def test_answers_records_as_single_calls(cloud_url: str, connect: Connect, order: Order) -> None:
    """Given a job, then the output has the answer of a single call for each record."""
    order("aws-bedrock", path_contains="model-invocation-job", batch_s=0)
    order("aws", custom_id_contains="row00000007", status=429)
    records = build_records(100)
    arn = submit(connect, records, "answers")
    job = wait_for_end(connect, arn)
    assert (job["status"], job["modelInvocationType"]) == ("Completed", "Converse")
    lines, summary = read_output(connect, "answers", arn)
    assert [line["recordId"] for line in lines] != [record["recordId"] for record in records]
    by_id = {line["recordId"]: line for line in lines}
    assert {id: line["modelInput"] for id, line in by_id.items()} == {
        record["recordId"]: record["modelInput"] for record in records
    }
    assert by_id.pop("row00000007")["error"]["errorCode"] == 429
    runtime = connect("bedrock-runtime")
    for record in records[:3]:
        single = runtime.converse(modelId=MODEL, **record["modelInput"])
        answer = by_id[record["recordId"]]["modelOutput"]
        assert (answer["output"], answer["usage"]) == (single["output"], single["usage"])
    total = sum(line["modelOutput"]["usage"]["outputTokens"] for line in by_id.values())
    assert (summary["outputTokenCount"], summary["errorRecordCount"]) == (total, 1)
    items = list_items(cloud_url, arn)
    assert (len(items), sum(call["billed"] for call in items)) == (100, 99)
    bedrock = connect("bedrock")
    with pytest.raises(bedrock.exceptions.ConflictException):
        bedrock.stop_model_invocation_job(jobIdentifier=arn)


def test_invokes_a_model_by_its_own_body(connect: Connect, order: Order) -> None:
    """Given a job of the type `InvokeModel`, then each record has the vector of a single call."""
    order("aws-bedrock", path_contains="model-invocation-job", batch_s=0)
    model = "amazon.titan-embed-text-v2:0"
    records = [
        {"recordId": f"row{number:08}", "modelInput": {"inputText": f"Row {number}"}}
        for number in range(100)
    ]
    arn = submit(connect, records, "invoke", modelId=model, modelInvocationType="InvokeModel")
    assert wait_for_end(connect, arn)["status"] == "Completed"
    lines, _ = read_output(connect, "invoke", arn)
    body = json.dumps(lines[0]["modelInput"])
    single = connect("bedrock-runtime").invoke_model(modelId=model, body=body)
    assert lines[0]["modelOutput"] == json.loads(single["body"].read())


def test_refuses_tools_in_records(connect: Connect, order: Order) -> None:
    """Given a record with tools, as a single call may have, then its line is an error."""
    order("aws-bedrock", path_contains="model-invocation-job", batch_s=0)
    spec = {"name": "find", "description": "Find.", "inputSchema": {"json": {"type": "object"}}}
    tools = {"toolConfig": {"tools": [{"toolSpec": spec}]}}
    records = build_records(100)
    records[0]["modelInput"] |= tools
    arn = submit(connect, records, "tools")
    assert wait_for_end(connect, arn)["errorRecordCount"] == 1
    lines, _ = read_output(connect, "tools", arn)
    (failed,) = [line for line in lines if "error" in line]
    assert (failed["recordId"], failed["error"]["errorCode"]) == (records[0]["recordId"], 400)
    assert connect("bedrock-runtime").converse(modelId=MODEL, **records[0]["modelInput"])["output"]


def test_same_token_submits_one_job(connect: Connect) -> None:
    """Given the same client request token twice, then there is one job, found by its name."""
    start = datetime.now(UTC)
    token = {"clientRequestToken": "token1", "jobName": "map-token1"}
    arns = {submit(connect, build_records(100), "token", **token) for _ in range(2)}
    client = connect("bedrock")
    listed = client.list_model_invocation_jobs(
        nameContains="token1", submitTimeAfter=start - timedelta(seconds=2)
    )
    assert {job["jobArn"] for job in listed["invocationJobSummaries"]} == arns
    assert len(arns) == 1
    later = client.list_model_invocation_jobs(submitTimeAfter=start + timedelta(hours=1))
    assert later["invocationJobSummaries"] == []
    assert len(client.list_model_invocation_jobs(maxResults=1)["invocationJobSummaries"]) == 1


def test_stops_a_job(cloud_url: str, connect: Connect, order: Order) -> None:
    """Given a long job that is stopped, then no record is billed."""
    order("aws-bedrock", path_contains="model-invocation-job", batch_s=3_600)
    arn = submit(connect, build_records(100), "stop")
    client = connect("bedrock")
    client.stop_model_invocation_job(jobIdentifier=arn)
    job = wait_for_end(connect, arn)
    assert (job["status"], job["processedRecordCount"]) == ("Stopped", 0)
    assert list_items(cloud_url, arn) == []


def test_answers_a_part_of_a_job_that_times_out(connect: Connect, order: Order) -> None:
    """Given a job that times out halfway, then its output has half of the records."""
    times = {"batch_s": 0.02, "batch_expiry_s": 0.01}
    order("aws-bedrock", path_contains="model-invocation-job", **times)
    arn = submit(connect, build_records(100), "late")
    assert wait_for_end(connect, arn)["status"] == "PartiallyCompleted"
    lines, summary = read_output(connect, "late", arn)
    assert len(lines) == summary["processedRecordCount"] == 50


@pytest.mark.parametrize(
    ("records", "words"),
    [
        (build_records(99), "minimum of 100"),
        ([*build_records(100), "{no JSON"], "Line 101"),
        ([*build_records(100), {"recordId": "a"}], "Line 101"),
    ],
    ids=["few", "no JSON", "no input"],
)
def test_fails_a_job_of_invalid_records(
    connect: Connect, order: Order, records: list[Any], words: str
) -> None:
    """Given a file that breaks a documented rule, then the job fails with a message."""
    order("aws-bedrock", path_contains="model-invocation-job", batch_s=0)
    job = wait_for_end(connect, submit(connect, records, "invalid"))
    assert job["status"] == "Failed"
    assert words in job["message"]


@pytest.mark.parametrize(
    "options",
    [
        {"modelId": "amazon.unknown-v1:0"},
        {"modelInvocationType": "InvokeModel"},
        {"roleArn": "arn:aws:iam::123456789012:user/a"},
        {"jobName": "a b"},
        {"outputDataConfig": {"s3OutputDataConfig": {"s3Uri": "s3://other-bucket/out/"}}},
    ],
)
def test_refuses_an_invalid_job(connect: Connect, options: dict[str, Any]) -> None:
    """Given a job that breaks a documented rule, then its submission is refused."""
    client = connect("bedrock")
    with pytest.raises(client.exceptions.ClientError, match="ValidationException"):
        submit(connect, build_records(100), "refused", **options)


@pytest.mark.parametrize("name", ["plain.txt", "a b+c=d&e%25~f", "ä/ö//ü.jsonl"])
def test_objects_have_any_name(connect: Connect, name: str) -> None:
    """Given a name of an object in any spelling, then it is stored, listed and deleted."""
    s3, key = connect("s3"), f"names/{name}"
    s3.put_object(Bucket=BUCKET, Key=key, Body=b"data")
    assert s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == b"data"
    listed = s3.list_objects_v2(Bucket=BUCKET, Prefix="names/")
    assert [entry["Key"] for entry in listed["Contents"]] == [key]
    s3.delete_object(Bucket=BUCKET, Key=key)
    with pytest.raises(s3.exceptions.NoSuchKey):
        s3.get_object(Bucket=BUCKET, Key=key)


def test_objects_are_listed_in_pages(connect: Connect) -> None:
    """Given more objects than a page holds, then the pages list each of them once."""
    s3 = connect("s3")
    for number in range(5):
        s3.put_object(Bucket=BUCKET, Key=f"pages/{number}", Body=b"")
    pages = s3.get_paginator("list_objects_v2").paginate(
        Bucket=BUCKET, Prefix="pages/", PaginationConfig={"PageSize": 2}
    )
    keys = [entry["Key"] for page in pages for entry in page["Contents"]]
    assert keys == [f"pages/{number}" for number in range(5)]


def test_objects_need_a_signature_and_their_bucket(cloud_url: str, connect: Connect) -> None:
    """Given a wrong secret, no signature or another bucket, then S3 refuses the call."""
    s3 = connect("s3", secret="other")
    with pytest.raises(s3.exceptions.ClientError, match="SignatureDoesNotMatch"):
        s3.list_objects_v2(Bucket=BUCKET)
    answer = httpx.get(f"{cloud_url}/aws-s3/{BUCKET}/{quote('a b')}")
    assert (answer.status_code, "AccessDenied" in answer.text) == (403, True)
    with pytest.raises(s3.exceptions.NoSuchBucket):
        connect("s3").get_object(Bucket="other-bucket", Key="a")
