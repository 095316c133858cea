"""Mistakes that people make in a notebook, and their messages: short, complete, with the line.

Each row is a cell and the parts of its message: the wrong word, the right word, and the names that
exist.
"""

from collections.abc import Iterator

import pytest

from tests.notebooks.shells import NotebookShell, open_notebook_shell

MAX_LINES, MAX_LINE_CHARACTERS = 8, 700
SETUP = """\
run = client.runs.create("llm.generate", {"objective": "Tides"}).wait(progress=False)
draft = Workflow("tides")
facts = draft.add("facts", "research.gather", topic="tides")
draft.add("text", "llm.generate", objective="Tides", depends_on=[facts])
flow = client.workflows.submit(draft).wait(progress=False)
wf = Workflow("new")
topic = "tides"
"""
ASK = 'client.runs.create("llm.generate", {"objective": "x"}'
NODE = 'name: x\nnodes:\n  - id: facts\n    capability: research.gather\n    input: {topic: "x"}\n'

Row = tuple[str, list[str]]
NAMES: list[Row] = [
    ('client.runs.create("llm.generat", {})', ["llm.generat", "`llm.generate`", "voice.clone"]),
    ('client.runs.create("LLM.Generate", {})', ["LLM.Generate", "`llm.generate`"]),
    ('client.runs.create("voice", {})', ["voice", "`voice.clone`"]),
    ('client.runs.create("video.make", {})', ["video.make", "there are image.generate"]),
    ('client.runs.create("llm.generate@2", {})', ["has version 1, not 2"]),
    ('client.capabilities.get("reserch.gather")', ["`research.gather`"]),
    ('client.capabilities.llm_generat(objective="x")', ["`llm_generate`", "voice_clone"]),
    ('client.llm_generate(objective="x")', ["`capabilities.llm_generate`"]),
    ("client.workflos", ["workflos", "`workflows`"]),
    ("run.ouput", ["ouput", "`output`"]),
    ('flow["fact"]', ["fact", "`facts`", "text"]),
    ('draft["txt"]', ["txt", "`text`"]),
    ('flow.fork("fact")', ["fact", "`facts`"]),
    ('client.runs.get("run_x")', ["run_x", "`client.runs.list()`"]),
    ("client.runs.get(flow.id)", ["`client.workflows`"]),
    ("client.tasks.get(run.artifact_id)", ["`client.artifacts`"]),
    ("client.runs.get(run.id[:-1] + '01'[run.id[-1] == '0'])", ["Did you mean `run_"]),
    ("list(client.events('x'))", ["run, job, workflow or task `x`"]),
]
FIELDS: list[Row] = [
    (
        'client.runs.create("llm.generate", {"objectiv": "x"})',
        ["objectiv", "`objective`", "max_tokens", "line 1 of the cell"],
    ),
    ('client.runs.create("llm.generate", {"prompt": "x"})', ["`prompt`", "there are objective"]),
    ('client.runs.create("llm.generate", {"objective": 3})', ["input.objective", "valid string"]),
    ('client.runs.create("llm.generate")', ["input.objective", "required"]),
    ('client.runs.create("llm.generate", objective="x")', ["`objective`", "mapping"]),
    (
        'client.runs.create("composition.layout", {"title": "x", "theme": "lila"})',
        ["input.theme", "'lilac'", "did you mean `lilac`?"],
    ),
    ("client.capabilities.llm_generate()", ["`objective`"]),
    ("client.capabilities.llm_generate(objectiv='x')", ["objectiv", "`objective`"]),
    ("client.capabilities.llm_generate('x')", ["by its name", "objective="]),
    (
        'wf1 = Workflow("x")\nwf1.add("a", "llm.generate", objectve="x")\n'
        "client.workflows.submit(wf1)",
        ["node `a`", "objectve", "`objective`", "line 3 of the cell"],
    ),
]
OPTIONS: list[Row] = [
    (f'{ASK}, provider="opnai")', ["opnai", "`openai`", "anthropic"]),
    (f'{ASK}, provider="elevenlabs")', ["elevenlabs", "openai"]),
    (f'{ASK}, provider="prv_x")', ["prv_x"]),
    (f'{ASK}, providr="openai")', ["providr", "`provider`", "max_cost_usd"]),
    (f'{ASK}, optimize_for="qualty")', ["options.optimize_for", "`quality`", "'latency'"]),
    (
        'client.capabilities.llm_generate(objective="x", options={"provder": "openai"})',
        ["provder", "`provider`"],
    ),
    ('Workflow("x", optimise_for="cost")', ["optimise_for", "`optimize_for`"]),
    (
        'wf2 = Workflow("x")\nwf2.add("a", "llm.generate", objective="x",\n'
        '        options={"provder": "openai"})\nclient.workflows.submit(wf2)',
        ["node `a`", "provder", "`provider`"],
    ),
    (
        'wf3 = Workflow("x")\nwf3.add("a", "llm.generate", objective="x",\n'
        '        options={"provider": "opnai"})\nclient.workflows.submit(wf3)',
        ["`a`", "opnai", "`openai`"],
    ),
    ('client.connections.connect("opnai")', ["`openai`", "elevenlabs"]),
    ('client.connections.create("opnai", "environment", "X")', ["`openai`", "elevenlabs"]),
    ('client.usage.list(["dya"])', ["`day`", "capability"]),
    ('client.tasks.create("A card on tides", planner="rule")', ["planner", "'rules'", "`rules`"]),
]
GRAPHS: list[Row] = [
    (
        'wf4 = Workflow("x")\nwf4.add("facts", "research.gather", topic="x")\n'
        'wf4.add("text", "llm.generate", objective="x", depends_on=["fact"])',
        ["`text`", "fact", "`facts`", "line 3 of the cell"],
    ),
    (
        'wf5 = Workflow("x")\nwf5.add("facts", "research.gather", topic="x")\n'
        'wf5.add("facts", "llm.generate", objective="x")',
        ["`facts` is the id of another node", "line 3"],
    ),
    ('wf.add(1, "llm.generate")', ["1 is not a text", "quotes"]),
    ("client.workflows.submit(Workflow('x'))", ["at least one node"]),
    ('Workflow("x").add("a", len("tea"))', ["`a`", "a int", "without calling it"]),
    ('Workflow("x").add("a", sorted, iterabel=[1])', ["`iterabel`", "`iterable`"]),
    ('Workflow("x").add("a", sorted)', ["`sorted`", "`iterable`"]),
    ('Workflow("x").add("a", sorted, iterable=client)', ["`iterable` is a Client", "not JSON"]),
    (
        'wf7 = Workflow("x")\nwf7.add("a", lambda: {1: object()})\n'
        "client.workflows.submit(wf7).wait(progress=False)",
        ["`lambda` returned a dict", "a table or a JSON value"],
    ),
    (
        'def halve(n):\n    return 1 / n\nwf8 = Workflow("x")\nwf8.add("a", halve, n=0)\n'
        "client.workflows.submit(wf8).wait(progress=False)",
        ["`halve` raised ZeroDivisionError: division by zero", "halve, line 2: return 1 / n"],
    ),
    (
        'client.workflows.create({"name": "x", "nodes": [{"id": "a", "capability":'
        ' "llm.generate", "input": {"objective": "x"}, "depends_on": ["a"]}]})',
        ["`a` depends on itself"],
    ),
    ("flow.retry()", ["CONFLICT"]),
]
MAGICS: list[Row] = [
    ("%%run llm.generte\nhello", ["`llm.generate`", "line 1 of the cell: %%run llm.generte"]),
    ("%%run llm.generate --provder openai\nhello", ["--provder", "`--provider`", "--max-cost-usd"]),
    ("%%run llm.generate --optimize-for qualty\nhello", ["qualty", "`quality`", "latency"]),
    ("%%run llm.generate max_token:=60\nhello", ["max_token", "`max_tokens`", "line 1"]),
    ("%%run llm.generate max_tokens:=sixty\nhello", ["max_tokens", "JSON", "line 1"]),
    ("%%run llm.generate\nhello\n{topc}", ["`topc`", "`topic`", "line 3 of the cell: {topc}"]),
    ("%%run\nhello", ["capability"]),
    ("%connect --client cliet", ["cliet", "`client`"]),
    ("%usage dya", ["`day`"]),
    (
        "%%workflow\n" + NODE.replace("capability", "capablity"),
        ["node `facts`", "`capability`", "line 5 of the cell: capablity"],
    ),
    (
        "%%workflow\n" + NODE.replace("research.gather", "reserch.gather"),
        ["Node `facts`", "`research.gather`", "line 5 of the cell"],
    ),
    (
        "%%workflow\n" + NODE.replace("topic", "topc"),
        ["node `facts`", "`topic`", "line 6 of the cell"],
    ),
    ("%%workflow\n" + NODE.replace('"x"}', '"x"'), ["neither JSON nor YAML", "line 6"]),
    (
        "%%workflow\n" + NODE + "    depends_on: [fact]\n",
        ["`facts`", "unknown node", "line 7 of the cell: depends_on"],
    ),
    ("%%workflow\n" + NODE.replace("nodes", "node"), ["`nodes`", "line 3 of the cell: node:"]),
    ("%%workflow\n" + NODE.replace('"x"', '"{topc}"'), ["`topc`", "`topic`", "line 6"]),
    ("%%workflow --draw\nname: x\nnodes:\n  - id: a\n", ["capability"]),
]
MISTAKES = [*NAMES, *FIELDS, *OPTIONS, *GRAPHS, *MAGICS]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotebookShell]:
    """A shell with completed work."""
    with open_notebook_shell(tmp_path_factory.mktemp("mistakes")) as opened:
        opened.run("%load_ext toolkit")
        assert opened.run(SETUP) == ""
        yield opened


