"""Cached results: opt-in, keyed by everything they depend on, free, with records of their own."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.capabilities.conftest import mp3
from tests.conftest import Server
from toolkit import Client, Workflow
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings

LINE = {"objective": "One line on tides"}


@pytest.fixture
def client(settings: Settings, faults: Faults) -> Iterator[Client]:
    """A client that uses the cache."""
    with Client.local(settings=settings, faults=faults, cache=True) as client:
        yield client


def build_poster(title: str = "Tides", topic: str = "Tides") -> Workflow:
    """Build a workflow of facts, a text, its speech, and a card."""
    flow = Workflow("poster")
    facts = flow.add("facts", "research.gather", topic=topic)
    copy = flow.add("copy", "text.generate", objective="A teaser", depends_on=[facts])
    flow.add("voice", "speech.generate", depends_on=[copy])
    flow.add("card", "composition.layout", title=title, depends_on=[copy])
    return flow


def test_does_not_pay_an_equal_run_again(client: Client, faults: Faults) -> None:
    """Given an equal earlier run, then the run returns its result at cost 0, as its own record."""
    first = client.runs.create("llm.generate", LINE).wait()
    second = client.runs.create("llm.generate", LINE).wait()
    assert len(faults.calls) == 1
    assert (first.record.cached, first.record.cached_from) == (False, None)
    assert (second.record.cached, second.record.cached_from) == (True, first.record.job_id)
    assert (second.cost_usd, second.record.cost_incurred_usd, second.attempts) == (0, 0, [])
    assert (second.output, second.provider) == (first.output, first.provider)
    assert first.cost_usd > 0
    assert second.artifact_id != first.artifact_id
    original, copy = (client.artifacts.get(run.artifact_id).record for run in (first, second))
    assert original.sha256 == copy.sha256
    assert copy.job_id == second.record.job_id


def test_reuses_the_unchanged_nodes_of_a_workflow(client: Client, faults: Faults) -> None:
    """Given an equal earlier workflow, then only changed nodes and their dependents are run."""
    first = client.workflows.submit(build_poster()).wait()
    calls = len(faults.calls)
    second = client.workflows.submit(build_poster()).wait()
    assert len(faults.calls) == calls
    assert second.record.cost_incurred_usd == 0
    job_ids = [node.job_id for node in first.nodes]
    assert [node.cached_from for node in second.nodes] == job_ids
    events = [event for event in second.events() if event.type == "node.completed"]
    assert sorted(event.data.get("cached_from") for event in events) == sorted(job_ids)
    third = client.workflows.submit(build_poster("Mills")).wait()
    assert {node.id for node in third.nodes if node.cached_from is None} == {"card"}
    assert len(faults.calls) == calls
    other = client.workflows.submit(build_poster(topic="Salt")).wait()
    assert {node.cached_from for node in other.nodes} == {None}


@pytest.mark.parametrize(
    "change",
    [
        {"input": {"objective": "One line on mills"}},
        {"name": "text.generate"},
        {"provider": "openai"},
        {"cache": False},
    ],
    ids=["input", "capability", "provider", "no cache"],
)
def test_pays_for_a_different_run(
    client: Client, faults: Faults, change: dict[str, object]
) -> None:
    """Given another input, capability or provider, or no cache, then the run is paid."""
    client.runs.create("llm.generate", LINE).wait()
    arguments = {"name": "llm.generate", "input": LINE, **change}
    second = client.runs.create(**arguments).wait()  # type: ignore[arg-type]
    assert (second.record.cached, len(faults.calls)) == (False, 2)


def test_stores_no_result_of_a_run_without_the_cache(client: Client, faults: Faults) -> None:
    """Given a run without the cache, then its result is not reused."""
    client.runs.create("llm.generate", LINE, cache=False).wait()
    assert client.runs.create("llm.generate", LINE).wait().record.cached is False
    assert client.runs.create("llm.generate", LINE).wait().record.cached is True


@pytest.mark.parametrize("durability", ["normal", "full"])
def test_pays_concurrent_equal_jobs_once(
    settings: Settings, faults: Faults, durability: str
) -> None:
    """Given equal nodes that run in parallel, then one is paid, and the others wait for it."""
    settings = settings.model_copy(update={"durability": durability})
    faults.add(Fault("minimax", delay_ms=100, times=None))
    flow = Workflow("many")
    for i in range(8):
        flow.add(f"n{i}", "llm.generate", **LINE)
    with Client.local(settings=settings, faults=faults, cache=True) as client:
        run = client.workflows.submit(flow).wait()
    assert len(faults.calls) == 1
    assert sum(node.cached_from is None for node in run.nodes) == 1


def test_caches_no_failure(client: Client, faults: Faults) -> None:
    """Given a failed run, then an equal run is made."""
    faults.fail("minimax", status=400, times=1)
    assert client.runs.create("llm.generate", LINE, provider="minimax").wait(check=False).error
    second = client.runs.create("llm.generate", LINE, provider="minimax").wait()
    assert (second.status, second.record.cached) == ("completed", False)


def test_caches_a_result_by_the_provider_that_served(client: Client, faults: Faults) -> None:
    """Given a fallback, then its result is not reused for the default provider."""
    faults.fail("minimax", status=503, times=None)
    fallback = client.runs.create("llm.generate", LINE).wait()
    assert fallback.provider != "minimax"
    faults.clear()
    pinned = client.runs.create("llm.generate", LINE, provider="minimax").wait()
    assert (pinned.provider, pinned.record.cached) == ("minimax", False)
    same = client.runs.create("llm.generate", LINE, provider=fallback.provider).wait()
    assert same.record.cached_from in (None, fallback.record.job_id)


def test_an_input_artifact_counts_by_its_bytes(client: Client, faults: Faults) -> None:
    """Given the same reference audio uploaded twice, then a voice is cloned once."""
    cached = []
    for _ in range(2):
        reference = client.artifacts.upload(mp3(12.0), filename="ada.mp3")
        input = {"name": "Ada", "reference_audio": reference.id}
        cached.append(client.runs.create("voice.clone", input).wait().record.cached)
    assert cached == [False, True]


def test_another_process_finds_a_result(settings: Settings, faults: Faults) -> None:
    """Given a new engine on the same directory, then earlier results are reused."""
    for is_cached in (False, True):
        with Client.local(settings=settings, faults=faults, cache=True) as client:
            run = client.runs.create("llm.generate", LINE).wait()
            assert run.record.cached is is_cached
    assert len(faults.calls) == 1


def test_makes_lost_bytes_again(client: Client, data_dir: Path, faults: Faults) -> None:
    """Given a result whose bytes are lost, then it is made again."""
    input = {"text": "Tides turn twice a day, and mills with them. " * 8}
    first = client.runs.create("speech.generate", input).wait()
    sha256 = client.artifacts.get(first.artifact_id).record.sha256
    files = (path for path in (data_dir / "artifacts").rglob("*") if path.is_file())
    (file,) = [path for path in files if path.name in sha256]
    file.unlink()
    second = client.runs.create("speech.generate", input).wait()
    assert (second.record.cached, len(faults.calls)) == (False, 2)
    content = client.artifacts.get(second.artifact_id).content()
    assert hashlib.sha256(content).hexdigest() == sha256
    assert json.dumps(second.record.output)


def test_each_account_has_its_own_results(settings: Settings, faults: Faults) -> None:
    """Given equal runs of two accounts of a server, then each pays, and reuses its own result."""
    server = Server(settings, faults)
    keys = [server.sign_up("minimax", email=f"{name}@example.org") for name in ("ada", "bo")]
    for key in keys:
        with Client(base_url=server.url, api_key=key) as client:
            first, second = (
                client.runs.create("llm.generate", LINE, cache=True).wait().record for _ in range(2)
            )
            assert (first.cached, second.cached) == (False, True)
            assert second.cached_from == client.jobs.get(first.job_id).id
    assert sum(call.billed for call in faults.calls) == 2
    server.close()


def test_another_model_has_another_result(client: Client, faults: Faults) -> None:
    """Given an equal run at another model, then it is made, and both results are reused."""
    models = []
    for _ in range(2):
        for policy in ("cost", "quality"):
            options = {"provider": "anthropic", "optimize_for": policy}
            record = client.runs.create("llm.generate", LINE, **options).wait().record
            models.append((record.model, record.cached))
    (cheap, _), (best, _) = models[:2]
    assert cheap != best
    assert models == [(cheap, False), (best, False), (cheap, True), (best, True)]
    assert len(faults.calls) == 2
