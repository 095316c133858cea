"""Maps with `when="batch"`: their rows become batches of the vendors, at half the price."""

import json
from decimal import Decimal
from typing import Any

import pandas as pd
import pytest

from tests.support.timing import wait_until
from toolkit import Client, RequestError
from toolkit.sandbox import Fault, Faults
from toolkit.sandbox.faults import Mangle
from toolkit.settings import Settings

pytestmark = pytest.mark.embedded
TOPICS = ["tides", "bread", "jazz", "tea"]
FOUR_WIRES = ("openai", "anthropic", "google", "mistral")


@pytest.fixture
def faults() -> Faults:
    """The faults of a sandbox whose batches end at once."""
    faults = Faults(seed=1)
    faults.batch_time("*", lasts_s=0.1)
    return faults


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings by which a batch that is not listed is soon taken for not submitted."""
    return settings.model_copy(update={"batch_grace_s": 0.3})


def label(client: Client, provider: str = "openai", **changes: Any) -> pd.DataFrame:
    """Ask about each topic, by a batch unless the options say otherwise."""
    options = {"provider": provider, "when": "batch", **changes.pop("options", {})}
    arguments = {"objective": "A sentence about {topic}", "max_tokens": 60, **changes}
    rows = [{"topic": topic} for topic in arguments.pop("topics", TOPICS)]
    return client.map("llm.generate", rows, options=options, progress=False, **arguments)


def list_batches(faults: Faults) -> list[str]:
    """List the batches that the vendors have created, by their ids."""
    return [call.batch_id for call in faults.calls if call.batch_id and not call.custom_id]


def list_items(faults: Faults) -> list[str]:
    """List the items that the vendors have billed, by their ids."""
    return [call.custom_id for call in faults.calls if call.custom_id and call.billed]


@pytest.mark.parametrize("provider", FOUR_WIRES)
def test_each_row_has_the_answer_of_a_call_at_half_the_price(
    client: Client, faults: Faults, provider: str
) -> None:
    """Given the same rows in a batch and at once, then texts are equal and the cost is half."""
    client.connections.connect(provider)
    batched = label(client, provider)
    assert len(list_batches(faults)) == 1
    assert len(list_items(faults)) == len(TOPICS)
    at_once = label(client, provider, options={"when": "now", "cache": False})

    assert list(batched["status"]) == ["completed"] * len(TOPICS)
    assert list(batched["text"]) == list(at_once["text"])
    paid = [Decimal(str(cost)) for cost in batched["cost_usd"]]
    assert paid == [Decimal(str(cost)) / 2 for cost in at_once["cost_usd"]]
    record = client.maps.get(batched.attrs["map"])
    assert Decimal(str(record.cost_incurred_usd)) == sum(paid)
    assert {client.jobs.get(id).tier for id in batched["job_id"]} == {"batch"}


def test_bedrock_reads_and_writes_a_bucket(client: Client, faults: Faults) -> None:
    """Given a secret with a bucket and a role, then a job of Bedrock answers the rows."""
    connection = client.connections.create("aws", "environment", "AWS_BEDROCK_BATCHES")
    topics = [f"topic {n}" for n in range(100)]  # a job has at least 100 records
    frame = label(client, connection.id, topics=topics)
    assert list(frame["status"]) == ["completed"] * 100, frame["error"].unique()
    assert len(list_batches(faults)) == 1
    assert len(set(list_items(faults))) == 100


def test_bedrock_without_a_bucket_says_what_is_missing(client: Client) -> None:
    """Given an API key of Bedrock, then its rows fail, and the message names the members."""
    frame = label(client, "aws")
    assert list(frame["status"]) == ["failed"] * len(TOPICS)
    assert "batch_bucket" in frame["error"][0]


def test_a_second_call_pays_nothing(client: Client, faults: Faults) -> None:
    """Given a map whose batch has ended, when it is called again, then no batch is created."""
    first = label(client)
    again = label(client)
    assert list(again["text"]) == list(first["text"])
    assert list(again["cached"]) == [True] * len(TOPICS)
    assert len(list_batches(faults)) == 1


def test_an_item_that_fails_goes_again_alone(client: Client, faults: Faults) -> None:
    """Given a vendor that fails for one item, then a second batch has that item alone."""
    faults.add(Fault("openai", status=500, times=1, custom_id_contains=""))
    frame = label(client)
    assert list(frame["status"]) == ["completed"] * len(TOPICS)
    assert len(list_batches(faults)) == 2
    assert len(list_items(faults)) == len(TOPICS)


def test_items_that_expire_go_again(client: Client, faults: Faults) -> None:
    """Given a batch that expires half-way, then its other rows are in a second batch."""
    faults.add(
        Fault("anthropic", path_contains="/batches", batch_s=0.4, batch_expiry_s=0.2, times=1)
    )
    frame = label(client, "anthropic")
    assert list(frame["status"]) == ["completed"] * len(TOPICS)
    assert len(list_batches(faults)) == 2
    assert sorted(row.rpartition("-")[2] for row in list_items(faults)) == ["0", "1", "2", "3"]


def test_a_refused_field_is_left_out_of_the_second_batch(client: Client, faults: Faults) -> None:
    """Given a model that refuses a temperature, then its rows go again without it."""
    frame = label(client, "openai/gpt-6-luna", temperature=0.2)
    assert list(frame["status"]) == ["completed"] * len(TOPICS)
    assert len(list_batches(faults)) == 2
    record = client.maps.get(frame.attrs["map"])
    assert record.cost_incurred_usd == pytest.approx(frame["cost_usd"].sum(), abs=1e-12)


def test_rejected_items_fail_without_a_cost(client: Client, faults: Faults) -> None:
    """Given a vendor that rejects an item, then its row fails, and the others do not."""
    faults.add(Fault("openai", status=403, times=1, custom_id_contains=""))
    frame = label(client)
    assert sorted(frame["status"]) == ["completed"] * 3 + ["failed"]
    (error,) = frame["error"][frame["status"] == "failed"]
    assert error.startswith("PROVIDER_")
    record = client.maps.get(frame.attrs["map"])
    paid = frame["cost_usd"].fillna(0).sum()
    assert record.cost_incurred_usd == pytest.approx(paid, abs=1e-12)


@pytest.mark.parametrize("how", ["drop", "truncate"])
@pytest.mark.parametrize("provider", FOUR_WIRES)
def test_an_unknown_submission_is_found_and_not_repeated(
    client: Client, faults: Faults, provider: str, how: Mangle
) -> None:
    """Given a submission that is lost on its way, or whose answer is, then there is one batch.

    It is found by its key. Anthropic shows none, so the batch is found by its time and size, and by
    the ids of its items.
    """
    path = {"google": "batchGenerateContent", "mistral": "/batch/jobs"}.get(provider, "/batches")
    faults.mangle(provider, how, path_contains=path, times=1)
    client.connections.connect(provider)
    frame = label(client, provider)
    assert list(frame["status"]) == ["completed"] * len(TOPICS)
    assert len(list_batches(faults)) == 1
    assert len(list_items(faults)) == len(TOPICS)


def test_a_vendor_that_is_busy_is_asked_again(client: Client, faults: Faults) -> None:
    """Given a vendor that answers 429 to the submission, then it is repeated."""
    faults.fail("google", status=429, path_contains="batchGenerateContent", times=1)
    frame = label(client, "google")
    assert list(frame["status"]) == ["completed"] * len(TOPICS)
    assert len(list_batches(faults)) == 1


def test_the_budget_covers_the_rows_of_a_batch(client: Client, faults: Faults) -> None:
    """Given a budget for some of the rows, then it is not exceeded, and a higher one goes on."""
    topics = [f"topic {n}" for n in range(40)]
    limit = 0.0001
    frame = label(client, topics=topics, max_cost_usd=limit, max_tokens=100)
    counts = frame["status"].value_counts()
    assert 1 <= counts["completed"] < 40
    assert counts["completed"] == len(list_items(faults))
    record = client.maps.get(frame.attrs["map"])
    assert record.cost_incurred_usd <= limit
    assert record.error is not None
    assert record.error.code == "BUDGET_EXCEEDED"

    rest = label(client, topics=topics, max_cost_usd=0.1, max_tokens=100)
    assert list(rest["status"]) == ["completed"] * 40
    assert len(list_items(faults)) == 40


def test_cancel_ends_the_batch_at_its_vendor(client: Client, faults: Faults) -> None:
    """Given a long batch, when its map is cancelled, then the vendor is told, and rows end."""
    faults.batch_time("openai", lasts_s=60)
    body = {
        "capability": "llm.generate",
        "input": {"objective": "A sentence about {topic}", "max_tokens": 60},
        "options": {"provider": "openai", "when": "batch"},
        "rows": [{"topic": topic} for topic in TOPICS],
    }
    map_run = client.maps.create(body)
    wait_until(lambda: list_batches(faults))
    map_run.cancel()
    counts = client.maps.get(map_run.id).row_counts
    assert (counts.cancelled, counts.running) == (len(TOPICS), 0)
    assert [call.path for call in faults.calls if call.path.endswith("/cancel")]


def test_only_maps_have_batches(client: Client) -> None:
    """Given a run with `when`, then it is refused, with the way to a batch."""
    with pytest.raises(RequestError, match=r"^INVALID_REQUEST:.*maps"):
        client.runs.create("llm.generate", {"objective": "Tea"}, when="batch")
    with pytest.raises(RequestError, match=r"deadline_s"):
        label(client, options={"deadline_s": 5.0})


def test_providers_without_batches_are_left_out(client: Client, faults: Faults) -> None:
    """Given no pinned provider, then a provider with batches is chosen, and others are refused."""
    frame = label(client, options={"provider": None})
    assert list(frame["status"]) == ["completed"] * len(TOPICS)
    assert len(list_batches(faults)) == 1
    with pytest.raises(RequestError, match="batches"):
        label(client, "minimax")


def test_output_models_work_in_batches(client: Client, faults: Faults) -> None:
    """Given a schema, then each row has an object that matches it."""
    schema = {
        "type": "object",
        "properties": {"label": {"enum": ["short", "long"]}},
        "required": ["label"],
    }
    faults.answer("openai", "sentence about", json.dumps({"label": "short"}))
    frame = label(client, output_schema=schema)
    assert list(frame["status"]) == ["completed"] * len(TOPICS), frame["error"].tolist()
