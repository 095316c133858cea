"""A self-hosted model server, with recorded answers of llama-cpp-python."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.embedded import with_key
from tests.support.model_server import FACTS, ModelServer
from tests.vendors.conftest import TEXT, VendorDrive, flow, ok
from toolkit import Client, RequestError, WorkError
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import ProviderError
from toolkit.settings import Settings

SCHEMA: dict[str, Any] = FACTS["exchanges"]["json_schema"]["request"]["response_format"][
    "json_schema"
]["schema"]
RECORDED = FACTS["exchanges"]["json_object_with_schema"]["body"]
FREE = {"*": {"input_tokens": 0, "output_tokens": 0}}
ASK = {"objective": "A title about tea"}


@pytest.fixture
def drive() -> VendorDrive:
    """A driver without answers."""
    return VendorDrive()


@pytest.fixture
def model_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """The server, and a variable for the key, which it does not require."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    server = ModelServer()
    yield server
    server.close()


def open_client(model_server: ModelServer, folder: Path, **settings: Any) -> Client:
    """Open a client that has connected the server."""
    vendors = {"openai": {"base_urls": {"api": model_server.url}, **settings}}
    client = Client.local(settings=Settings(data_dir=folder, vendors=vendors, retry_base_s=0.01))
    client.connections.connect("openai")
    return client


def test_requests_a_schema_in_a_form_that_the_server_accepts(
    model_server: ModelServer, tmp_path: Path
) -> None:
    """Given a form that the server rejects with 500, then the next form is tried, and kept."""
    with open_client(model_server, tmp_path, models={"text": "smollm2"}) as client:
        for _ in range(2):
            run = client.runs.create("llm.generate", {**ASK, "output_schema": SCHEMA}).wait()
            assert run.output["json"] == {"title": "The Enchanted Tea"}
            assert [attempt.status for attempt in run.record.attempts] == ["completed"]
        kinds = [body["response_format"]["type"] for body in model_server.asked]
        assert kinds == ["json_schema", "json_object", "json_object"]
        candidate = client.route("llm.generate", ASK, provider="openai").record.candidates[0]
        assert (candidate.breaker, candidate.error_rate) == ("closed", 0.0)


def test_limits_the_answer_by_both_names_of_the_field(
    model_server: ModelServer, tmp_path: Path
) -> None:
    """Given a server that ignores the newer name of the limit, then the older name is sent too."""
    ignored = FACTS["exchanges"]["newer_cap_alone"]
    cap = ignored["request"]["max_completion_tokens"]
    assert ignored["body"]["usage"]["completion_tokens"] > cap  # as recorded
    with open_client(model_server, tmp_path, models={"text": "smollm2"}) as client:
        client.runs.create("llm.generate", {**ASK, "max_tokens": 8}).wait()
    assert (
        model_server.asked[0]["max_tokens"],
        model_server.asked[0]["max_completion_tokens"],
    ) == (8, 8)


def test_a_budget_requires_a_price_of_the_operator(
    model_server: ModelServer, tmp_path: Path
) -> None:
    """Given no price, then a budget rejects the model by name; given a price, the budget holds."""
    with open_client(model_server, tmp_path / "a", models={"text": "smollm2"}) as client:
        assert client.runs.create("llm.generate", ASK).wait().cost_usd is None
        with pytest.raises(RequestError) as caught:
            client.runs.create("llm.generate", ASK, max_cost_usd=1).wait()
        assert caught.value.code is ErrorCode.BUDGET_EXCEEDED
        assert "smollm2" in caught.value.message
        limited = client.api_keys.create(max_cost_usd_per_day=1).api_key
        with (
            with_key(client, limited) as caller,
            pytest.raises(WorkError) as failed,
        ):
            caller.runs.create("llm.generate", ASK, provider="openai").wait()
        assert failed.value.code is ErrorCode.BUDGET_EXCEEDED
        for part in ('[vendors.openai.prices."smollm2"]', "a key without an allowance"):
            assert part in failed.value.message
    with open_client(
        model_server, tmp_path / "b", models={"text": "smollm2"}, prices=FREE
    ) as client:
        run = client.runs.create("llm.generate", ASK, max_cost_usd=0.000001).wait()
        assert (run.cost_usd, run.record.cost_source) == (0.0, "metered")
    dear = {"*": FREE["*"], "smollm2": {"input_tokens": "1000", "output_tokens": 2000.0}}
    with open_client(
        model_server, tmp_path / "c", models={"text": "smollm2"}, prices=dear
    ) as client:
        usage = FACTS["exchanges"]["text"]["body"]["usage"]
        paid = usage["prompt_tokens"] * 1e-3 + usage["completion_tokens"] * 2e-3
        run = client.runs.create("llm.generate", {**ASK, "max_tokens": 8}, max_cost_usd=3).wait()
        assert run.cost_usd == pytest.approx(paid)
        listed = client.catalog.models()["openai/text/smollm2"].record
        assert (listed.default, listed.prices_usd["output_tokens"]) == (True, 2e-3)
        assert "operator" in listed.source