@pytest.mark.parametrize(("cell", "parts"), MISTAKES, ids=[cell[:60] for cell, _ in MISTAKES])
def test_reports_a_mistake_in_few_words(shell: NotebookShell, cell: str, parts: list[str]) -> None:
    """Given a mistake, then the message names it and the right word, without a traceback."""
    output = shell.run(cell)
    lines = output.splitlines()
    assert [words for words in parts if words not in output] == [], output
    assert len(lines) <= MAX_LINES, output
    assert max(map(len, lines)) <= MAX_LINE_CHARACTERS, output
    assert "Traceback" not in output, output


def test_names_the_line_of_a_function(shell: NotebookShell) -> None:
    """Given a function of an earlier cell, when its call fails, then the message has its line."""
    shell.run('def ask(name):\n    return client.runs.create(name, {"objective": "x"})')
    assert "line 2 of the cell, in ask: return client.runs.create" in shell.run(
        'ask("llm.generat")'
    )


def test_hides_a_line_with_a_key(shell: NotebookShell) -> None:
    """Given a key in the line that fails, then the line is named and not shown."""
    key = "sk-proj-c0ffee5d41402abc4b2a76b9719d911017c592"
    output = shell.run(f'client.runs.create("llm.generat", {{"objective": "{key}"}})')
    assert "line 1 of the cell" in output
    assert key not in output


def test_keeps_tracebacks_of_other_errors(shell: NotebookShell) -> None:
    """Given a fault of the notebook's own code, then its traceback is shown."""
    for cell, kind in (("1 / 0", "ZeroDivisionError"), ("{}['a']", "KeyError")):
        assert "Traceback" in shell.run(cell)
        assert kind in shell.run(cell)
