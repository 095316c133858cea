"""The magics, in an IPython shell on the sandbox."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.notebooks.shells import NotebookShell, open_notebook_shell
from toolkit import Client
from toolkit.client import Workflow
from toolkit.contract.errors import ToolkitError

KEY = "sk-proj-c0ffee5d41402abc4b2a76b9719d911017c592"
FLOW = """\
name: two-lines
nodes:
  - id: first
    capability: llm.generate
    input: {objective: "One line on {topic}"}
  - id: second
    capability: llm.generate
    input: {objective: "Another: {topic}", max_tokens: "{tokens}"}
    depends_on: [first]
"""


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotebookShell]:
    """A shell with a sandbox engine, started by the first magic."""
    setup = "topic = 'tea'\n%load_ext toolkit\n%capabilities"
    with open_notebook_shell(tmp_path_factory.mktemp("magics"), setup) as opened:
        yield opened


def test_the_first_magic_creates_the_client(shell: NotebookShell) -> None:
    """Given no client, when magics are used, then they share a client that the notebook can use."""
    assert isinstance(shell.ip.user_ns["toolkit_client"], Client)
    assert shell("%capabilities")["llm.generate"].title == "Generate text"
    assert shell("%capabilities speech.generate@1").id == "speech.generate"
    connections = shell("%connect")
    assert {connection.record.provider for connection in connections} >= {"openai", "minimax"}
    assert "main text" in shell.ip.find_cell_magic("run").__doc__
    assert "--max-cost-usd" in shell.ip.find_cell_magic("run").__doc__
    assert shell.ip.find_line_magic("run").__module__.startswith("IPython")


def test_runs_a_cell_with_its_variables(shell: NotebookShell) -> None:
    """Given a cell, then its text with variables filled in is the input, and the run returns."""
    run = shell(
        "%%run llm.generate@1 max_tokens:=60 system='On {topic}.' --provider openai -q --to line\n"
        'One line on {topic}, not {{topic}}, {"a": 1}\n'
    )
    assert run is shell.ip.user_ns["line"]
    assert (run.status, run.provider) == ("completed", "openai")
    assert run.record.input == {
        "objective": 'One line on tea, not {topic}, {"a": 1}',
        "max_tokens": 60,
        "system": "On tea.",
    }
    lists = "--only openai --only google --ignore openai --sealed lines"
    listed = shell(f"%%run llm.generate -q {lists}\nOne line")
    assert (listed.provider, listed.record.options.sealed) == ("google", "lines")
    options = "--tag tea --tag first --note 'Too fast.'"
    speech = shell(f"%%run speech.generate -q {options}\nTea is served.")
    assert (speech.tags, speech.note) == (["tea", "first"], "Too fast.")
    assert speech.record.input == {"text": "Tea is served."}
    card = shell("%%run composition.layout format=svg --no-wait\nTea").wait()
    assert card.record.input == {"title": "Tea", "format": "svg"}
    lines = shell("%usage capability")
    assert {line.record.capability for line in lines} >= {"llm.generate@1", "speech.generate@1"}


@pytest.mark.parametrize(
    ("text", "node_id"),
    [
        ('" a b "', " a b "),
        ("Tee-für-茶-🍵", "Tee-für-茶-🍵"),
        ("x" * 200, "x" * 200),
        ('"1"', "1"),
    ],
)
def test_keeps_an_unusual_id(shell: NotebookShell, text: str, node_id: str) -> None:
    """Given an id as YAML may write it, then the node has it, drawn or run."""
    shell.ip.user_ns["tokens"] = 40
    cell = FLOW.replace("first", text)
    draft = shell(f"%%workflow -q --draw\n{cell}")
    assert draft.to_dict()["nodes"][1]["depends_on"] == [node_id]
    assert draft.picture().startswith("<svg")
    workflow = shell(f"%%workflow -q\n{cell}")
    assert [node.id for node in workflow.nodes] == [node_id, "second"]
    assert {node.status for node in workflow.nodes} == {"completed"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1", "is read as 1 and"),
        ("yes", "is read as true and"),
        ("null", "is read as null and"),
        ("[a]", "is read as"),
        ("2026-11-20", "has a date at `nodes.0.id`"),
        ('""', "id"),
        ("x" * 300, "id"),
    ],
)
def test_rejects_an_id_that_is_no_text(shell: NotebookShell, text: str, message: str) -> None:
    """Given an id that YAML reads as another type, or an id of a wrong length, then one error."""
    shell.ip.user_ns["tokens"] = 40
    with pytest.raises(ToolkitError) as caught:
        shell(f"%%workflow -q\n{FLOW.replace('first', text)}")
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_plans_draws_and_runs_cells(shell: NotebookShell) -> None:
    """Given an objective or a body in YAML, then it is planned, drawn, or run to its end."""
    plan = shell("%%task --plan-only\nA social card about {topic}")
    assert plan.record.objective == "A social card about tea"
    task = shell("%%task --max-cost-usd 0.1 -q\nA narration about {topic}")
    assert (task.status, task.record.constraints.max_cost_usd) == ("completed", 0.1)
    shell.ip.user_ns["tokens"] = 40
    draft = shell(f"%%workflow --draw --to drawing\n{FLOW}")
    assert isinstance(draft, Workflow)
    assert draft.nodes[1]["input"] == {"objective": "Another: tea", "max_tokens": 40}


def test_evaluates_no_expression(shell: NotebookShell) -> None:
    """Given an expression in braces, then it stays text."""
    text = "{topic.__class__} {topic!r} {1+1}"
    assert shell(f"%%run llm.generate -q\n{text}").record.input["objective"] == text


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("%%run llm.generate objective=tea\ntea", "objective is given twice"),
        ("%%run llm.generate tea\ntea", "`tea` is not name=value"),
        ("%%run llm.generate 'tea\ntea", "pair of quotes"),
        ("%%run llm.generate --to a.b\ntea", "not a valid name of a variable"),
        ("%%workflow\nname: x", "INVALID_REQUEST"),
        ("%connect --client topic", "topic is not a Client"),
        ("%connect --sandbox --base-url http://x", "choose one of"),
        ("%connect --base-url http://127.0.0.1:1", "TOOLKIT_API_KEY is not set"),
        ("%connect nobody", "Connect one of"),
        (f"%connect {KEY}", "looks like a key"),
        (f"%connect --api-key={KEY}", "looks like a key"),
    ],
)
def test_reports_a_mistake_without_a_traceback(
    shell: NotebookShell, cell: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a mistake, then one line names it, without a key, and the client stays."""
    before = shell.ip.user_ns["toolkit_client"]
    result = shell.ip.run_cell(cell)
    error = result.error_before_exec or result.error_in_exec
    output = "".join(capsys.readouterr())
    assert message in output or message in str(error)
    assert isinstance(error, ToolkitError) or type(error).__name__ == "UsageError"
    assert "Traceback" not in output
    assert KEY not in output + str(error)
    assert shell.ip.user_ns["toolkit_client"] is before


def test_connects_to_another_client(shell: NotebookShell, tmp_path: Path) -> None:
    """Given another client or options for a new client, then the magics use it from then on."""
    first = shell.ip.user_ns["toolkit_client"]
    shell.ip.user_ns["mine"] = first
    second = shell(f"%connect --sandbox --data-dir {tmp_path}")
    assert shell("%usage").to_frame().empty
    assert len(shell("%connect openai")) == 1
    assert shell("%connect --client mine") is first
    assert not shell("%usage").to_frame().empty
    second.close()
