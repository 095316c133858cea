"""Work in a data directory, and commands that maintain the directory."""

import json
from typing import Any

from tests.support.commands import run_toolkit, say
from toolkit import Client, Workflow

LONG_AGO = "2020-01-01T00:00:00.000Z"
SPEECH = {"text": "Tides turn twice a day, and mills with them. " * 12}


def do_work(client: Client) -> None:
    """Complete a workflow, two runs and a task; both runs have the same input."""
    workflow = Workflow("poster")
    copy = workflow.add("copy", "llm.generate", objective="One line on tides")
    workflow.add("voice", "speech.generate", depends_on=[copy], **SPEECH)
    client.workflows.submit(workflow).wait(progress=False)
    client.runs.create("speech.generate", SPEECH, tags=["said"]).wait(progress=False)
    client.runs.create("speech.generate", SPEECH, cache=True).wait(progress=False)
    client.tasks.create("A social card about tides").wait(progress=False)


def read_json(*arguments: object) -> Any:
    """Run a command that succeeds, and return its JSON."""
    return json.loads(say(*arguments, "--json"))


def diagnose(data_dir: object, *options: object) -> tuple[int, str]:
    """Run doctor, and return its exit code and its output."""
    result = run_toolkit("doctor", "--no-vendors", "--data-dir", data_dir, *options)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout
