"""The options that commands share, and the decorators that give them to a command."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from enum import StrEnum
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args, get_type_hints

import typer
from typer import Argument, Option

from toolkit.cli import completion
from toolkit.cli.output import ClientOutput
from toolkit.cli.target import DirectoryPolicy, Target, open_client
from toolkit.contract.choices import OptimizeFor, PlannerChoice, ReviewMode, Scope, UsageGroup
from toolkit.contract.run_options import PROVIDER_LISTS, RUN_OPTIONS, RunOptions, WorkOptions

_HINTS = get_type_hints(RunOptions)
_COMPLETIONS = {
    **dict.fromkeys(("provider", *PROVIDER_LISTS), completion.providers_and_models),
    "endpoint_id": completion.make_id_completion("endpoints"),
    "compute_id": completion.make_id_completion("compute"),
}


def make_option(name: str) -> Any:
    """Make typer's option from an option of a run.

    Args:
        name: name of the option in the contract; the first words of its description are the help.
    """
    words = re.split(r"[;:] ", RUN_OPTIONS[name].replace("`", ""))[0]
    kinds = get_args(_HINTS[name])
    flag = f"--{name.replace('_', '-')}"
    return Option(
        *([f"{flag}/--no-{flag[2:]}"] if bool in kinds and str not in kinds else [flag]),
        min=0 if float in kinds else None,
        help=f"{words[0].upper()}{words[1:]}.",
        autocompletion=_COMPLETIONS.get(name),
    )


def _find_type(hint: Any) -> Any:
    """Return the type of an option in a shell, where a list is given item by item."""
    kinds = get_args(hint)
    if Sequence[str] in kinds:
        return list[str] | None
    return str | None if str in kinds else hint


def make_parameters(kind: type[RunOptions] | type[WorkOptions]) -> list[inspect.Parameter]:
    """Make the parameters of a command that takes options of a run.

    >>> [each.name for each in make_parameters(WorkOptions)][:2]
    ['optimize_for', 'provider']
    """
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[_find_type(hint), make_option(name)],
        )
        for name, hint in get_type_hints(kind).items()
    ]


def list_options(kind: type) -> dict[str, inspect.Parameter]:
    """Make a command option for each field of a dataclass; return the options by name."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        field.name: inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(kind)
    }


def make_command(
    function: Callable[..., None], shared: Mapping[str, inspect.Parameter], run: Callable[..., None]
) -> Callable[..., None]:
    """Make a command that has options in common with others.

    Args:
        function: the command; `run` supplies its first parameter.
        shared: shared options, by name.
        run: function that takes the values of shared options by name, and others as keywords.
    """
    signature = list(inspect.signature(function).parameters.values())[1:]
    # One parameter stands for all options of a run.
    grouped = {
        parameter.name: make_parameters(parameter.annotation)
        for parameter in signature
        if parameter.annotation in (RunOptions, WorkOptions)
    }

    @wraps(function)
    def command(**arguments: Any) -> None:
        values = {name: arguments.pop(name) for name in shared}
        for name, parameters in grouped.items():
            given = {parameter.name: arguments.pop(parameter.name) for parameter in parameters}
            # Typer makes a list of an option that may be repeated, even if it is not given.
            arguments[name] = {
                option: None if value == [] else value for option, value in given.items()
            }
            if given.get("provider") and any(given.get(option) for option in PROVIDER_LISTS):
                raise typer.BadParameter("give either --provider, or --only and --ignore")
        run(values, **arguments)

    command_options = [
        option for parameter in signature for option in grouped.get(parameter.name, [parameter])
    ]
    # Typer reads a command's options from these.
    options = sorted([*command_options, *shared.values()], key=lambda option: option.kind)
    command.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    command.__annotations__ = {option.name: option.annotation for option in options}
    return command


# Repeatable options have an enumeration, because typer takes no `Literal` for them.
if TYPE_CHECKING:
    ScopeWord: TypeAlias = Scope
    UsageWord: TypeAlias = UsageGroup
else:
    ScopeWord = StrEnum("ScopeWord", [(word, word) for word in get_args(Scope)])
    UsageWord = StrEnum("UsageWord", [(word, word) for word in get_args(UsageGroup)])

Id = Annotated[
    str, Argument(metavar="ID", help="Id of the record.", autocompletion=completion.own_ids)
]
Limit = Annotated[int, Option(min=1, help="Maximum number to show, newest first.")]
All = Annotated[bool, Option("--all", help="Show all.")]
Name = Annotated[
    str,
    Argument(help="A capability, such as llm.generate.", autocompletion=completion.capabilities),
]
Fields = Annotated[
    list[str] | None,
    Argument(
        help="Input fields: name=value, or name:=JSON.", autocompletion=completion.fields_of_input
    ),
]
InputFile = Annotated[
    Path | None, Option("--input", help="JSON or YAML file with the input; - is stdin.")
]
Optimize = Annotated[OptimizeFor | None, make_option("optimize_for")]
MaxCost = Annotated[float | None, make_option("max_cost_usd")]
OnEndpoint = Annotated[str | None, make_option("endpoint_id")]
OnCompute = Annotated[str | None, make_option("compute_id")]
Planner = Annotated[
    PlannerChoice | None,
    Option(
        help="Planner: a language model, keywords (rules), or a language model if any"
        " is connected (auto)."
    ),
]
Review = Annotated[
    ReviewMode | None,
    Option(
        help="Reviewer: checks; the judge, a language model in addition; or auto, the"
        " judge if available."
    ),
]
Tags = Annotated[list[str] | None, Option("--tag", help="Tag for filters of lists; repeatable.")]
Note = Annotated[str | None, Option(help="Note in your own words.")]
Objective = Annotated[str, Argument(help="Objective, in plain words.")]
Image = Annotated[str | None, Option(help="Container image to run.")]
StorageId = Annotated[
    str | None,
    Option(help="Volume to mount.", autocompletion=completion.make_id_completion("storage")),
]
TemplateId = Annotated[
    str | None,
    Option(help="Shared template.", autocompletion=completion.make_id_completion("templates")),
]
NoWait = Annotated[
    bool, Option("--no-wait", help="Start the work, and print its id without waiting.")
]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Show no progress on stderr.")]

READ_TARGET_OPTIONS = list_options(Target)
# The same options, for a command that may change something.
TARGET_OPTIONS = {
    name: option for name, option in READ_TARGET_OPTIONS.items() if name != "read_only"
}


def service_command(
    function: Callable[..., None],
    options: Mapping[str, inspect.Parameter] = TARGET_OPTIONS,
    makes: DirectoryPolicy = "any",
    instead: Callable[..., bool] | None = None,
) -> Callable[..., None]:
    """Make a command with the target options; the function gets a `ClientOutput` first.

    Args:
        makes: data directories that the command may create.
        instead: function of the target and the command's own options. It returns True if it
            did all, so that no client is needed.
    """

    def run(target: dict[str, Any], **arguments: Any) -> None:
        location = Target(**target)
        if instead is not None and instead(location, **arguments):
            return
        with open_client(location, makes) as client:
            function(ClientOutput(client, location.as_json, location), **arguments)

    return make_command(function, options, run)


# A command of existing things creates no data directory.
existing_command = partial(service_command, makes="none")
# Other commands create no data directory of a mistyped name.
default_dir_command = partial(service_command, makes="default")
# A command that only reads has `--read-only`, too.
read_command = partial(service_command, options=READ_TARGET_OPTIONS, makes="none")