def test_suggests_models_that_the_server_lists(model_server: ModelServer, tmp_path: Path) -> None:
    """Given a server with another model, then the test of the connection says how to set it."""
    with open_client(model_server, tmp_path) as client:
        tested = client.connections.test(client.connections.list()[0].id)
        assert (tested.ok, tested.record.models) == (True, ["smollm2"])
        assert '[vendors.openai] models = { text = "smollm2" }' in tested.record.next_step
        assert "smollm2" in repr(tested)
    with open_client(model_server, tmp_path / "named", models={"text": "smollm2"}) as client:
        tested = client.connections.test(client.connections.list()[0].id)
        assert tested.record.next_step == ""


def test_does_not_retry_a_rejected_value(drive: VendorDrive) -> None:
    """Given a 500 with a validation error of the input, then the call is not retried."""
    answer = FACTS["exchanges"]["bad_temperature"]
    with pytest.raises(ProviderError) as caught:
        drive(flow("openai", TEXT), httpx.Response(answer["status"], json=answer["body"]))
    assert (caught.value.code, caught.value.retryable) == (ErrorCode.PROVIDER_REJECTED, False)


@pytest.mark.parametrize("answer", FACTS["refusals_elsewhere"], ids=lambda answer: answer["server"])
def test_understands_rejections_of_other_servers(
    drive: VendorDrive, answer: dict[str, Any]
) -> None:
    """Given a server's own words of a rejection, then the field is left out, then and later."""
    request = replace(TEXT, schema=SCHEMA)
    rejection = httpx.Response(answer["status"], json=answer["body"])
    refusals: set[str] = set()
    drive(
        flow("openai", request, compatible=True, refusals=refusals),
        rejection,
        ok(RECORDED),
    )
    first, second = drive.body(0), drive.body(1)
    assert first[answer["field"]] != second.get(answer["field"])
    assert {"max_tokens", "max_completion_tokens"} & set(second)
    drive(flow("openai", request, compatible=True, refusals=refusals), ok(RECORDED))
    assert drive.body(2) == second


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "GPU temperature too high", "type": "server_error"}},
        {"error": {"message": "max_tokens is too large: it supports at most 4096."}},
        {"detail": [{"loc": ["body", "messages"], "type": "missing", "msg": "Field required"}]},
    ],
)
def test_does_not_drop_fields_after_other_errors(drive: VendorDrive, body: dict[str, Any]) -> None:
    """Given an error that names no optional field, then the request is sent once."""
    for status in (400, 500):
        with pytest.raises(ProviderError):
            drive(
                flow("openai", replace(TEXT, temperature=0.5), compatible=True),
                httpx.Response(status, json=body),
            )
    assert len(drive.requests) == 2


@pytest.mark.parametrize(
    ("prices", "path"),
    [
        ({"m": {"input_tokens": 0}}, "vendors.openai.prices.m.output_tokens"),
        ({"m": {"input_tokens": -1, "output_tokens": 0}}, "vendors.openai.prices.m.input_tokens"),
        ({"m": {"input_tokens": "NaN", "output_tokens": 0}}, "vendors.openai.prices.m.input_tok"),
        ({"m": {"input_tokens": 0, "output_tokens": 0, "x": 1}}, "vendors.openai.prices.m.x"),
        ({"m": 0}, "vendors.openai.prices.m"),
    ],
)
def test_rejects_invalid_prices(prices: object, path: str) -> None:
    """Given invalid prices, then the settings are rejected in one line."""
    with pytest.raises(RequestError) as caught:
        Settings(vendors={"openai": {"prices": prices}})
    assert path in str(caught.value)
    assert "\n" not in str(caught.value)
