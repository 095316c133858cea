"""A model server of one's own: as llama-cpp-python was seen to answer."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.model_server import FACTS, ModelServer
from tests.vendors.conftest import TEXT, VendorDrive, flow, ok
from toolkit import Client, RequestError, WorkError
from toolkit.client import Client as HttpClient
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import ProviderError
from toolkit.settings import Settings

OWN = {"api": "http://127.0.0.1:9/v1"}
SCHEMA: dict[str, Any] = FACTS["exchanges"]["json_schema"]["request"]["response_format"][
    "json_schema"
]["schema"]
FREE = {"*": {"input_tokens": 0, "output_tokens": 0}}
ASK = {"objective": "A title about tea"}


@pytest.fixture
def drive() -> VendorDrive:
    """A driver without answers yet."""
    return VendorDrive()


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """The server, and a variable for the key that it does not ask for."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    server = ModelServer()
    yield server
    server.close()


def open_client(own: ModelServer, folder: Path, **settings: Any) -> Client:
    """A client that has connected the server."""
    vendors = {"openai": {"base_urls": {"api": own.url}, **settings}}
    client = Client.local(settings=Settings(data_dir=folder, vendors=vendors, retry_base_s=0.01))
    client.connections.connect("openai")
    return client


def test_a_schema_is_asked_for_as_the_server_takes_it(own: ModelServer, tmp_path: Path) -> None:
    """Given a 500 that is a refusal, then the next form is asked for, and from then on first."""
    with open_client(own, tmp_path, models={"text": "smollm2"}) as client:
        for _ in range(2):
            run = client.runs.create("llm.generate", {**ASK, "output_schema": SCHEMA}).wait()
            assert run.output["json"] == {"title": "The Enchanted Tea"}
            assert [one.status for one in run.record.attempts] == ["completed"]
        kinds = [body["response_format"]["type"] for body in own.asked]
        assert kinds == ["json_schema", "json_object", "json_object"]
        candidate = client.route("llm.generate", ASK, provider="openai").record.candidates[0]
        assert (candidate.breaker, candidate.error_rate) == ("closed", 0.0)


def test_the_answer_is_limited_by_the_name_the_server_knows(
    own: ModelServer, tmp_path: Path
) -> None:
    """Given a server that passes over the newer name, then the older one is sent with it."""
    ignored = FACTS["exchanges"]["newer_cap_alone"]
    cap = ignored["request"]["max_completion_tokens"]
    assert ignored["body"]["usage"]["completion_tokens"] > cap  # what was seen there
    with open_client(own, tmp_path, models={"text": "smollm2"}) as client:
        client.runs.create("llm.generate", {**ASK, "max_tokens": 8}).wait()
    assert (own.asked[0]["max_tokens"], own.asked[0]["max_completion_tokens"]) == (8, 8)


def test_a_budget_needs_a_price_and_the_operator_can_set_it(
    own: ModelServer, tmp_path: Path
) -> None:
    """Given no price, then a budget refuses the model by name; given one, it holds."""
    with open_client(own, tmp_path / "a", models={"text": "smollm2"}) as client:
        assert client.runs.create("llm.generate", ASK).wait().cost_usd is None
        with pytest.raises(RequestError) as refused:
            client.runs.create("llm.generate", ASK, max_cost_usd=1).wait()
        assert refused.value.code is ErrorCode.BUDGET_EXCEEDED
        assert "smollm2" in refused.value.message
        limited = client.api_keys.create(max_cost_usd_per_day=1).api_key
        with (
            HttpClient(client.access.base_url, limited, transport=client._http._transport) as other,
            pytest.raises(WorkError) as failed,
        ):
            other.runs.create("llm.generate", ASK, provider="openai").wait()
        assert failed.value.code is ErrorCode.BUDGET_EXCEEDED
        for said in ('[vendors.openai.prices."smollm2"]', "its tokens", "by a key without"):
            assert said in failed.value.message
    with open_client(own, tmp_path / "b", models={"text": "smollm2"}, prices=FREE) as client:
        run = client.runs.create("llm.generate", ASK, max_cost_usd=0.000001).wait()
        assert (run.cost_usd, run.record.cost_source) == (0.0, "metered")
    dear = {"*": FREE["*"], "smollm2": {"input_tokens": "1000", "output_tokens": 2000.0}}
    with open_client(own, tmp_path / "c", models={"text": "smollm2"}, prices=dear) as client:
        usage = FACTS["exchanges"]["text"]["body"]["usage"]
        paid = usage["prompt_tokens"] * 1e-3 + usage["completion_tokens"] * 2e-3
        run = client.runs.create("llm.generate", {**ASK, "max_tokens": 8}, max_cost_usd=3).wait()
        assert run.cost_usd == pytest.approx(paid)
        listed = client.catalog.models()["openai/text/smollm2"].record
        assert (listed.default, listed.prices_usd["output_tokens"]) == (True, 2e-3)
        assert "operator" in listed.source


