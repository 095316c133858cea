"""The commands, each on the engine in its own process and on a server."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.conftest import Server
from toolkit.cli import app
from toolkit.contract.account import AccountCreate
from toolkit.contract.errors import RequestError

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
    """The command line, on one of the two places that it can speak to."""
    monkeypatch.chdir(tmp_path)
    where: list[str] = ["--sandbox"]
    if request.param == "served":
        service: Server = request.getfixturevalue("service")
        accounts = service.thread.engine.accounts  # an address may open a few of them alone
        asked = AccountCreate(email=f"{tmp_path.name}@example.org")
        account = service.thread.call(accounts.create(asked))
        monkeypatch.setenv("TOOLKIT_BASE_URL", service.url)
        monkeypatch.setenv("TOOLKIT_API_KEY", account.api_key)
        where = []

    def invoke(*line: str, **options: Any) -> Result:
        return CliRunner().invoke(app, [*line, *where], catch_exceptions=False, **options)

    return invoke


def test_a_run_is_followed_listed_and_saved(toolkit: Invoke, tmp_path: Path) -> None:
    """Given a run, then its id leads to its record, its events, its artifact and the list."""
    made = toolkit("run", *CARD, "--json")
    run = json.loads(made.stdout)
    assert json.loads(toolkit("runs", "show", run["id"], "--json").stdout)["id"] == run["id"]
    followed = toolkit("runs", "events", run["id"], "--follow", "--json").stdout.splitlines()
    assert json.loads(followed[-1])["type"] == "run.completed"
    assert [json.loads(line)["n"] for line in followed] == list(range(1, len(followed) + 1))
    assert run["id"] in toolkit("runs").stdout
    saved = toolkit("artifacts", "save", run["artifact_id"], "card.png")
    assert saved.stdout.strip() == "card.png"
    piped = toolkit("artifacts", "save", run["artifact_id"], "-")
    assert piped.stdout_bytes == (tmp_path / "card.png").read_bytes()


def test_a_list_of_runs_tells_them_apart(toolkit: Invoke) -> None:
    """Given runs of one capability, then their list has the beginning of each input, in a line."""
    for text in ("Salt", "Tea, " * 20):
        toolkit("run", "composition.layout", f"title={text}", "--quiet")
    _, tea, salt = toolkit("runs").stdout.splitlines()
    assert salt.rstrip().endswith("title: Salt")
    assert "title: Tea, Tea, " in tea
    assert len(tea.partition("title")[2]) < 60
    with pytest.raises(RequestError) as refused:
        toolkit("compare", salt.split()[0], "tsk_1")
    assert str(refused.value).endswith("give two runs, two workflows or two tasks.")


def test_work_that_nobody_waits_for_is_picked_up_by_its_id(toolkit: Invoke) -> None:
    """Given `--no-wait`, then the id is all that is printed, and `wait` shows the end."""
    run_id = toolkit("runs", "create", *CARD, "--no-wait").stdout.strip()
    done = toolkit("runs", "wait", run_id, "--quiet")
    assert "✓ completed" in done.stdout
    assert done.stderr == ""
    assert "✓ completed" in toolkit("runs", "cancel", run_id).stdout


def test_a_list_says_when_there_are_more(toolkit: Invoke) -> None:
    """Given more than were asked for, then a hint says so, and `--all` shows them all."""
    ids = [
        json.loads(toolkit("plans", "create", "A card about tea", "--json").stdout)["id"]
        for _ in range(3)
    ]
    some = toolkit("plans", "list", "--limit", "2", "--json")
    assert [plan["id"] for plan in json.loads(some.stdout)] == ids[:0:-1]
    assert some.stderr == "2 of 3 are shown: use --all, or a higher --limit.\n"
    everything = toolkit("plans", "list", "--all", "--json")
    assert [plan["id"] for plan in json.loads(everything.stdout)] == ids[::-1]
    assert everything.stderr == ""
    assert toolkit("endpoints").stderr == "There are none.\n"


def test_a_plan_says_who_made_it(toolkit: Invoke) -> None:
    """Given `--planner`, then a model plans or the rules do, and no one else is taken."""
    toolkit("connections", "create", "openai", "OPENAI_API_KEY")
    for planner in ("llm", "rules"):
        made = toolkit("plans", "create", "A poem about tea", "--planner", planner, "--json")
        assert json.loads(made.stdout)["planner"] == planner, made.stdout
        only = ("task", "A poem about tea", "--plan-only", "--planner", planner, "--json")
        assert json.loads(toolkit(*only).stdout)["planner"] == planner
    assert toolkit("plans", "create", "A poem about tea", "--planner", "gpt").exit_code == 2


def test_a_workflow_is_run_from_a_file_and_forked(toolkit: Invoke, tmp_path: Path) -> None:
    """Given a file, then its workflow is run and saved; a fork of it keeps what stays equal."""
    (tmp_path / "card.yaml").write_text(WORKFLOW, encoding="utf-8")
    done = toolkit("workflow", "run", "card.yaml", "--json", "--out", "made")
    first = json.loads(done.stdout)
    assert (tmp_path / "made" / "second.png").is_file()
    shown = toolkit("workflows", "fork", first["id"], "second", "title=Three")
    assert shown.stdout.count("✓ completed") == 3
    again = toolkit("workflows", "submit", "-", "--quiet", "--json", input=WORKFLOW)
    assert json.loads(again.stdout)["status"] == "completed"


def test_input_comes_from_a_file_and_the_line(toolkit: Invoke, tmp_path: Path) -> None:
    """Given a file and fields, then the fields win."""
    given = {"title": "Tea", "width": 300, "height": 200}
    (tmp_path / "card.json").write_text(json.dumps(given), encoding="utf-8")
    made = toolkit("run", "composition.layout", "width:=400", "--input", "card.json", "--quiet")
    shown = json.loads(made.stdout)
    assert (shown["width"], shown["height"]) == (400, 200)


def test_a_capability_is_shown(toolkit: Invoke) -> None:
    """Given a name, then its facts are shown, and its schemas with --json."""
    assert "Generate text" in toolkit("capabilities", "show", "llm.generate").stdout
    whole = json.loads(toolkit("capabilities", "show", "llm.generate@1", "--json").stdout)
    assert "objective" in whole["input_schema"]["properties"]


def test_a_plan_does_nothing(toolkit: Invoke) -> None:
    """Given `--plan-only`, then the nodes are shown and there is no task."""
    shown = toolkit("task", "A social card about tea", "--plan-only")
    assert "composition.layout" in shown.stdout
    assert json.loads(toolkit("tasks", "--json").stdout) == []


def test_a_connection_comes_and_goes(toolkit: Invoke) -> None:
    """Given a pointer, then it can be made, tried by its vendor, and forgotten."""
    made = toolkit("connections", "create", "openai", "OPENAI_API_KEY", "--json")
    assert toolkit("connections", "test", "openai").exit_code == 0
    made_id = json.loads(made.stdout)["id"]
    assert json.loads(toolkit("connections", "delete", made_id, "--json").stdout)["deleted"] is True


def test_a_key_comes_and_goes(toolkit: Invoke) -> None:
    """Given a new key, then it is shown once, listed without itself, and revoked."""
    made = json.loads(toolkit("keys", "create", "--scope", "read", "--json").stdout)
    assert made["api_key"] not in toolkit("keys", "list", "--json").stdout
    assert "revoked at" in toolkit("keys", "revoke", made["id"]).stdout


def test_a_route_is_explained(toolkit: Invoke) -> None:
    """Given a capability, then each vendor is listed with why it was kept or dropped."""
    shown = toolkit("route", "llm.generate", "objective=One line on tea", "--optimize-for", "cost")
    assert "minimax" in shown.stdout
    assert "reason" in shown.stdout


def test_a_route_explains_that_the_default_provider_wins(toolkit: Invoke) -> None:
    """Given providers with higher scores than the default one, then its reason names the option."""
    for provider in ("minimax", "openai"):
        toolkit("connections", "create", provider, f"{provider.upper()}_API_KEY")
    asked = ("route", "llm.generate", "objective=One line on tea")
    found = json.loads(toolkit(*asked, "--json").stdout)["candidates"]
    first, *others = [one for one in found if not one["excluded"]]
    assert max(one["score"] for one in others) > first["score"]
    assert "the default provider" in first["reason"]
    assert "optimize_for" in first["reason"]
    assert first["reason"] in toolkit(*asked).stdout
    alone = json.loads(toolkit(*asked, "--provider", "minimax", "--json").stdout)["candidates"]
    assert "optimize_for" not in alone[0]["reason"]


def test_two_runs_are_compared(toolkit: Invoke) -> None:
    """Given runs that differ in a title, then that is printed, and with --json every fact."""
    ids = [
        json.loads(toolkit("run", *CARD, f"title={title}", "--json").stdout)["id"]
        for title in ("Tea", "Salt")
    ]
    shown = toolkit("compare", *ids)
    (row,) = [line for line in shown.stdout.splitlines() if line.startswith("input.title")]
    assert row.split() == ["input.title", "Tea", "Salt"]
    assert "capability" not in shown.stdout
    facts = json.loads(toolkit("compare", *ids, "--json").stdout)["facts"]
    (status,) = [one for one in facts if one["what"] == "status"]
    assert (status["a"], status["b"], status["differs"]) == ("completed", "completed", False)


def test_an_agent_is_registered_and_run(toolkit: Invoke) -> None:
    """Given an objective with a parameter, then a run fills it in, and a person may judge it."""
    toolkit("agents", "create", "card-maker", "A social card about {topic}", "--json")
    made = json.loads(toolkit("agents", "list", "--json").stdout)[0]
    assert made["parameters"] == ["topic"]
    for provider, variable in (("minimax", "MINIMAX_API_KEY"), ("openai", "OPENAI_API_KEY")):
        toolkit("connections", "create", provider, variable)
    run = json.loads(toolkit("agents", "run", "card-maker", "topic=tea", "--json").stdout)
    assert run["status"] == "completed"
    task = json.loads(toolkit("tasks", "list", "--json").stdout)[0]
    judged = toolkit("tasks", "review", task["id"], "fail", "--issue", "It is green.")
    assert "It is green." in judged.stdout
    lineage = toolkit("artifacts", "lineage", run["artifact_id"]).stdout
    assert "composition.layout" in lineage
    assert "minimax" in toolkit("usage", "--by", "provider").stdout
    assert "platform" in toolkit("billing").stdout
    assert json.loads(toolkit("agents", "delete", made["id"], "--json").stdout)["deleted"] is True
