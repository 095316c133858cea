"""Batches of OpenAI and Anthropic, by the vendors' SDKs and their types."""

import json
from typing import Any

import httpx
import pytest

from tests.sdk.conftest import Calls, Order, poll, skip_without
from tests.sdk.published_schemas import read_as
from toolkit.sandbox import SANDBOX_KEYS

TOPICS = ["tides", "bread", "jazz", "tea"]


# OpenAI


@pytest.fixture
def openai_client(cloud_url: str) -> Any:
    """The client of OpenAI."""
    import openai

    key = SANDBOX_KEYS["OPENAI_API_KEY"]
    return openai.OpenAI(base_url=f"{cloud_url}/openai/v1", api_key=key, max_retries=0)


def build_line(custom_id: str, topic: str, **change: Any) -> dict[str, Any]:
    """Build a line of a file for OpenAI; changes of `body` are changes of its members."""
    messages = [{"role": "user", "content": f"Write a sentence about {topic}."}]
    body = {"model": "gpt-6-luna", "messages": messages, **change.pop("body", {})}
    line = {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}
    return line | change


LINES = [build_line(f"row-{topic}", topic) for topic in TOPICS]


def create_openai_batch(client: Any, lines: list[Any], **options: Any) -> Any:
    """Upload lines and create their batch."""
    data = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    file = client.files.create(file=("rows.jsonl", data.encode()), purpose="batch")
    settings = {"endpoint": "/v1/chat/completions", "completion_window": "24h"}
    return client.batches.create(input_file_id=file.id, **{**settings, **options})


def wait_for_openai(client: Any, batch: Any) -> Any:
    """Wait for the end of a batch."""
    ended = ("completed", "failed", "expired", "cancelled")
    return poll(lambda: client.batches.retrieve(batch.id), lambda b: b.status in ended)


def read_lines(client: Any, file_id: str | None) -> list[dict[str, Any]]:
    """Read a file of answers."""
    assert file_id is not None
    return [json.loads(line) for line in client.files.content(file_id).text.splitlines()]


@skip_without("openai")
def test_openai_answers_lines_as_single_calls(
    openai_client: Any, order: Order, logged: Calls
) -> None:
    """Given a batch, then each line has the answer of a single call, in another order."""
    order("openai", path_contains="/batches", batch_s=0)
    batch = create_openai_batch(openai_client, LINES, metadata={"map": "map_1"})
    ended = wait_for_openai(openai_client, batch)
    assert ended.metadata == {"map": "map_1"}
    assert ended.error_file_id is None
    answers = read_lines(openai_client, ended.output_file_id)
    custom_ids = [line["custom_id"] for line in LINES]
    assert sorted(answer["custom_id"] for answer in answers) == sorted(custom_ids)
    assert [answer["custom_id"] for answer in answers] != custom_ids
    for answer in answers:
        assert answer["error"] is None
        assert answer["response"]["status_code"] == 200
        body = answer["response"]["body"]
        read_as("openai.types.chat.ChatCompletion", json.dumps(body))
        (line,) = [line for line in LINES if line["custom_id"] == answer["custom_id"]]
        single = openai_client.chat.completions.create(**line["body"])
        assert body["choices"][0]["message"]["content"] == single.choices[0].message.content
        assert body["usage"] == single.usage.to_dict() | {
            "prompt_tokens_details": body["usage"]["prompt_tokens_details"]
        }
    items = logged(batch.id, are_items=True)
    assert sorted(call["custom_id"] for call in items) == sorted(custom_ids)
    assert all(call["billed"] and call["path"] == "/v1/chat/completions" for call in items)
    (creation,) = logged(batch.id, are_items=False)
    assert (creation["path"], creation["billed"]) == ("/v1/batches", False)


@skip_without("openai")
def test_openai_answers_lines_of_embeddings(openai_client: Any, order: Order) -> None:
    """Given a batch of embeddings, then each line has the vector of a single call."""
    order("openai", path_contains="/batches", batch_s=0)
    bodies = [{"model": "text-embedding-3-small", "input": topic} for topic in TOPICS]
    url = "/v1/embeddings"
    lines = [build_line(body["input"], "", url=url) | {"body": body} for body in bodies]
    batch = create_openai_batch(openai_client, lines, endpoint=url)
    ended = wait_for_openai(openai_client, batch)
    answers = read_lines(openai_client, ended.output_file_id)
    vectors = {
        line["custom_id"]: line["response"]["body"]["data"][0]["embedding"] for line in answers
    }
    for body in bodies:
        single = openai_client.embeddings.create(**body, encoding_format="float")
        assert vectors[body["input"]] == single.data[0].embedding


@skip_without("openai")
def test_openai_objects_have_the_published_types(openai_client: Any, order: Order) -> None:
    """Given files and batches at any stage, then each answer has the SDK's type."""
    order("openai", path_contains="/batches", batch_s=0.05)
    raw = openai_client.files.with_raw_response.create(
        file=("rows.jsonl", json.dumps(LINES[0]).encode()), purpose="batch"
    )
    read_as("openai.types.FileObject", raw.text)
    file_id = raw.parse().id
    read_as("openai.types.FileObject", openai_client.files.with_raw_response.retrieve(file_id).text)
    settings = {"endpoint": "/v1/chat/completions", "completion_window": "24h"}
    raw = openai_client.batches.with_raw_response.create(input_file_id=file_id, **settings)
    stages = {}
    for _ in range(5_000):
        read_as("openai.types.Batch", raw.text)
        batch = raw.parse()
        stages[batch.status] = batch.request_counts.total
        if batch.status == "completed":
            break
        raw = openai_client.batches.with_raw_response.retrieve(batch.id)
    assert list(stages) == ["validating", "in_progress", "completed"]
    assert stages["validating"] == 0
    deleted = openai_client.files.delete(file_id)
    assert deleted.deleted


@skip_without("openai")
def test_openai_lists_batches_in_pages(openai_client: Any) -> None:
    """Given several batches, then pages list all of them, the newest first."""
    created = [create_openai_batch(openai_client, LINES[:1]).id for _ in range(5)]
    page = openai_client.batches.list(limit=2)
    assert len(page.data) == 2
    assert page.has_more
    listed = [batch.id for batch in page]  # the SDK follows the pages
    assert [id for id in listed if id in created] == created[::-1]
    assert len(listed) == len(set(listed))


@skip_without("openai")
def test_openai_cancels_a_batch(openai_client: Any, order: Order, logged: Calls) -> None:
    """Given a long batch that is cancelled, then its lines are errors and none is billed."""
    order("openai", path_contains="/batches", batch_s=3_600)
    batch = create_openai_batch(openai_client, LINES)
    assert openai_client.batches.cancel(batch.id).status == "cancelling"
    ended = wait_for_openai(openai_client, batch)
    assert (ended.status, ended.output_file_id) == ("cancelled", None)
    assert {line["error"]["code"] for line in read_lines(openai_client, ended.error_file_id)} == {
        "batch_cancelled"
    }
    assert logged(batch.id, are_items=True) == []
    assert openai_client.batches.cancel(batch.id).status == "cancelled"


@skip_without("openai")
def test_openai_expires_the_lines_that_are_too_late(
    openai_client: Any, order: Order, logged: Calls
) -> None:
    """Given a batch that expires halfway, then half of its lines are answered and billed."""
    order("openai", path_contains="/batches", batch_s=0.02, batch_expiry_s=0.01)
    batch = create_openai_batch(openai_client, LINES)
    ended = wait_for_openai(openai_client, batch)
    assert ended.status == "expired"
    answered = read_lines(openai_client, ended.output_file_id)
    expired = read_lines(openai_client, ended.error_file_id)
    assert [line["error"]["code"] for line in expired] == ["batch_expired"] * 2
    assert all(line["response"] is None for line in expired)
    assert len(answered) == len(logged(batch.id, are_items=True)) == 2
    counts = ended.request_counts
    assert (counts.total, counts.completed, counts.failed) == (4, 2, 0)


@skip_without("openai")
def test_openai_reports_failed_lines_in_the_file_of_errors(
    openai_client: Any, order: Order, logged: Calls
) -> None:
    """Given a fault for a line and a line that is refused, then only these are errors."""
    import openai

    order("openai", path_contains="/batches", batch_s=0)
    order("openai", custom_id_contains="row-jazz", status=429)
    lines = [*LINES, build_line("row-hot", "tea", body={"temperature": 0.5})]
    ended = wait_for_openai(openai_client, batch := create_openai_batch(openai_client, lines))
    assert ended.status == "completed"
    with pytest.raises(openai.ConflictError):
        openai_client.batches.cancel(batch.id)
    errors = read_lines(openai_client, ended.error_file_id)
    assert {line["custom_id"]: line["response"]["status_code"] for line in errors} == {
        "row-jazz": 429,
        "row-hot": 400,
    }
    assert all(line["response"]["body"]["error"]["message"] for line in errors)
    assert len(read_lines(openai_client, ended.output_file_id)) == 3
    unbilled = [c["custom_id"] for c in logged(batch.id, are_items=True) if not c["billed"]]
    assert sorted(unbilled) == ["row-hot", "row-jazz"]


