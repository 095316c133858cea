"""The magics, in a real IPython shell on the sandbox."""

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
    """A shell with a sandbox engine, made by the first magic that needs one."""
    setup = "topic = 'tea'\n%load_ext toolkit\n%capabilities"
    with open_notebook_shell(tmp_path_factory.mktemp("magics"), setup) as opened:
        yield opened


def test_the_first_magic_makes_the_client(shell: NotebookShell) -> None:
    """Given no client, when magics are used, then they share one that the notebook can reach."""
    assert isinstance(shell.ip.user_ns["toolkit_client"], Client)
    assert shell("%capabilities")["llm.generate"].title == "Generate text"
    assert shell("%capabilities speech.generate@1").id == "speech.generate"
    assert {found.record.provider for found in shell("%connect")} >= {"openai", "minimax"}
    assert shell("%%run?") is None  # what it documents is asserted below, from where it comes
    assert "main text" in shell.ip.find_cell_magic("run").__doc__
    assert "--max-cost-usd" in shell.ip.find_cell_magic("run").__doc__
    assert shell.ip.find_line_magic("run").__module__.startswith("IPython")


def test_a_run_is_a_cell(shell: NotebookShell) -> None:
    """Given a cell, then it is the main text, names are filled in, and the run comes back."""
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
    noted = "--tag tea --tag said --note 'Too fast.'"
    spoken = shell(f"%%run speech.generate -q {noted}\nTea is served.")
    assert (spoken.tags, spoken.note) == (["tea", "said"], "Too fast.")
    assert spoken.record.input == {"text": "Tea is served."}
    card = shell("%%run composition.layout format=svg --no-wait\nTea").wait()
    assert card.record.input == {"title": "Tea", "format": "svg"}
    lines = shell("%usage capability")
    assert {line.record.capability for line in lines} >= {"llm.generate@1", "speech.generate@1"}


@pytest.mark.parametrize(
    ("written", "node_id"),
    [
        ('" a b "', " a b "),
        ("a.b.", "a.b."),
        ("Tee-für-茶-🍵", "Tee-für-茶-🍵"),
        ("x" * 200, "x" * 200),
        ('"1"', "1"),
        ("'yes'", "yes"),
        ('"null"', "null"),
        ("__proto__", "__proto__"),
        ("1", "is read as 1 and"),
        ("1.5", "is read as 1.5 and"),
        ("yes", "is read as true and"),
        ("null", "is read as null and"),
        ("", "is read as null and"),
        ("[a]", "is read as"),
        ("2026-11-20", "has a date at `nodes.0.id`"),
        ('""', "id"),
        ("x" * 300, "id"),
    ],
)
@pytest.mark.parametrize("option", ["", "--draw"])
def test_an_odd_id_is_kept_or_refused(
    shell: NotebookShell, written: str, node_id: str, option: str
) -> None:
    """Given an id as YAML may write it, then the node has it, or one line refuses it."""
    shell.ip.user_ns["tokens"] = 40
    cell = FLOW.replace("first", written)
    is_refused = node_id in ("id", "") or " at " in node_id or "is read" in node_id
    if is_refused:
        if option and node_id == "id":
            return  # what is only drawn is not asked of the service
        with pytest.raises(ToolkitError) as refused:
            shell(f"%%workflow -q {option}\n{cell}")
        assert node_id in str(refused.value)
        assert len(str(refused.value).splitlines()) == 1
        return
    made = shell(f"%%workflow -q {option}\n{cell}")
    if option:
        assert made.to_dict()["nodes"][1]["depends_on"] == [node_id]
        assert made.picture().startswith("<svg")
        return
    assert [node.id for node in made.nodes] == [node_id, "second"]
    assert {node.status for node in made.nodes} == {"completed"}


def test_tasks_and_workflows_are_cells(shell: NotebookShell) -> None:
    """Given an objective or a body in YAML, then it is planned, drawn, or run to its end."""
    plan = shell("%%task --plan-only\nA social card about {topic}")
    assert plan.record.objective == "A social card about tea"
    task = shell("%%task --max-cost-usd 0.1 -q\nA narration about {topic}")
    assert (task.status, task.record.constraints.max_cost_usd) == ("completed", 0.1)
    shell.ip.user_ns["tokens"] = 40
    drawn = shell(f"%%workflow --draw --to drawing\n{FLOW}")
    assert isinstance(drawn, Workflow)
    assert drawn.nodes[1]["input"] == {"objective": "Another: tea", "max_tokens": 40}
    assert [n.status for n in shell(f"%%workflow -q\n{FLOW}").nodes] == ["completed"] * 2


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("%%run llm.generate\n{teapot}", "no variable `teapot`"),
        ("%%run llm.generate\n{topic.__class__} {topic!r} {1+1}", ""),
        ("%%run llm.generate objective=tea\ntea", "objective is given twice"),
        ("%%run llm.generate tea\ntea", "`tea` is not name=value"),
        ("%%run llm.generate 'tea\ntea", "pair of quotes"),
        ("%%run llm.teleport\ntea", "NOT_FOUND"),
        ("%%run llm.generate --to a.b\ntea", "not a valid name of a variable"),
        ("%%workflow\nname: x", "INVALID_REQUEST"),
        ("%%workflow --draw\nname: x", "INVALID_WORKFLOW"),
        ("%connect --client topic", "topic is not a Client"),
        ("%connect --client nobody", "no variable nobody"),
        ("%connect --sandbox --base-url http://x", "choose one of"),
        ("%connect --base-url http://127.0.0.1:1", "TOOLKIT_API_KEY is not set"),
        ("%connect nobody", "Connect one of"),
        (f"%connect {KEY}", "looks like a key"),
        (f"%connect --api-key={KEY}", "looks like a key"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    shell: NotebookShell, cell: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a mistake, then one line says what to do, no expression was evaluated, no key shown."""
    before = shell.ip.user_ns["toolkit_client"]
    done = shell.ip.run_cell(cell)
    error = done.error_before_exec or done.error_in_exec
    shown = "".join(capsys.readouterr())
    if not said:
        assert done.result.record.input["objective"] == "{topic.__class__} {topic!r} {1+1}"
        return
    assert said in shown or said in str(error)
    assert isinstance(error, ToolkitError) or type(error).__name__ == "UsageError"
    assert "Traceback" not in shown
    assert KEY not in shown + str(error)
    assert shell.ip.user_ns["toolkit_client"] is before


def test_another_client(shell: NotebookShell, tmp_path: Path) -> None:
    """Given a client of one's own, or options for one, then the magics use it from then on."""
    first = shell.ip.user_ns["toolkit_client"]
    shell.ip.user_ns["mine"] = first
    other = shell(f"%connect --sandbox --data-dir {tmp_path}")
    assert shell("%usage").to_frame().empty
    assert len(shell("%connect openai")) == 1
    assert shell("%connect --client mine") is first
    assert not shell("%usage").to_frame().empty
    other.close()
