"""The options that commands share, and the decorators that give them to a command."""

import inspect
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args

import typer

from toolkit.cli import completion
from toolkit.cli.output import ClientOutput
from toolkit.cli.run_options import list_options, make_command, make_option
from toolkit.cli.target import DirectoryPolicy, Target, open_client
from toolkit.contract.choices import OptimizeFor, PlannerChoice, ReviewMode, Scope, UsageGroup

# Repeatable options have an enumeration, because typer takes no `Literal` for them.
if TYPE_CHECKING:
    ScopeWord: TypeAlias = Scope
    UsageWord: TypeAlias = UsageGroup
else:
    ScopeWord = StrEnum("ScopeWord", [(word, word) for word in get_args(Scope)])
    UsageWord = StrEnum("UsageWord", [(word, word) for word in get_args(UsageGroup)])

Id = Annotated[
    str,
    typer.Argument(metavar="ID", help="Id of the record.", autocompletion=completion.own_ids),
]
Limit = Annotated[int, typer.Option(min=1, help="Maximum number to show, newest first.")]
All = Annotated[bool, typer.Option("--all", help="Show all.")]
Name = Annotated[
    str,
    typer.Argument(
        help="A capability, such as llm.generate.", autocompletion=completion.capabilities
    ),
]
Fields = Annotated[
    list[str] | None,
    typer.Argument(
        help="Input fields: name=value, or name:=JSON.", autocompletion=completion.fields_of_input
    ),
]
InputFile = Annotated[
    Path | None, typer.Option("--input", help="JSON or YAML file with the input; - is stdin.")
]
Optimize = Annotated[OptimizeFor | None, make_option("optimize_for")]
MaxCost = Annotated[float | None, make_option("max_cost_usd")]
OnEndpoint = Annotated[str | None, make_option("endpoint_id")]
OnCompute = Annotated[str | None, make_option("compute_id")]
Planner = Annotated[
    PlannerChoice | None,
    typer.Option(
        help="Planner: a language model, keywords (rules), or a language model if any"
        " is connected (auto)."
    ),
]
Review = Annotated[
    ReviewMode | None,
    typer.Option(
        help="Reviewer: checks; the judge, a language model in addition; or auto, the"
        " judge if available."
    ),
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", help="Tag for filters of lists; repeatable.")
]
Note = Annotated[str | None, typer.Option(help="Note in your own words.")]
Objective = Annotated[str, typer.Argument(help="Objective, in plain words.")]
NoWait = Annotated[
    bool, typer.Option("--no-wait", help="Start the work, and print its id without waiting.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress on stderr.")]

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
    """Make a command that has the target options; the function takes the output first.

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
