"""Sealed work: one model at one host answers all calls of a capability."""

import pandas as pd
import pytest

from toolkit import Client, Workflow
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings

LINE = {"objective": "A line about tea"}
HAIKU = "claude-haiku-5-5"


def answer_as(faults: Faults, model: str) -> None:
    """Let Anthropic name this model in its answers."""
    faults.clear("anthropic")
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": model,
        "content": [{"type": "text", "text": "Tea is served."}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 9, "output_tokens": 5},
    }  # fmt: skip
    faults.add(Fault("anthropic", status=200, body=message))


def answer_at(faults: Faults, host: str) -> None:
    """Let OpenRouter name this host in its answers."""
    faults.clear("openrouter")
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": "Tea."},
    }
    usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
    body = {"id": "gen-1", "model": "small", "provider": host, "choices": [choice], "usage": usage}
    faults.add(Fault("openrouter", status=200, body=body))


def ask(client: Client, sealed: str, **options: object) -> tuple[str, str]:
    """Do a sealed run; return its error code and the model that answered, or empty texts."""
    run = client.runs.create("llm.generate", LINE, sealed=sealed, **options)
    run.wait(progress=False, check=False)
    return run.error.code if run.error else "", run.model or ""


def test_later_runs_keep_the_first_model(client: Client, settings: Settings) -> None:
    """Given a seal, then later runs use its model under any goal, or are refused, also later."""
    assert ask(client, "a", provider=f"anthropic/{HAIKU}") == ("", f"{HAIKU}-sandbox")
    assert ask(client, "a", only="anthropic", optimize_for="quality") == ("", f"{HAIKU}-sandbox")
    assert ask(client, "a", provider="openai") == ("SEAL_BROKEN", "")
    refused = client.runs.list()[0]
    assert refused.cost_incurred_usd == 0
    assert f"sealed to `anthropic/{HAIKU}-sandbox`" in refused.error.message
    reasons = {c.reason for c in refused.routing.candidates}
    assert f"the work is sealed to `anthropic/{HAIKU}`" in reasons
    assert ask(client, "b", provider="openai")[0] == "", "another seal"
    card = client.runs.create("composition.layout", {"title": "Tea"}, sealed="a")
    assert card.wait(progress=False).status == "completed"


@pytest.mark.embedded
def test_compares_the_model_that_answers(client: Client, faults: Faults) -> None:
    """Given the same dated name in each answer, then it is the same model; another is refused."""
    for _ in range(2):
        answer_as(faults, f"{HAIKU}-20260801")
        assert ask(client, "a", provider="anthropic") == ("", f"{HAIKU}-20260801")
    answer_as(faults, f"{HAIKU}-20261101")
    assert ask(client, "a", provider="anthropic") == ("SEAL_BROKEN", f"{HAIKU}-20261101")
    run = client.runs.list()[0]
    assert run.cost_incurred_usd > 0, "the answer was paid"
    assert "20261101` has answered" in run.error.message
    assert run.attempts[0].status == "completed"


@pytest.mark.embedded
def test_compares_the_host_that_answers(client: Client, faults: Faults) -> None:
    """Given a provider that names the host behind it, then an answer of a second host fails."""
    client.connections.create("openrouter", "environment", "OPENROUTER_API_KEY")
    for host, code in (("Lantern", ""), ("Lantern", ""), ("Harbour", "SEAL_BROKEN")):
        answer_at(faults, host)
        assert ask(client, "a", provider="openrouter")[0] == code
        assert client.runs.list()[0].upstream == host
    assert "at Lantern" in client.runs.list()[0].error.message


@pytest.mark.embedded
def test_each_capability_of_a_workflow_has_its_own_model(client: Client) -> None:
    """Given a sealed workflow, then nodes of a capability share a model, and no other work does."""
    wf = Workflow("report", sealed=True)
    first = wf.add("first", "llm.generate", input=LINE, options={"only": ["google", "openai"]})
    said = wf.add("said", "speech.generate", text="Tea", depends_on=[first])
    wf.add("second", "llm.generate", input=LINE, depends_on=[said])
    nodes = client.workflows.submit(wf).wait(progress=False).nodes
    providers = {node.id: node.provider for node in nodes}
    assert providers["first"] == providers["second"] != providers["said"]
    wf.add("third", "llm.generate", input=LINE, options={"provider": "aws"}, depends_on=["second"])
    for _ in range(2):  # each workflow has its own seal
        failed = client.workflows.submit(wf).wait(progress=False, check=False)
        assert [n.error.code for n in failed.nodes if n.error] == ["SEAL_BROKEN"]
        fork = client.workflows.fork(failed.id, "third").wait(progress=False, check=False)
        assert fork.record.options.sealed == failed.id, "a fork shares the seal of its results"
        assert [n.error.code for n in fork.nodes if n.error] == ["SEAL_BROKEN"]


@pytest.mark.embedded
def test_a_run_sealed_alone_shares_nothing(client: Client) -> None:
    """Given runs that are sealed each on its own, then each may use another model."""
    for provider in ("openai", "google"):
        run = client.runs.create("llm.generate", LINE, sealed=True, provider=provider)
        assert run.wait(progress=False).provider == provider


def test_a_map_keeps_its_model_after_a_restart(settings: Settings, faults: Faults) -> None:
    """Given a sealed map, when the model changes before it resumes, then later rows fail."""

    def classify(rows: list[str]) -> pd.DataFrame:
        with Client.local(settings=settings, faults=faults) as client:
            return client.map(
                "llm.generate",
                rows,
                objective="{text}",
                options={"only": "anthropic"},
                sealed=True,
                progress=False,
            )

    answer_as(faults, "claude-a")
    assert list(classify(["tea", "salt"])["status"]) == ["completed"] * 2
    answer_as(faults, "claude-b")
    table = classify(["tea", "salt", "rope"])
    assert list(table["status"]) == ["completed", "completed", "failed"]
    assert table["error"][2].startswith("SEAL_BROKEN: `anthropic/claude-b` has answered")
    answer_as(faults, "claude-a")
    assert list(classify(["tea", "salt", "rope"])["status"]) == ["completed"] * 3


def test_sealed_work_takes_cached_results_of_its_model_only(
    settings: Settings, faults: Faults
) -> None:
    """Given cached results of two models, then sealed work reuses those of the sealed model."""
    with Client.local(settings=settings, faults=faults, cache=True) as client:
        answer_as(faults, "claude-a")
        fields = [{"objective": word} for word in ("tea", "salt")]

        def run(field: dict[str, str], **options: object) -> object:
            run = client.runs.create("llm.generate", field, provider="anthropic", **options)
            return run.wait(progress=False, check=False)

        run(fields[0])
        answer_as(faults, "claude-b")
        run(fields[1])
        answer_as(faults, "claude-a")
        opening = run({"objective": "rope"}, sealed="a")
        cached, fresh = (run(field, sealed="a") for field in fields)
        assert (opening.model, opening.record.cached) == ("claude-a", False)
        assert (cached.model, cached.record.cached) == ("claude-a", True)
        assert (fresh.model, fresh.record.cached) == ("claude-a", False)
