"""Batches of Google and Mistral, by the vendors' SDKs and their types."""

import json
from typing import Any

import pytest

from tests.sdk.conftest import Calls, Order, poll, skip_without
from toolkit.sandbox import SANDBOX_KEYS

TOPICS = ["tides", "bread", "jazz", "tea"]


# Google


@pytest.fixture
def google_client(cloud_url: str) -> Any:
    """The client of Google."""
    from google import genai

    options = genai.types.HttpOptions(base_url=f"{cloud_url}/google")
    return genai.Client(api_key=SANDBOX_KEYS["GEMINI_API_KEY"], http_options=options)


def build_inlined(key: str, topic: str, **config: Any) -> dict[str, Any]:
    """Build a request of a batch for Google."""
    text = f"Write a sentence about {topic}."
    request = {"contents": [{"role": "user", "parts": [{"text": text}]}], "metadata": {"key": key}}
    return {**request, "config": config}


GEMINI = "gemini-3.8-flash"
INLINED = [build_inlined(f"row-{topic}", topic, max_output_tokens=100) for topic in TOPICS]


def wait_for_google(client: Any, job: Any) -> Any:
    """Wait for the end of a batch."""
    return poll(lambda: client.batches.get(name=job.name), lambda found: bool(found.done))


@skip_without("google.genai")
def test_google_answers_requests_as_single_calls(
    google_client: Any, order: Order, logged: Calls
) -> None:
    """Given inlined requests, then each has the answer of a single call, in the same order."""
    from google.genai import errors

    order("google", path_contains=":batchGenerateContent", batch_s=0)
    order("google", custom_id_contains="row-jazz", status=503)
    config = {"display_name": "map_1"}
    job = google_client.batches.create(model=GEMINI, src=INLINED, config=config)
    ended = wait_for_google(google_client, job)
    assert (ended.state.name, ended.display_name) == ("JOB_STATE_SUCCEEDED", "map_1")
    answers = ended.dest.inlined_responses
    assert [answer.metadata for answer in answers] == [each["metadata"] for each in INLINED]
    for answer, each in zip(answers, INLINED, strict=True):
        if each["metadata"]["key"] == "row-jazz":
            assert (answer.response, answer.error.code) == (None, 14)  # UNAVAILABLE
            continue
        single = google_client.models.generate_content(
            model=GEMINI, contents=each["contents"], config=each["config"]
        )
        assert answer.response.text == single.text
        assert answer.response.usage_metadata == single.usage_metadata
    items = logged(job.name.removeprefix("batches/"), are_items=True)
    assert {call["custom_id"]: call["billed"] for call in items} == {
        f"row-{topic}": topic != "jazz" for topic in TOPICS
    }
    assert job.name in [found.name for found in google_client.batches.list()]
    with pytest.raises(errors.ClientError, match="400"):
        google_client.batches.cancel(name=job.name)


@skip_without("google.genai")
def test_google_cancels_a_batch(google_client: Any, order: Order, logged: Calls) -> None:
    """Given a long batch that is cancelled, then it has no output and nothing is billed."""
    order("google", path_contains=":batchGenerateContent", batch_s=3_600)
    job = google_client.batches.create(model=GEMINI, src=INLINED)
    assert job.state.name == "JOB_STATE_PENDING"
    google_client.batches.cancel(name=job.name)
    ended = wait_for_google(google_client, job)
    assert (ended.state.name, ended.dest) == ("JOB_STATE_CANCELLED", None)
    assert logged(job.name.removeprefix("batches/"), are_items=True) == []


@skip_without("google.genai")
def test_google_lists_pages_and_refuses_invalid_batches(google_client: Any) -> None:
    """Given several batches, then pages list them; an unknown model or name is refused."""
    from google.genai import errors

    names = [google_client.batches.create(model=GEMINI, src=INLINED[:1]).name for _ in range(3)]
    listed = [job.name for job in google_client.batches.list(config={"page_size": 2})]
    assert listed[:3] == names[::-1]
    with pytest.raises(errors.ClientError, match="404"):
        google_client.batches.create(model="gemini-0", src=INLINED)
    with pytest.raises(errors.ClientError, match="404"):
        google_client.batches.get(name="batches/unknown")
    with pytest.raises(errors.ClientError, match="400"):
        google_client.batches.create(model=GEMINI, src=[])


# Mistral


@pytest.fixture
def mistral_client(cloud_url: str) -> Any:
    """The client of Mistral."""
    from mistralai.client import Mistral

    return Mistral(api_key="sandbox-key-mistra", server_url=f"{cloud_url}/mistral")


def create_mistral_job(client: Any, lines: list[Any], **options: Any) -> Any:
    """Upload lines and create their job."""
    data = "\n".join(json.dumps(line) for line in lines).encode()
    content = {"file_name": "rows.jsonl", "content": data}
    file = client.files.upload(file=content, purpose="batch")
    settings = {"endpoint": "/v1/chat/completions", "model": "mistral-small-2603"}
    return client.batch.jobs.create(input_files=[file.id], **{**settings, **options})


def wait_for_mistral(client: Any, job: Any) -> Any:
    """Wait for the end of a job."""
    ended = ("SUCCESS", "FAILED", "TIMEOUT_EXCEEDED", "CANCELLED")
    return poll(lambda: client.batch.jobs.get(job_id=job.id), lambda found: found.status in ended)


def read_mistral_lines(client: Any, file_id: str) -> list[dict[str, Any]]:
    """Read a file of answers."""
    text = client.files.download(file_id=file_id).read().decode()
    return [json.loads(line) for line in text.splitlines()]


MISTRAL_LINES = [
    {
        "custom_id": f"row-{topic}",
        "body": {"messages": [{"role": "user", "content": f"Write a sentence about {topic}."}]},
    }
    for topic in TOPICS
]


@skip_without("mistralai")
def test_mistral_answers_lines_as_single_calls(
    mistral_client: Any, order: Order, logged: Calls
) -> None:
    """Given a job, then each line has the answer of a single call; faulty lines are apart."""
    order("mistral", path_contains="/batch/jobs", batch_s=0)
    order("mistral", custom_id_contains="row-jazz", status=500)
    job = create_mistral_job(mistral_client, MISTRAL_LINES, metadata={"map_id": "map 1"})
    ended = wait_for_mistral(mistral_client, job)
    assert (ended.status, ended.succeeded_requests, ended.failed_requests) == ("SUCCESS", 3, 1)
    answers = read_mistral_lines(mistral_client, ended.output_file)
    for answer in answers:
        (line,) = [each for each in MISTRAL_LINES if each["custom_id"] == answer["custom_id"]]
        single = mistral_client.chat.complete(model="mistral-small-2603", **line["body"])
        content = answer["response"]["body"]["choices"][0]["message"]["content"]
        assert content == single.choices[0].message.content
    (failed,) = read_mistral_lines(mistral_client, ended.error_file)
    assert (failed["custom_id"], failed["response"]["status_code"]) == ("row-jazz", 500)
    items = logged(job.id, are_items=True)
    assert sorted(call["custom_id"] for call in items if call["billed"]) == sorted(
        answer["custom_id"] for answer in answers
    )
    assert len(logged(job.id, are_items=False)) == 1
    mistral_client.files.delete(file_id=ended.output_file)


@skip_without("mistralai")
def test_mistral_lists_jobs_by_metadata_and_cancels(
    mistral_client: Any, order: Order, logged: Calls
) -> None:
    """Given jobs with metadata, then a filter finds one of them, which is then cancelled."""
    jobs = mistral_client.batch.jobs
    for number in range(2):
        order("mistral", path_contains="/batch/jobs", batch_s=3_600)
        metadata = {"map_id": f"map_{number}", "part": "a b"}
        created = create_mistral_job(mistral_client, MISTRAL_LINES, metadata=metadata)
    assert created.status == "QUEUED"
    assert [job.id for job in jobs.list(metadata=metadata).data] == [created.id]
    assert jobs.list(metadata={"map_id": "unknown"}).total == 0
    assert created.id in [job.id for job in jobs.list(status=["QUEUED"], page_size=5).data]
    assert jobs.cancel(job_id=created.id).status == "CANCELLATION_REQUESTED"
    assert wait_for_mistral(mistral_client, created).status == "CANCELLED"
    assert logged(created.id, are_items=True) == []


@skip_without("mistralai")
@pytest.mark.parametrize(
    "options", [{"model": "mistral-0"}, {"endpoint": "/v1/ocr"}, {"timeout_hours": 0}]
)
def test_mistral_refuses_an_invalid_job(mistral_client: Any, options: dict[str, Any]) -> None:
    """Given a job that breaks a rule, then it is refused."""
    from mistralai.client import errors

    with pytest.raises(errors.MistralError) as refusal:
        create_mistral_job(mistral_client, MISTRAL_LINES, **options)
    assert refusal.value.status_code in (400, 422)


@skip_without("mistralai")
@pytest.mark.parametrize(
    ("lines", "options"),
    [
        ([MISTRAL_LINES[0], MISTRAL_LINES[0]], {}),
        ([{"custom_id": "a"}], {}),
        ([{"custom_id": "a", "body": {"stream": True}}], {}),
        (MISTRAL_LINES, {"model": None}),
    ],
    ids=["same id", "no body", "stream", "no model"],
)
def test_mistral_fails_a_job_of_invalid_lines(
    mistral_client: Any, order: Order, lines: list[Any], options: dict[str, Any]
) -> None:
    """Given a file that breaks a rule, then the job fails with a message."""
    order("mistral", path_contains="/batch/jobs", batch_s=0)
    ended = wait_for_mistral(mistral_client, create_mistral_job(mistral_client, lines, **options))
    assert ended.status == "FAILED"
    assert ended.errors[0].message
