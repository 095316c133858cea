"""An option of a run is defined once, and every interface that creates work has all options."""

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
from toolkit.contract.jobs import Options, ProviderLists
from toolkit.contract.run_options import (
    PLACEMENT_OPTIONS,
    PROVIDER_LISTS,
    RUN_OPTIONS,
    RunOptions,
    WorkOptions,
)
from toolkit.notebook import CapabilityForm
from toolkit.notebook.magics import ToolkitMagics

# A caller names the lists of an object in `provider` as options.
FIELDS = {**Options.model_fields, **ProviderLists.model_fields}
OPTIONS = set(FIELDS)
WORK = OPTIONS - set(PLACEMENT_OPTIONS)


def test_options_match_the_contract() -> None:
    """Given the contract's model, then callers have the same options with the same descriptions."""
    assert set(get_type_hints(RunOptions)) == set(RUN_OPTIONS) == OPTIONS
    assert set(get_type_hints(WorkOptions)) == WORK
    assert set(PROVIDER_LISTS) == set(ProviderLists.model_fields)
    assert all(RUN_OPTIONS[name] == FIELDS[name].description for name in OPTIONS)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (AsyncRuns.create, OPTIONS), (Runs.create, OPTIONS), (AsyncClient.route, OPTIONS),
        (Client.route, OPTIONS), (Workflow, OPTIONS), (AsyncJobs.create, WORK), (Jobs.create, WORK),
    ],
    ids=lambda value: getattr(value, "__qualname__", ""),
)  # fmt: skip
def test_signatures_have_all_options(function: object, expected: set[str]) -> None:
    """Given a function with options, then its signature names each option."""
    assert callable(function)
    parameters = inspect.signature(function).parameters
    assert expected <= set(parameters)
    assert all(parameters[name].default is None for name in expected)
    words = inspect.getdoc(function) or ""
    assert function is Workflow or all(f"{name}: " in words for name in expected)


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
def test_rejects_a_misspelled_option(ask: Callable[..., object]) -> None:
    """Given a misspelled option, then a TypeError suggests the right name."""
    with (
        Client("http://127.0.0.1:9", "sk_none") as client,
        pytest.raises(TypeError, match=r"optimise_for.*did you mean `optimize_for`"),
    ):
        ask(client, optimise_for="cost")


def test_rejects_an_endpoint_for_a_job() -> None:
    """Given an endpoint for a job on a compute, then the call has no such option."""
    with (
        Client("http://127.0.0.1:9", "sk_none") as client,
        pytest.raises(TypeError, match="no option `endpoint_id`"),
    ):
        client.jobs.create("image", "cmp_1", {}, endpoint_id="ep_1")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("path", "expected"), [("run", OPTIONS), ("route", OPTIONS), ("jobs create", WORK)]
)
def test_commands_have_all_options(path: str, expected: set[str]) -> None:
    """Given a command that creates work, then it has a flag for each option."""
    command = typer.main.get_command(app)
    for word in path.split():
        command = command.get_command(typer.Context(command), word)  # type: ignore[attr-defined]
    assert expected <= {parameter.name for parameter in command.params}


def test_magic_has_all_options() -> None:
    """Given `%%run`, then its arguments have each option."""
    arguments = {action.dest for action in ToolkitMagics.run.parser._actions}  # type: ignore[attr-defined]
    assert arguments >= OPTIONS


def test_form_has_all_options(tmp_path: Path) -> None:
    """Given the form of a capability, then each option has a control, which is empty at first."""
    with Client.local(tmp_path, sandbox=True) as client:
        form = CapabilityForm(client, "llm.generate")
        separate = {"provider", "optimize_for"}
        assert set(form.options.fields) | separate == set(Options.model_fields)
        assert set(form.options.fields).isdisjoint(separate)
        assert not any(form.collect_options().values())
        form.options.fields["max_cost_usd"].control.value = "0.5"
        assert form.collect_options()["max_cost_usd"] == 0.5
