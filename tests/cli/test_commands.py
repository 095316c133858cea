"""The commands, each on the engine of its own process and on a server."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.conftest import Server
from toolkit.cli import app
from toolkit.contract.account import AccountCreate
from toolkit.contract.errors import RequestError, ToolkitError

Invoke = Callable[..., Result]
CARD = ["composition.layout", "title=Tea", "width:=300", "height:=200"]
WORKFLOW = """
name: card
nodes:
  - {id: first, capability: composition.layout, input: {title: Tea, width: 300, height: 200}}
  - {id: second, capability: composition.layout, input: {title: Two, width: 300, height: 200},
     depends_on: [first]}
"""


@pytest.fixture(params=["embedded", "served"])
def toolkit(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Invoke:
    """Run a command, on an engine of its own and on a server."""
    monkeypatch.chdir(tmp_path)
    options: list[str] = ["--sandbox"]
    if request.param == "served":
        service: Server = request.getfixturevalue("service")
        accounts = service.thread.engine.accounts  # an address may open only a few of them
        account_create = AccountCreate(email=f"{tmp_path.name}@example.org")
        account = service.thread.call(accounts.create(account_create))
        monkeypatch.setenv("TOOLKIT_BASE_URL", service.url)
        monkeypatch.setenv("TOOLKIT_API_KEY", account.api_key)
        options = []

    def invoke(*line: str, **arguments: Any) -> Result:
        return CliRunner().invoke(app, [*line, *options], catch_exceptions=False, **arguments)

    return invoke


def test_follows_lists_and_saves_a_run(toolkit: Invoke, tmp_path: Path) -> None:
    """Given a run, then its id leads to its record, events and artifact, and the list has it."""
    run = json.loads(toolkit("run", *CARD, "--json").stdout)
    assert json.loads(toolkit("runs", "show", run["id"], "--json").stdout)["id"] == run["id"]
    followed = toolkit("runs", "events", run["id"], "--follow", "--json").stdout.splitlines()
    assert json.loads(followed[-1])["type"] == "run.completed"
    assert [json.loads(line)["n"] for line in followed] == list(range(1, len(followed) + 1))
    assert run["id"] in toolkit("runs").stdout
    saved = toolkit("artifacts", "save", run["artifact_id"], "card.png")
    assert saved.stdout.strip() == "card.png"
    piped = toolkit("artifacts", "save", run["artifact_id"], "-")
    assert piped.stdout_bytes == (tmp_path / "card.png").read_bytes()


def test_list_of_runs_shows_the_inputs(toolkit: Invoke) -> None:
    """Given runs of one capability, then each line of their list shows the start of the input."""
    for text in ("Salt", "Tea, " * 20):
        toolkit("run", "composition.layout", f"title={text}", "--quiet")
    _, tea, salt = toolkit("runs").stdout.splitlines()
    assert salt.rstrip().endswith("title: Salt")
    assert "title: Tea, Tea, " in tea
    assert len(tea.partition("title")[2]) < 60
    with pytest.raises(RequestError) as refused:
        toolkit("compare", salt.split()[0], "tsk_1")
    assert str(refused.value).endswith("give two runs, two workflows or two tasks.")


def test_list_of_maps_has_filters(toolkit: Invoke, tmp_path: Path) -> None:
    """Given a map with a tag, then filters find it, and its record has the expected cost."""
    (tmp_path / "topics.csv").write_text("topic\ntea\nsalt\n")
    card = ["composition.layout", "topics.csv", "title={topic}", *CARD[2:]]
    assert toolkit("map", *card, "--tag", "spring", "--quiet").stdout.count("completed") == 2
    (found,) = json.loads(toolkit("maps", "list", "--tag", "spring", "--json").stdout)
    for options in (["--status", "failed"], ["--capability", "llm.generate"], ["--q", "rope"]):
        assert json.loads(toolkit("maps", "list", *options, "--json").stdout) == []
    completed = toolkit("maps", "list", "--status", "completed", "--q", "TOPIC", "--json").stdout
    assert json.loads(completed) == [found]
    shown = json.loads(toolkit("maps", "show", found["id"], "--json").stdout)
    assert shown["estimated_cost_usd"] == shown["cost_incurred_usd"] == 0


def test_waits_for_a_run_by_its_id(toolkit: Invoke) -> None:
    """Given `--no-wait`, then only the id is printed, and `wait` shows the result."""
    run_id = toolkit("runs", "create", *CARD, "--no-wait").stdout.strip()
    result = toolkit("runs", "wait", run_id, "--quiet")
    assert "✓ completed" in result.stdout
    assert result.stderr == ""
    assert "✓ completed" in toolkit("runs", "cancel", run_id).stdout


def test_list_hints_at_more_records(toolkit: Invoke) -> None:
    """Given more records than the limit, then a hint names `--all`, which shows them all."""
    ids = [
        json.loads(toolkit("plans", "create", "A card about tea", "--json").stdout)["id"]
        for _ in range(3)
    ]
    page = toolkit("plans", "list", "--limit", "2", "--json")
    assert [plan["id"] for plan in json.loads(page.stdout)] == ids[:0:-1]
    assert page.stderr == "2 of 3 are shown: use --all, or a higher --limit.\n"
    everything = toolkit("plans", "list", "--all", "--json")
    assert [plan["id"] for plan in json.loads(everything.stdout)] == ids[::-1]
    assert everything.stderr == ""
    assert toolkit("endpoints").stderr == "There are none.\n"


def test_plans_by_the_named_planner(toolkit: Invoke) -> None:
    """Given `--planner`, then the plan names that planner; `--plan-only` starts no task."""
    toolkit("connections", "create", "openai", "OPENAI_API_KEY")
    for planner in ("llm", "rules"):
        plan = toolkit("plans", "create", "A poem about tea", "--planner", planner, "--json")
        assert json.loads(plan.stdout)["planner"] == planner, plan.stdout
        line = ("task", "A poem about tea", "--plan-only", "--planner", planner)
        assert json.loads(toolkit(*line, "--json").stdout)["planner"] == planner
        assert "llm.generate" in toolkit(*line).stdout
    assert json.loads(toolkit("tasks", "--json").stdout) == []
    assert toolkit("plans", "create", "A poem about tea", "--planner", "gpt").exit_code == 2


def test_saves_the_artifacts_of_a_task(toolkit: Invoke, tmp_path: Path) -> None:
    """Given `--out`, when a task ends, then its artifacts are in the folder."""
    for provider in ("minimax", "openai"):
        toolkit("connections", "create", provider, f"{provider.upper()}_API_KEY")
    toolkit("task", "A social card about tea", "--out", "out")
    assert [path.suffix for path in (tmp_path / "out").iterdir()] == [".png"]


def test_runs_a_workflow_from_a_file_and_forks_it(toolkit: Invoke, tmp_path: Path) -> None:
    """Given a file, then its workflow runs and is saved; a fork reuses the unchanged nodes."""
    (tmp_path / "card.yaml").write_text(WORKFLOW, encoding="utf-8")
    result = toolkit("workflow", "run", "card.yaml", "--json", "--out", "saved")
    workflow = json.loads(result.stdout)
    assert (tmp_path / "saved" / "second.png").is_file()
    fork = toolkit("workflows", "fork", workflow["id"], "second", "title=Three")
    assert fork.stdout.count("✓ completed") == 3
    again = toolkit("workflows", "submit", "-", "--quiet", "--json", input=WORKFLOW)
    assert json.loads(again.stdout)["status"] == "completed"


def test_fields_override_the_input_file(toolkit: Invoke, tmp_path: Path) -> None:
    """Given a file and fields, then the fields win, and `--save` writes the artifact."""
    fields = {"title": "Tea", "width": 300, "height": 200}
    (tmp_path / "card.json").write_text(json.dumps(fields), encoding="utf-8")
    line = ("run", "composition.layout", "width:=400", "format=svg", "--input", "card.json")
    output = json.loads(toolkit(*line, "--quiet", "--save", "card.svg").stdout)
    assert (output["width"], output["height"]) == (400, 200)
    assert (tmp_path / "card.svg").read_text().lstrip().startswith(("<svg", "<?xml"))


def test_shows_capabilities(toolkit: Invoke) -> None:
    """Given a capability, then the list names it, `show` its facts, and --json its schemas."""
    assert "composition.layout@1" in toolkit("capabilities").stdout
    assert "Generate text" in toolkit("capabilities", "show", "llm.generate").stdout
    record = json.loads(toolkit("capabilities", "show", "llm.generate@1", "--json").stdout)
    assert "objective" in record["input_schema"]["properties"]


def test_creates_tests_and_deletes_a_connection(toolkit: Invoke) -> None:
    """Given a pointer, then a connection is created, tested and deleted."""
    connection = toolkit("connections", "create", "openai", "OPENAI_API_KEY", "--json")
    assert "works" in toolkit("connections", "test", "openai").stdout
    with pytest.raises(ToolkitError, match="not connected"):
        toolkit("connections", "test", "nobody")
    line = ("connections", "delete", json.loads(connection.stdout)["id"], "--json")
    assert json.loads(toolkit(*line).stdout)["deleted"] is True


def test_creates_and_revokes_a_key(toolkit: Invoke) -> None:
    """Given a new key, then it is printed once, listed without its secret, and revoked."""
    key = json.loads(toolkit("keys", "create", "--scope", "read", "--json").stdout)
    assert key["api_key"] not in toolkit("keys", "list", "--json").stdout
    assert "revoked at" in toolkit("keys", "revoke", key["id"]).stdout


def test_route_explains_the_default_provider(toolkit: Invoke) -> None:
    """Given providers with higher scores than the default provider, then its reason says why."""
    for provider in ("minimax", "openai"):
        toolkit("connections", "create", provider, f"{provider.upper()}_API_KEY")
    line = ("route", "llm.generate", "objective=One line on tea")
    candidates = json.loads(toolkit(*line, "--json").stdout)["candidates"]
    default, *rivals = [candidate for candidate in candidates if not candidate["excluded"]]
    assert max(candidate["score"] for candidate in rivals) > default["score"]
    assert "the default provider" in default["reason"]
    assert "optimize_for" in default["reason"]
    assert default["reason"] in toolkit(*line).stdout
    for options in (("--provider", "minimax"), ("--optimize-for", "cost")):
        answer = json.loads(toolkit(*line, *options, "--json").stdout)
        assert "optimize_for" not in answer["candidates"][0]["reason"]


def test_lists_of_providers_and_a_seal_choose_the_provider(toolkit: Invoke) -> None:
    """Given `--only`, `--ignore` and `--sealed`, then they decide which provider is called."""
    for provider in ("minimax", "openai", "google"):
        toolkit("connections", "create", provider, f"{provider.upper()}_API_KEY")
    line = ("route", "llm.generate", "objective=One line on tea", "--json")
    lists = ("--only", "openai", "--only", "google", "--ignore", "openai")
    route = json.loads(toolkit(*line, *lists).stdout)
    assert route["provider"] == "google"
    assert {c["reason"] for c in route["candidates"] if c["provider"] == "minimax"} == {
        "not in `only`"
    }
    with pytest.raises(RequestError, match="Did you mean `openai`"):
        toolkit(*line, "--only", "opnai")
    run = ("run", "composition.layout", "title=Tea", "--sealed", "cards", "--json")
    assert json.loads(toolkit(*run).stdout)["options"]["sealed"] == "cards"
    refused = toolkit(*line, "--only", "openai", "--provider", "openai")
    assert refused.exit_code == 2
    assert "either --provider, or --only" in refused.stderr


def test_compares_two_runs(toolkit: Invoke) -> None:
    """Given runs with two titles, then the table has the title, and --json has every fact."""
    ids = [
        json.loads(toolkit("run", *CARD, f"title={title}", "--json").stdout)["id"]
        for title in ("Tea", "Salt")
    ]
    table = toolkit("compare", *ids).stdout
    (row,) = [line for line in table.splitlines() if line.startswith("input.title")]
    assert row.split() == ["input.title", "Tea", "Salt"]
    assert "capability" not in table
    facts = json.loads(toolkit("compare", *ids, "--json").stdout)["facts"]
    (status,) = [fact for fact in facts if fact["what"] == "status"]
    assert (status["a"], status["b"], status["differs"]) == ("completed", "completed", False)


def test_creates_runs_and_deletes_an_agent(toolkit: Invoke) -> None:
    """Given an objective with a parameter, then a run uses the parameter, and accepts a review."""
    toolkit("agents", "create", "card-maker", "A social card about {topic}", "--json")
    agent = json.loads(toolkit("agents", "list", "--json").stdout)[0]
    assert agent["parameters"] == ["topic"]
    for provider in ("minimax", "openai"):
        toolkit("connections", "create", provider, f"{provider.upper()}_API_KEY")
    run = json.loads(toolkit("agents", "run", "card-maker", "topic=tea", "--json").stdout)
    assert run["status"] == "completed"
    task = json.loads(toolkit("tasks", "list", "--json").stdout)[0]
    review = toolkit("tasks", "review", task["id"], "fail", "--issue", "It is green.")
    assert "It is green." in review.stdout
    lineage = toolkit("artifacts", "lineage", run["artifact_id"]).stdout
    assert "composition.layout" in lineage
    assert "minimax" in toolkit("usage", "--by", "provider").stdout
    assert "platform" in toolkit("billing").stdout
    assert json.loads(toolkit("agents", "delete", agent["id"], "--json").stdout)["deleted"] is True


def test_runs_in_the_flex_tier(toolkit: Invoke) -> None:
    """Given `--tier flex`, then the run is billed in that tier; an unknown tier is refused."""
    toolkit("connections", "create", "openai", "OPENAI_API_KEY")
    asked = ["llm.generate", "objective=One line on tides", "--provider", "openai"]
    run = json.loads(toolkit("run", *asked, "--tier", "flex", "--json").stdout)
    assert (run["options"]["tier"], run["tier"]) == ("flex", "flex")
    assert toolkit("run", *asked, "--tier", "fast").exit_code == 2
