"""The options that commands share, and the decorators that give them to a command."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import StrEnum
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args

import typer

from toolkit.cli import completion
from toolkit.cli.output import ClientOutput
from toolkit.cli.run_options import make_option, make_parameters
from toolkit.cli.target import DirectoryPolicy, Target, open_client
from toolkit.contract.choices import OptimizeFor, PlannerChoice, ReviewMode, Scope, UsageGroup
from toolkit.contract.run_options import RunOptions, WorkOptions

TARGET_PANEL = "Where, and how it is shown"

# Options that may be repeated take an enumeration, where typer takes no `Literal`.
if TYPE_CHECKING:
    ScopeWord: TypeAlias = Scope
    UsageWord: TypeAlias = UsageGroup
else:
    ScopeWord = StrEnum("ScopeWord", [(word, word) for word in get_args(Scope)])
    UsageWord = StrEnum("UsageWord", [(word, word) for word in get_args(UsageGroup)])

Id = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="The id that it was given.", autocompletion=completion.own_ids
    ),
]
Limit = Annotated[int, typer.Option(min=1, help="How many to show, the newest first.")]
All = Annotated[bool, typer.Option("--all", help="Show all there are.")]
Name = Annotated[
    str,
    typer.Argument(
        help="A capability, such as llm.generate.", autocompletion=completion.capabilities
    ),
]
Fields = Annotated[
    list[str] | None,
    typer.Argument(
        help="Its input: name=value, or name:=JSON.", autocompletion=completion.fields_of_input
    ),
]
InputFile = Annotated[
    Path | None,
    typer.Option("--input", help="A JSON or YAML file with its input; - is stdin."),
]
Optimize = Annotated[OptimizeFor | None, make_option("optimize_for")]
MaxCost = Annotated[float | None, make_option("max_cost_usd")]
OnEndpoint = Annotated[str | None, make_option("endpoint_id")]
OnCompute = Annotated[str | None, make_option("compute_id")]
Planner = Annotated[
    PlannerChoice | None,
    typer.Option(
        help="Who plans: a language model, keywords (rules), or the model where one is connected."
    ),
]
Review = Annotated[
    ReviewMode | None,
    typer.Option(
        help="Who reviews: checks, or a language model as well, the judge; auto, if there is one."
    ),
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", help="A word to find it by in lists; repeatable.")
]
Note = Annotated[str | None, typer.Option(help="A remark on it, in your own words.")]
Objective = Annotated[str, typer.Argument(help="What is wanted, in plain words.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Only start it, and print its id.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]

AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print JSON instead of text.", rich_help_panel=TARGET_PANEL),
]


# The options by the field of `Target` that each fills; their order is that of the help.
TARGET_OPTIONS: dict[str, Any] = {
    "data_dir": Annotated[
        Path | None,
        typer.Option(
            help="Use an engine right here, with its data in this folder; .toolkit by default.",
            rich_help_panel=TARGET_PANEL,
        ),
    ],
    "sandbox": Annotated[
        bool,
        typer.Option(
            "--sandbox",
            help="Simulated vendors: no keys, no bills.",
            rich_help_panel=TARGET_PANEL,
        ),
    ],
    "base_url": Annotated[
        str | None,
        typer.Option(
            help="Use this server; TOOLKIT_BASE_URL by default.", rich_help_panel=TARGET_PANEL
        ),
    ],
    "profile": Annotated[
        str | None,
        typer.Option(
            help="Use this profile of `toolkit login`; TOOLKIT_PROFILE by default.",
            autocompletion=completion.profiles,
            rich_help_panel=TARGET_PANEL,
        ),
    ],
    "api_key_env": Annotated[
        str,
        typer.Option(
            help="The variable that holds the server's key.",
            autocompletion=completion.variables,
            rich_help_panel=TARGET_PANEL,
        ),
    ],
    "max_wait_s": Annotated[
        float | None,
        typer.Option(
            "--max-wait",
            min=0,
            help="Wait so many seconds for a server that is away; TOOLKIT_MAX_WAIT_S, or 60.",
            rich_help_panel=TARGET_PANEL,
        ),
    ],
    "cacert": Annotated[
        Path | None,
        typer.Option(
            help="Trust the certificates in this file (PEM), too; or set SSL_CERT_FILE.",
            rich_help_panel=TARGET_PANEL,
        ),
    ],
    "as_json": AsJson,
}
# The same options, for a command that changes nothing.
READ_TARGET_OPTIONS: dict[str, Any] = {
    **TARGET_OPTIONS,
    "read_only": Annotated[
        bool,
        typer.Option(
            "--read-only",
            help="Look at the data directory, or the database, of all accounts; write nothing.",
            rich_help_panel=TARGET_PANEL,
        ),
    ],
}


def service_command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a command that has the target options; the function takes the output first."""
    return _make_command(function, TARGET_OPTIONS, "any")


def existing_command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a command of existing things, as `service_command`; it creates no data directory."""
    return _make_command(function, TARGET_OPTIONS, "none")


def default_dir_command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a command as `service_command`, that creates no directory of a mistyped name."""
    return _make_command(function, TARGET_OPTIONS, "default")


def read_command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a command as `existing_command` that only reads, and has `--read-only`, too."""
    return _make_command(function, READ_TARGET_OPTIONS, "none")


def read_command_unless(
    instead: Callable[..., bool],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command as `read_command`, unless `instead` can do without a client.

    Args:
        instead: takes the target and the command's own options; returns true if it did all.
    """
    return partial(_make_command, options=READ_TARGET_OPTIONS, makes="none", instead=instead)


def _make_command(
    function: Callable[..., None],
    options: Mapping[str, Any],
    makes: DirectoryPolicy,
    instead: Callable[..., bool] | None = None,
) -> Callable[..., None]:
    defaults = {field.name: field.default for field in fields(Target)}
    own = list(inspect.signature(function).parameters.values())[1:]
    # One parameter stands for all options of a run.
    grouped = {
        each.name: make_parameters(each.annotation)
        for each in own
        if each.annotation in (RunOptions, WorkOptions)
    }

    @wraps(function)
    def command(**given: Any) -> None:
        where = Target(**{name: given.pop(name) for name in options})
        for name, parameters in grouped.items():
            given[name] = {each.name: given.pop(each.name) for each in parameters}
        if instead is not None and instead(where, **given):
            return
        with open_client(where, makes) as client:
            function(ClientOutput(client, where.as_json, where), **given)

    spelled = [each for one in own for each in grouped.get(one.name, [one])]
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=defaults[name],
            annotation=annotation,
        )
        for name, annotation in options.items()
    ]
    # Typer reads a command's options from these.
    every = sorted([*spelled, *added], key=lambda each: each.kind)
    command.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in every}
    return command
