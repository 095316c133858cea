"""The router's preview: the same choice as a run's, with its reasons, for nothing."""

import pytest

from toolkit import Client, RequestError

pytestmark = [pytest.mark.embedded, pytest.mark.sqlite("other tests have its statements")]

ASKED = {"objective": "One line on tea"}


@pytest.mark.parametrize("policy", [None, "cost", "latency", "quality", "balanced"])
def test_a_preview_is_what_a_run_does(client: Client, policy: str | None) -> None:
    """Given any wish, then the provider and model of the preview are those of the first attempt."""
    route = client.route("llm.generate", ASKED, optimize_for=policy)
    run = client.runs.create("llm.generate", ASKED, optimize_for=policy).wait()
    first = next(c for c in run.record.routing.candidates if not c.excluded)
    assert (route.provider, route.model) == (first.provider, first.model)
    assert route.record.policy == run.record.routing.policy == (policy or "default")
    assert run.record.provider == route.provider


def test_a_preview_tells_why(client: Client) -> None:
    """Given a preview, then every candidate has its cost, health, latency and reason."""
    client.runs.create("llm.generate", ASKED).wait()
    route = client.route("llm.generate", ASKED)
    frame = route.to_frame()
    columns = {"provider", "model", "estimated_cost_usd", "latency_p50_ms", "healthy", "reason"}
    assert columns <= set(frame.columns)
    chosen = frame[~frame["excluded"]].iloc[0]
    assert chosen["provider"] == "minimax"
    assert chosen["latency_p50_ms"] > 0
    assert chosen["reason"].startswith("connected; the default provider")
    assert frame[frame["excluded"]]["reason"].str.len().min() > 0
    assert "minimax" in repr(route)
    assert "<table" in route._repr_mimebundle_()["text/html"]
    assert len(route.plot().axes) == 2


def test_a_preview_spends_and_stores_nothing(client: Client) -> None:
    """Given previews, then there is no run and no job."""
    client.route("speech.generate", {"text": "Tea is served."})
    client.route("llm.generate", ASKED, provider="openai")
    assert len(client.runs.list()) == len(client.jobs.list()) == 0


def test_a_preview_without_connections_says_so(bare: Client) -> None:
    """Given nothing connected, then nobody is chosen, and every candidate says why."""
    route = bare.route("llm.generate", ASKED)
    assert route.provider is None
    assert {c.reason for c in route.candidates} == {"not connected"}


def test_a_preview_refuses_what_a_run_refuses(client: Client) -> None:
    """Given an input or a pin that a run would be refused for, then so is the preview."""
    with pytest.raises(RequestError, match=r"^INVALID_REQUEST:"):
        client.route("llm.generate", {})
    with pytest.raises(RequestError, match=r"^PROVIDER_NOT_ALLOWED:"):
        client.route("speech.generate", {"text": "Tea"}, provider="openai")
    with pytest.raises(RequestError, match=r"^NOT_FOUND:"):
        client.route("no.such", {})


def test_a_connection_is_tested(client: Client) -> None:
    """Given a pointer to a good key, to none and to a bad one, then the test tells them apart."""
    for connection in client.connections.list():
        tested, provider = client.connections.test(connection.id), connection.record.provider
        if provider == "aws":  # it has nothing that is free to ask for
            assert (tested.record.resolved, tested.record.accepted) == (True, None)
            continue
        assert (tested.ok, tested.record.provider) == (True, provider)
        assert tested.record.took_ms is not None
    wrong = client.connections.create("minimax", "environment", "OPENAI_API_KEY")
    tested = client.connections.test(wrong.id)
    assert (tested.ok, tested.record.resolved, tested.record.accepted) == (False, True, False)
    assert "sandbox-openai" not in repr(tested)
    lost = client.connections.create("minimax", "environment", "NO_SUCH_KEY")
    tested = client.connections.test(lost.id)
    assert (tested.record.resolved, tested.record.accepted) == (False, None)
    assert tested.record.error.code == "SECRET_UNRESOLVED"


def test_what_is_set_here_is_discovered(bare: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a conventional variable that is set, then it is found, and connected when picked."""
    monkeypatch.setenv("OPENAI_API_KEY", "not-looked-at")
    found = bare.connections.discover().to_frame().set_index("provider")
    assert found.loc["openai", "set"]
    assert not found.loc["minimax", "set"]
    assert not found["connected"].any()
    bare.connections.connect("openai")
    found = bare.connections.discover().to_frame().set_index("provider")
    assert list(found.index[found["connected"]]) == ["openai"]
    assert "not-looked-at" not in found.to_string()
    with pytest.raises(RequestError, match="Connect one of openai"):
        bare.connections.connect("google", "nobody")
    assert len(bare.connections.list()) == 1  # all of them, or none
    monkeypatch.setenv("GEMINI_API_KEY", "not-looked-at")
    assert [one.provider for one in bare.connections.connect("all")] == ["google"]
    assert len(bare.connections.connect("all")) == 0


def test_an_llm_at_an_endpoint_of_ones_own(client: Client) -> None:
    """Given an endpoint, then text is generated there when it is pinned, and never by itself."""
    endpoint = client.endpoints.create(name="llm")
    pinned = {"provider": "runpod", "endpoint_id": endpoint.id}
    run = client.runs.create("llm.generate", ASKED, **pinned).wait()
    assert (run.provider, run.output["text"] != "") == ("runpod", True)
    # Its GPU is billed by the second: what the call took, and what a worker idles afterwards.
    rate = endpoint.record.price_per_hour_usd / 3600
    assert rate * 5 < run.cost_usd < rate * 60
    assert run.record.cost_source == "estimated"
    assert {c.reason for c in run.routing.candidates if c.model == "qwen3-32b-awq"} == {
        "runs only at its vendor's public endpoint"
    }
    unpinned = client.runs.create("llm.generate", ASKED, endpoint_id=endpoint.id).wait()
    assert unpinned.provider == "minimax"
    reasons = {c.model: c.reason for c in unpinned.routing.candidates if c.provider == "runpod"}
    assert reasons["served-by-the-endpoint"].startswith("needs your own endpoint")


@pytest.mark.parametrize("place", ["", "endpoint_id", "compute_id"])
def test_a_gpu_cloud_is_an_llm_by_itself(bare: Client, place: str) -> None:
    """Given the GPU cloud alone, then text comes from its public endpoint, billed by the token.

    A place that is named beside it is for images: it neither helps nor hinders.
    """
    bare.connections.connect("runpod")
    places = {
        "": dict,
        "endpoint_id": lambda: {"endpoint_id": bare.endpoints.create(name="e").id},
        "compute_id": lambda: {
            "compute_id": bare.compute.create(name="p", gpu_type="NVIDIA A40").id
        },
    }
    where = places[place]()
    route = bare.route("llm.generate", ASKED, **where)
    assert (route.provider, route.model) == ("runpod", "qwen3-32b-awq")
    run = bare.runs.create("llm.generate", ASKED, max_cost_usd=0.05, **where).wait()
    assert (run.provider, run.record.cost_source) == ("runpod", "metered")
    tokens = run.record.usage["input_tokens"] + run.record.usage["output_tokens"]
    assert run.cost_usd == pytest.approx(tokens * 10e-6)
    assert run.cost_usd <= run.record.reservation_usd <= 0.05
    with pytest.raises(RequestError, match=r"^BUDGET_EXCEEDED:"):
        bare.runs.create("llm.generate", ASKED, max_cost_usd=0.001, **where)
