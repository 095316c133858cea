"""An option of a run is defined once: wherever work is asked for, each of them is there."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import get_type_hints

import pytest
import typer

from toolkit import AsyncClient, Client, Workflow
from toolkit.cli import app
from toolkit.client._async.resources.jobs import AsyncJobs
from toolkit.client._async.resources.runs import AsyncRuns
from toolkit.client._sync.resources.jobs import Jobs
from toolkit.client._sync.resources.runs import Runs
from toolkit.contract.jobs import Options
from toolkit.contract.run_options import PLACEMENT_OPTIONS, RUN_OPTIONS, RunOptions, WorkOptions
from toolkit.notebook import CapabilityForm
from toolkit.notebook.magics import ToolkitMagics

OPTIONS = set(Options.model_fields)
WORK = OPTIONS - set(PLACEMENT_OPTIONS)


def test_the_words_are_those_of_the_contract() -> None:
    """Given the contract's model, then callers' options are the same ones, and none is optional."""
    assert set(get_type_hints(RunOptions)) == set(RUN_OPTIONS) == OPTIONS
    assert set(get_type_hints(WorkOptions)) == WORK
    assert all(RUN_OPTIONS[name] == Options.model_fields[name].description for name in OPTIONS)


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (AsyncRuns.create, OPTIONS), (Runs.create, OPTIONS), (AsyncClient.route, OPTIONS),
        (Client.route, OPTIONS), (Workflow, OPTIONS), (AsyncJobs.create, WORK), (Jobs.create, WORK),
    ],
    ids=lambda value: getattr(value, "__qualname__", ""),
)  # fmt: skip
def test_python_shows_each(function: object, wanted: set[str]) -> None:
    """Given what takes options, when a notebook asks what it takes, then each is named."""
    assert callable(function)
    shown = inspect.signature(function).parameters
    assert wanted <= set(shown)
    assert all(shown[name].default is None for name in wanted)
    words = inspect.getdoc(function) or ""
    assert function is Workflow or all(f"{name}: " in words for name in wanted)


@pytest.mark.parametrize(
    "ask",
    [
        lambda client, **wrong: Workflow("w", **wrong),
        lambda client, **wrong: client.route("llm.generate", {}, **wrong),
        lambda client, **wrong: client.runs.create("llm.generate", {}, **wrong),
        lambda client, **wrong: client.jobs.create("image", "cmp_1", {}, **wrong),
    ],
    ids=["workflow", "route", "run", "job"],
)
def test_what_is_no_option_is_refused_at_once(ask: Callable[..., object]) -> None:
    """Given a misspelled option, then it is a TypeError that says what was meant."""
    with (
        Client("http://127.0.0.1:9", "sk_none") as client,
        pytest.raises(TypeError, match=r"optimise_for.*did you mean `optimize_for`"),
    ):
        ask(client, optimise_for="cost")


def test_a_job_has_its_place_already() -> None:
    """Given another place for a job on a compute, then it is no option of that call."""
    with (
        Client("http://127.0.0.1:9", "sk_none") as client,
        pytest.raises(TypeError, match="no option `endpoint_id`"),
    ):
        client.jobs.create("image", "cmp_1", {}, endpoint_id="ep_1")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("path", "wanted"), [("run", OPTIONS), ("route", OPTIONS), ("jobs create", WORK)]
)
def test_commands_have_each(path: str, wanted: set[str]) -> None:
    """Given a command that asks for work, then it has a flag for each option."""
    command = typer.main.get_command(app)
    for word in path.split():
        command = command.get_command(typer.Context(command), word)  # type: ignore[attr-defined]
    assert wanted <= {parameter.name for parameter in command.params}


def test_the_magic_has_each() -> None:
    """Given `%%run`, then its arguments have each option."""
    known = {action.dest for action in ToolkitMagics.run.parser._actions}  # type: ignore[attr-defined]
    assert known >= OPTIONS


def test_the_form_has_each(tmp_path: Path) -> None:
    """Given the form of a capability, then each option has a control, and none is sent unasked."""
    with Client.local(tmp_path, sandbox=True) as client:
        form = CapabilityForm(client, "llm.generate")
        chosen = {"provider", "optimize_for"}
        assert set(form.options.fields) | chosen == OPTIONS
        assert set(form.options.fields).isdisjoint(chosen)
        assert not any(form.collect_options().values())
        form.options.fields["max_cost_usd"].control.value = "0.5"
        assert form.collect_options()["max_cost_usd"] == 0.5