@skip_without("openai")
@pytest.mark.parametrize(
    ("lines", "code", "number"),
    [
        ([LINES[0], "{no JSON"], "invalid_json_line", 2),
        ([LINES[0], build_line("row-tides", "bread")], "duplicate_custom_id", 2),
        ([LINES[0], build_line("b", "tea", url="/v1/embeddings")], "url_mismatch", 2),
        ([build_line("a", "tea", body={"model": "gpt-0"})], "model_not_found", 1),
        ([LINES[0], build_line("b", "tea", body={"model": "gpt-4o"})], "model_mismatch", 2),
        ([{"custom_id": "a", "body": {}}], "missing_required_parameter", 1),
        ([build_line("a", "tea", body={"stream": True})], "invalid_request", 1),
        ([""], "empty_file", None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_openai_fails_a_batch_of_invalid_lines(
    openai_client: Any, order: Order, lines: list[Any], code: str, number: int | None
) -> None:
    """Given a file that the vendor cannot accept, then the batch fails and names the line."""
    order("openai", path_contains="/batches", batch_s=0)
    ended = wait_for_openai(openai_client, create_openai_batch(openai_client, lines))
    assert ended.status == "failed"
    assert (code, number) in [(error.code, error.line) for error in ended.errors.data]
    assert ended.output_file_id is None


@skip_without("openai")
@pytest.mark.parametrize(
    "options",
    [
        {"endpoint": "/v1/unknown"},
        {"completion_window": "1h"},
        {"metadata": {"key": "x" * 513}},
        {"metadata": {str(number): "" for number in range(17)}},
        {"extra_body": {"surprise": 1}},
        {"extra_body": {"input_file_id": "file-0"}},
    ],
)
def test_openai_refuses_an_invalid_batch(openai_client: Any, options: dict[str, Any]) -> None:
    """Given a batch that breaks a documented rule, then its creation is refused."""
    import openai

    with pytest.raises(openai.BadRequestError):
        create_openai_batch(openai_client, LINES, **options)


@skip_without("openai")
def test_openai_batch_endpoints_have_faults(openai_client: Any, order: Order) -> None:
    """Given a fault for the creation, then it is refused and nothing is listed."""
    import openai

    count = len(list(openai_client.batches.list(limit=100)))
    order("openai", path_contains="/batches", status=429)
    with pytest.raises(openai.RateLimitError):
        create_openai_batch(openai_client, LINES)
    assert len(list(openai_client.batches.list(limit=100))) == count
    with pytest.raises(openai.NotFoundError):
        openai_client.batches.retrieve("batch_unknown")
    with pytest.raises(openai.NotFoundError):
        openai_client.files.content("file-unknown")


# Anthropic


@pytest.fixture
def anthropic_client(cloud_url: str) -> Any:
    """The client of Anthropic."""
    import anthropic

    key = SANDBOX_KEYS["ANTHROPIC_API_KEY"]
    return anthropic.Anthropic(base_url=f"{cloud_url}/anthropic", api_key=key, max_retries=0)


def build_request(custom_id: str, topic: str, **change: Any) -> dict[str, Any]:
    """Build a request of a batch for Anthropic."""
    messages = [{"role": "user", "content": f"Write a sentence about {topic}."}]
    params = {"model": "claude-haiku-5-5", "max_tokens": 200, "messages": messages, **change}
    return {"custom_id": custom_id, "params": params}


REQUESTS = [build_request(f"row_{topic}", topic) for topic in TOPICS]


def wait_for_anthropic(client: Any, batch: Any) -> Any:
    """Wait for the end of a batch."""
    return poll(
        lambda: client.messages.batches.retrieve(batch.id),
        lambda found: found.processing_status == "ended",
    )


@skip_without("anthropic")
def test_anthropic_answers_requests_as_single_calls(
    anthropic_client: Any, order: Order, logged: Calls
) -> None:
    """Given a batch, then each request has the answer of a single call, at the batch tier."""
    order("anthropic", path_contains="/batches", batch_s=0)
    order("anthropic", custom_id_contains="row_jazz", status=500)
    requests = [*REQUESTS, build_request("row_stream", "tea", stream=True)]
    batch = anthropic_client.messages.batches.create(requests=requests)
    assert batch.request_counts.processing == 5
    ended = wait_for_anthropic(anthropic_client, batch)
    counts = ended.request_counts
    assert (counts.succeeded, counts.errored, counts.processing) == (3, 2, 0)
    results = {r.custom_id: r.result for r in anthropic_client.messages.batches.results(batch.id)}
    assert list(results) != [request["custom_id"] for request in requests]
    assert results["row_jazz"].error.error.type == "api_error"
    assert results["row_stream"].error.error.type == "invalid_request_error"
    for request in (request for request in REQUESTS if request["custom_id"] != "row_jazz"):
        message = results[request["custom_id"]].message
        assert message.usage.service_tier == "batch"
        single = anthropic_client.messages.create(**request["params"])
        assert (message.content, single.usage.service_tier) == (single.content, "standard")
    items = logged(batch.id, are_items=True)
    assert sorted(call["custom_id"] for call in items if call["billed"]) == sorted(
        custom_id for custom_id, result in results.items() if result.type == "succeeded"
    )
    assert len(logged(batch.id, are_items=False)) == 1


@skip_without("anthropic")
def test_anthropic_objects_have_the_published_types(anthropic_client: Any, order: Order) -> None:
    """Given a batch at any stage and its results, then each has the SDK's type."""
    order("anthropic", path_contains="/batches", batch_s=0.01, batch_expiry_s=0.005)
    raw_batches = anthropic_client.messages.batches.with_raw_response
    raw = raw_batches.create(requests=REQUESTS)
    while raw.parse().processing_status != "ended":
        read_as("anthropic.types.messages.MessageBatch", raw.text())
        raw = raw_batches.retrieve(raw.parse().id)
    read_as("anthropic.types.messages.MessageBatch", raw.text())
    batch = raw.parse()
    headers = {"x-api-key": SANDBOX_KEYS["ANTHROPIC_API_KEY"], "anthropic-version": "2023-06-01"}
    results = httpx.get(batch.results_url, headers=headers).text.splitlines()
    for line in results:
        read_as("anthropic.types.messages.MessageBatchIndividualResponse", line)
    kinds = sorted(json.loads(line)["result"]["type"] for line in results)
    assert kinds == ["expired", "expired", "succeeded", "succeeded"]
    assert anthropic_client.messages.batches.delete(batch.id).type == "message_batch_deleted"


@skip_without("anthropic")
def test_anthropic_cancels_and_lists_batches(
    anthropic_client: Any, order: Order, logged: Calls
) -> None:
    """Given a long batch that is cancelled, then its requests are, and pages list it."""
    import anthropic

    batches = anthropic_client.messages.batches
    order("anthropic", path_contains="/batches", batch_s=3_600)
    batch = batches.create(requests=REQUESTS)
    for refused in (batches.results, batches.delete):
        with pytest.raises((anthropic.BadRequestError, anthropic.AnthropicError)):
            refused(batch.id)
    assert batches.cancel(batch.id).processing_status == "canceling"
    ended = wait_for_anthropic(anthropic_client, batch)
    assert ended.request_counts.canceled == len(REQUESTS)
    assert {entry.result.type for entry in batches.results(batch.id)} == {"canceled"}
    assert logged(batch.id, are_items=True) == []
    later = [batches.create(requests=REQUESTS[:1]).id for _ in range(3)]
    assert [found.id for found in batches.list(limit=2)][:4] == [*later[::-1], batch.id]
    assert [found.id for found in batches.list(before_id=batch.id, limit=3).data] == later[::-1]


@skip_without("anthropic")
@pytest.mark.parametrize(
    "requests",
    [
        [],
        [build_request("a b", "tea")],
        [build_request("a" * 65, "tea")],
        [REQUESTS[0], REQUESTS[0]],
        [REQUESTS[0] | {"metadata": {}}],
        [{"custom_id": "a"}],
    ],
)
def test_anthropic_refuses_an_invalid_batch(anthropic_client: Any, requests: Any) -> None:
    """Given a batch that breaks a documented rule, then its creation is refused."""
    import anthropic

    with pytest.raises(anthropic.BadRequestError):
        anthropic_client.messages.batches.create(requests=requests)
