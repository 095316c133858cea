"""Previews of the router: the choice of a run with its reasons, for free."""

import pytest

from toolkit import Client, ErrorCode, RequestError

pytestmark = [pytest.mark.embedded, pytest.mark.sqlite("other tests have its statements")]

LINE = {"objective": "One line on tea"}


@pytest.mark.parametrize("policy", [None, "cost", "latency", "quality", "balanced"])
def test_a_preview_matches_the_run(client: Client, policy: str | None) -> None:
    """Given any optimization, then the preview stores nothing, and has the choice of the run."""
    route = client.route("llm.generate", LINE, optimize_for=policy)
    assert len(client.runs.list()) == len(client.jobs.list()) == 0
    record = client.runs.create("llm.generate", LINE, optimize_for=policy).wait().record
    first = next(c for c in record.routing.candidates if not c.excluded)
    assert (route.provider, route.model) == (first.provider, first.model)
    assert route.record.policy == record.routing.policy == (policy or "default")
    assert record.provider == route.provider


def test_a_preview_explains_each_candidate(client: Client) -> None:
    """Given a preview, then every candidate has its cost, health, latency and reason."""
    client.runs.create("llm.generate", LINE).wait()
    route = client.route("llm.generate", LINE)
    frame = route.to_frame()
    columns = {"provider", "model", "estimated_cost_usd", "latency_p50_ms", "healthy", "reason"}
    assert columns <= set(frame.columns)
    first = frame[~frame["excluded"]].iloc[0]
    assert first["provider"] == "minimax"
    assert first["latency_p50_ms"] > 0
    assert first["reason"].startswith("connected; the default provider")
    assert frame[frame["excluded"]]["reason"].str.len().min() > 0
    assert "minimax" in repr(route)
    assert "<table" in route._repr_mimebundle_()["text/html"]
    assert len(route.plot().axes) == 2


def test_a_preview_without_connections_chooses_no_provider(bare: Client) -> None:
    """Given no connection, then no provider is chosen, and every candidate says why."""
    route = bare.route("llm.generate", LINE)
    assert route.provider is None
    assert {c.reason for c in route.candidates} == {"not connected"}


@pytest.mark.parametrize(
    ("name", "input", "options", "code"),
    [
        ("llm.generate", {}, {}, "INVALID_REQUEST"),
        ("speech.generate", {"text": "Tea"}, {"provider": "openai"}, "PROVIDER_NOT_ALLOWED"),
        ("no.such", {}, {}, "NOT_FOUND"),
    ],
)
def test_a_preview_rejects_an_invalid_run(
    client: Client, name: str, input: dict[str, object], options: dict[str, str], code: str
) -> None:
    """Given an invalid capability, input or pin, then the preview raises the error of a run."""
    with pytest.raises(RequestError, match=f"^{code}:"):
        client.route(name, input, **options)


def test_generates_text_at_an_endpoint_of_the_caller(client: Client) -> None:
    """Given an endpoint, then text is generated there only if the provider is pinned."""
    endpoint = client.endpoints.create(name="llm")
    place = {"provider": "runpod", "endpoint_id": endpoint.id}
    run = client.runs.create("llm.generate", LINE, **place).wait()
    assert (run.provider, run.output["text"] != "") == ("runpod", True)
    # Its GPU is billed by the second: for the call, and for the idle time of the worker after it.
    rate = endpoint.record.price_per_hour_usd / 3600
    assert rate * 5 < run.cost_usd < rate * 60
    assert run.record.cost_source == "estimated"
    assert {c.reason for c in run.routing.candidates if c.model == "qwen3-32b-awq"} == {
        "runs only at its vendor's public endpoint"
    }
    unpinned = client.runs.create("llm.generate", LINE, endpoint_id=endpoint.id).wait()
    assert unpinned.provider == "minimax"
    reasons = {c.model: c.reason for c in unpinned.routing.candidates if c.provider == "runpod"}
    assert reasons["served-by-the-endpoint"].startswith("needs your own endpoint")


@pytest.mark.parametrize("place", [None, "endpoint_id", "compute_id"])
def test_a_gpu_cloud_serves_text_at_its_public_endpoint(bare: Client, place: str | None) -> None:
    """Given the GPU cloud alone, then text is billed by the token, with or without a place.

    A place is for images, so that it makes no difference.
    """
    bare.connections.connect("runpod")
    options = {}
    if place == "endpoint_id":
        options[place] = bare.endpoints.create(name="e").id
    elif place == "compute_id":
        options[place] = bare.compute.create(name="p", gpu_type="NVIDIA A40").id
    route = bare.route("llm.generate", LINE, **options)
    assert (route.provider, route.model) == ("runpod", "qwen3-32b-awq")
    run = bare.runs.create("llm.generate", LINE, max_cost_usd=0.05, **options).wait()
    assert (run.provider, run.record.cost_source) == ("runpod", "metered")
    tokens = run.record.usage["input_tokens"] + run.record.usage["output_tokens"]
    assert run.cost_usd == pytest.approx(tokens * 10e-6)
    assert run.cost_usd <= run.record.reservation_usd <= 0.05
    with pytest.raises(RequestError, match=r"^BUDGET_EXCEEDED:"):
        bare.runs.create("llm.generate", LINE, max_cost_usd=0.001, **options)


@pytest.mark.embedded
@pytest.mark.parametrize("pin", ["openai", "connection"])
def test_a_pin_may_name_a_model(client: Client, pin: str) -> None:
    """Given a provider or connection with a model, then that model serves, at its list price."""
    if pin == "connection":
        (pin,) = [
            connection.id
            for connection in client.connections.list()
            if connection.provider == "openai"
        ]
    fields = {"objective": "A line on tides"}
    premium = client.runs.create("llm.generate", fields, provider=f"{pin}/gpt-6.1-sol")
    premium.wait(progress=False)
    economy = client.runs.create("llm.generate", fields, provider=pin).wait(progress=False)
    assert premium.model == "gpt-6.1-sol-sandbox"
    assert premium.record.options.provider == f"{pin}/gpt-6.1-sol"
    assert premium.cost_usd == pytest.approx(20 * economy.cost_usd)


@pytest.mark.embedded
def test_a_pinned_model_without_a_price_fits_no_budget(client: Client) -> None:
    """Given an unknown model and a budget, then the refusal names the model."""
    with pytest.raises(RequestError, match="no known") as refused:
        client.runs.create(
            "llm.generate", {"objective": "x"}, provider="openai/unheard-of", max_cost_usd=1
        )
    assert refused.value.code is ErrorCode.BUDGET_EXCEEDED
