"""Results used again: opt-in, by all that they depend on, at no cost, with records of their own."""

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

ASKED = {"objective": "One line on tides"}


@pytest.fixture
def client(settings: Settings, faults: Faults) -> Iterator[Client]:
    """A client that uses results again."""
    with Client.local(settings=settings, faults=faults, cache=True) as client:
        yield client


def poster(title: str = "Tides", **options: object) -> Workflow:
    """Facts, a text, speech of it, and a card."""
    flow = Workflow("poster", **options)  # type: ignore[arg-type]
    facts = flow.add("facts", "research.gather", topic="Tides")
    copy = flow.add("copy", "text.generate", objective="A teaser", depends_on=[facts])
    flow.add("voice", "speech.generate", depends_on=[copy])
    flow.add("card", "composition.layout", title=title, depends_on=[copy])
    return flow


def test_an_equal_run_is_not_paid_again(client: Client, faults: Faults) -> None:
    """Given a run that was made before, then it returns at once, at cost 0, and says so."""
    first = client.runs.create("llm.generate", ASKED).wait()
    again = client.runs.create("llm.generate", ASKED).wait()
    assert len(faults.calls) == 1
    assert (first.record.cached, first.record.cached_from) == (False, None)
    assert (again.record.cached, again.record.cached_from) == (True, first.record.job_id)
    assert (again.cost_usd, again.record.cost_incurred_usd, again.attempts) == (0, 0, [])
    assert (again.output, again.provider) == (first.output, first.provider)
    assert first.cost_usd > 0
    assert again.artifact_id != first.artifact_id  # a record of its own, of the same bytes
    same = [client.artifacts.get(run.artifact_id) for run in (first, again)]
    assert same[0].record.sha256 == same[1].record.sha256
    assert same[1].record.job_id == again.record.job_id


def test_a_workflow_that_is_run_again(client: Client, faults: Faults) -> None:
    """Given a workflow that was run before, then every unchanged node returns at no cost."""
    first = client.workflows.submit(poster()).wait()
    calls = len(faults.calls)
    again = client.workflows.submit(poster()).wait()
    assert len(faults.calls) == calls
    assert again.record.cost_incurred_usd == 0
    assert [n.cached_from for n in again.nodes] == [n.job_id for n in first.nodes]
    changed = client.workflows.submit(poster("Mills")).wait()
    assert {n.id for n in changed.nodes if n.cached_from is None} == {"card"}
    assert len(faults.calls) == calls
    events = [e.data.get("cached_from") for e in again.events() if e.type == "node.completed"]
    assert sorted(events) == sorted(n.job_id for n in first.nodes)


def test_what_comes_from_upstream_counts(client: Client, faults: Faults) -> None:
    """Given another upstream text, then what depends on it is made anew."""
    client.workflows.submit(poster()).wait()
    flow = Workflow("poster")
    facts = flow.add("facts", "research.gather", topic="Salt")
    flow.add("copy", "text.generate", objective="A teaser", depends_on=[facts])
    done = client.workflows.submit(flow).wait()
    assert [node.cached_from for node in done.nodes] == [None, None]


@pytest.mark.parametrize(
    "change",
    [
        {"input": {"objective": "One line on mills"}},
        {"name": "text.generate"},
        {"provider": "openai"},
        {"cache": False},
    ],
    ids=["input", "capability", "provider", "not asked for"],
)
def test_what_differs_is_made_anew(
    client: Client, faults: Faults, change: dict[str, object]
) -> None:
    """Given another input, capability or provider, or nobody who asks, then it is paid."""
    client.runs.create("llm.generate", ASKED).wait()
    given = {"name": "llm.generate", "input": ASKED, **change}
    again = client.runs.create(**given).wait()  # type: ignore[arg-type]
    assert (again.record.cached, len(faults.calls)) == (False, 2)


def test_only_who_asks_is_remembered(client: Client, faults: Faults) -> None:
    """Given a run without the cache, then it is not used again either."""
    client.runs.create("llm.generate", ASKED, cache=False).wait()
    assert client.runs.create("llm.generate", ASKED).wait().record.cached is False
    assert client.runs.create("llm.generate", ASKED).wait().record.cached is True


@pytest.mark.parametrize("durability", ["normal", "full"])
def test_equal_jobs_at_once_are_paid_once(
    settings: Settings, faults: Faults, durability: str
) -> None:
    """Given equal nodes that run side by side, then one is paid and the others wait for it."""
    synced = settings.model_copy(update={"durability": durability})
    faults.add(Fault("minimax", delay_ms=100, times=None))
    flow = Workflow("many")
    for i in range(8):
        flow.add(f"n{i}", "llm.generate", **ASKED)
    with Client.local(settings=synced, faults=faults, cache=True) as client:
        done = client.workflows.submit(flow).wait()
    assert len(faults.calls) == 1
    assert sum(node.cached_from is None for node in done.nodes) == 1


def test_a_failure_is_not_remembered(client: Client, faults: Faults) -> None:
    """Given a run that failed, then the next one is made."""
    faults.fail("minimax", status=400, times=1)
    assert client.runs.create("llm.generate", ASKED, provider="minimax").wait(check=False).error
    done = client.runs.create("llm.generate", ASKED, provider="minimax").wait()
    assert (done.status, done.record.cached) == ("completed", False)


def test_who_served_it_is_who_it_is_known_by(client: Client, faults: Faults) -> None:
    """Given a fallback, then its result is not taken for the default provider's."""
    faults.fail("minimax", status=503, times=None)
    fallen = client.runs.create("llm.generate", ASKED).wait()
    assert fallen.provider != "minimax"
    faults.clear()
    pinned = client.runs.create("llm.generate", ASKED, provider="minimax").wait()
    assert (pinned.provider, pinned.record.cached) == ("minimax", False)
    same = client.runs.create("llm.generate", ASKED, provider=fallen.provider).wait()
    assert same.record.cached_from in (None, fallen.record.job_id)


def test_a_named_artifact_counts_by_its_bytes(client: Client, faults: Faults) -> None:
    """Given the same reference audio uploaded twice, then a voice is cloned once."""
    runs = []
    for _ in range(2):
        reference = client.artifacts.upload(mp3(12.0), filename="ada.mp3")
        given = {"name": "Ada", "reference_audio": reference.id}
        runs.append(client.runs.create("voice.clone", given).wait())
    assert [run.record.cached for run in runs] == [False, True]


def test_a_new_process_finds_it(settings: Settings, faults: Faults) -> None:
    """Given a new engine on the same directory, then what was made before is used again."""
    for turn in range(2):
        with Client.local(settings=settings, faults=faults, cache=True) as client:
            run = client.runs.create("llm.generate", ASKED).wait()
            assert run.record.cached is bool(turn)
    assert len(faults.calls) == 1


def test_lost_bytes_are_made_again(client: Client, data_dir: Path, faults: Faults) -> None:
    """Given a result whose bytes are gone, then it is made again instead of failing."""
    spoken = {"text": "Tides turn twice a day, and mills with them. " * 8}
    first = client.runs.create("speech.generate", spoken).wait()
    sha256 = client.artifacts.get(first.artifact_id).record.sha256
    (found,) = [p for p in (data_dir / "artifacts").rglob("*") if p.is_file() and p.name in sha256]
    found.unlink()
    again = client.runs.create("speech.generate", spoken).wait()
    assert (again.record.cached, len(faults.calls)) == (False, 2)
    data = client.artifacts.get(again.artifact_id).content()
    assert hashlib.sha256(data).hexdigest() == sha256
    assert json.dumps(again.record.output)


def test_each_account_keeps_its_own_results(settings: Settings, faults: Faults) -> None:
    """Given equal runs of two accounts of a server, then each pays, and finds its own again."""
    server = Server(settings, faults)
    try:
        keys = [server.sign_up("minimax", email=f"{name}@example.org") for name in ("ada", "bo")]
        clients = [Client(base_url=server.url, api_key=key) for key in keys]
        found = []
        for client in (*clients, *clients):
            run = client.runs.create("llm.generate", ASKED, cache=True).wait()
            found.append((run.record.cached, run.record.cached_from, run.record.job_id))
            assert client.jobs.get(run.record.cached_from or run.record.job_id)
        assert [cached for cached, _, _ in found] == [False, False, True, True]
        assert [origin for _, origin, _ in found[2:]] == [job_id for _, _, job_id in found[:2]]
        assert sum(call.billed for call in faults.calls) == 2
        for client in clients:
            client.close()
    finally:
        server.close()


def test_another_model_makes_another_result(client: Client, faults: Faults) -> None:
    """Given an equal run that another model would serve, then it is made, and both are found."""
    models = []
    for _ in range(2):
        for policy in ("cost", "quality"):
            run = client.runs.create(
                "llm.generate", ASKED, provider="anthropic", optimize_for=policy
            ).wait()
            models.append((run.record.model, run.record.cached))
    (cheap, _), (best, _) = models[:2]
    assert cheap != best
    assert models == [(cheap, False), (best, False), (cheap, True), (best, True)]
    assert len(faults.calls) == 2