def test_models_that_it_lists_are_offered(own: ModelServer, tmp_path: Path) -> None:
    """Given another model than it lists, then the test of the connection says how to name one."""
    with open_client(own, tmp_path) as client:
        tested = client.connections.test(client.connections.list()[0].id)
        assert (tested.ok, tested.record.models) == (True, ["smollm2"])
        assert '[vendors.openai] models = { text = "smollm2" }' in tested.record.next_step
        assert "smollm2" in repr(tested)
    with open_client(own, tmp_path / "named", models={"text": "smollm2"}) as client:
        tested = client.connections.test(client.connections.list()[0].id)
        assert tested.record.next_step == ""


def test_a_refused_value_is_no_outage(drive: VendorDrive) -> None:
    """Given a 500 that is a validation's answer about the input, then nothing is tried again."""
    seen = FACTS["exchanges"]["bad_temperature"]
    with pytest.raises(ProviderError) as refused:
        drive(flow("openai", TEXT), httpx.Response(seen["status"], json=seen["body"]))
    assert (refused.value.code, refused.value.retryable) == (ErrorCode.PROVIDER_REJECTED, False)


@pytest.mark.parametrize("seen", FACTS["refusals_elsewhere"], ids=lambda seen: seen["server"])
def test_refusals_are_understood_in_each_servers_words(
    drive: VendorDrive, seen: dict[str, Any]
) -> None:
    """Given a refusal as another server words it, then the request goes again without the field."""
    asked = replace(TEXT, schema=SCHEMA)
    refused = httpx.Response(seen["status"], json=seen["body"])
    known: set[str] = set()
    drive(flow("openai", asked, compatible=True, refusals=known), refused, ok(_get_recorded_body()))
    first, second = drive.body(0), drive.body(1)
    assert first[seen["field"]] != second.get(seen["field"])
    assert {"max_tokens", "max_completion_tokens"} & set(second)
    drive(flow("openai", asked, compatible=True, refusals=known), ok(_get_recorded_body()))
    assert drive.body(2) == second


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "GPU temperature too high", "type": "server_error"}},
        {"error": {"message": "max_tokens is too large: it supports at most 4096."}},
        {"detail": [{"loc": ["body", "messages"], "type": "missing", "msg": "Field required"}]},
    ],
)
def test_other_troubles_are_no_refusals(drive: VendorDrive, body: dict[str, Any]) -> None:
    """Given trouble that no lesser request would mend, then it is sent once."""
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
        ({"m": {"input_tokens": True, "output_tokens": 0}}, "vendors.openai.prices.m.input_tokens"),
        ({"m": {"input_tokens": "NaN", "output_tokens": 0}}, "vendors.openai.prices.m.input_tok"),
        ({"m": {"input_tokens": 0, "output_tokens": 0, "x": 1}}, "vendors.openai.prices.m.x"),
        ({"m": 0}, "vendors.openai.prices.m"),
    ],
)
def test_prices_that_are_none_are_refused(prices: object, path: str) -> None:
    """Given prices that nobody can pay, then the settings are refused on one line."""
    with pytest.raises(RequestError) as refused:
        Settings(vendors={"openai": {"prices": prices}})
    assert path in str(refused.value)
    assert "\n" not in str(refused.value)


def _get_recorded_body() -> dict[str, Any]:
    body: dict[str, Any] = FACTS["exchanges"]["json_object_with_schema"]["body"]
    return json.loads(json.dumps(body))  # type: ignore[no-any-return]
