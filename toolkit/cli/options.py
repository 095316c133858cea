"""The options that commands share, and the decorators that give them to a command."""

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import partial, wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_args

import typer

from toolkit.cli import completion
from toolkit.cli.output import ClientOutput
from toolkit.cli.run_options import make_option, make_parameters
from toolkit.contract.choices import OptimizeFor, Scope, UsageGroup
from toolkit.contract.run_options import RunOptions, WorkOptions

if TYPE_CHECKING:
    from toolkit.client import Client

TARGET_PANEL = "Where, and how it is shown"
KEY_VARIABLE = "TOOLKIT_API_KEY"
DirectoryPolicy = Literal["any", "default", "none"]

# Options that may be repeated take an enumeration, where typer takes no `Literal`.
if TYPE_CHECKING:
    ScopeWord: TypeAlias = Scope
    UsageWord: TypeAlias = UsageGroup
else:
    ScopeWord = StrEnum("ScopeWord", [(word, word) for word in get_args(Scope)])
    UsageWord = StrEnum("UsageWord", [(word, word) for word in get_args(UsageGroup)])

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
Objective = Annotated[str, typer.Argument(help="What is wanted, in plain words.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Only start it, and print its id.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]

AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print JSON instead of text.", rich_help_panel=TARGET_PANEL),
]


@dataclass(frozen=True)
class TargetOptions:
    """The engine that a command speaks to, and the format of its output."""

    data_dir: Annotated[
        Path | None,
        typer.Option(
            help="Use an engine right here, with its data in this folder; .toolkit by default.",
            rich_help_panel=TARGET_PANEL,
        ),
    ] = None
    sandbox: Annotated[
        bool,
        typer.Option(
            "--sandbox",
            help="Simulated vendors: no keys, no bills.",
            rich_help_panel=TARGET_PANEL,
        ),
    ] = False
    base_url: Annotated[
        str | None,
        typer.Option(
            help="Use this server; TOOLKIT_BASE_URL by default.", rich_help_panel=TARGET_PANEL
        ),
    ] = None
    profile: Annotated[
        str | None,
        typer.Option(
            help="Use this profile of `toolkit login`; TOOLKIT_PROFILE by default.",
            autocompletion=completion.profiles,
            rich_help_panel=TARGET_PANEL,
        ),
    ] = None
    api_key_env: Annotated[
        str,
        typer.Option(
            help="The variable that holds the server's key.",
            autocompletion=completion.variables,
            rich_help_panel=TARGET_PANEL,
        ),
    ] = KEY_VARIABLE
    max_wait_s: Annotated[
        float | None,
        typer.Option(
            "--max-wait",
            min=0,
            help="Wait so many seconds for a server that is away; TOOLKIT_MAX_WAIT_S, or 60.",
            rich_help_panel=TARGET_PANEL,
        ),
    ] = None
    cacert: Annotated[
        Path | None,
        typer.Option(
            help="Trust the certificates in this file (PEM), too; or set SSL_CERT_FILE.",
            rich_help_panel=TARGET_PANEL,
        ),
    ] = None
    as_json: AsJson = False


@dataclass(frozen=True)
class ReadTargetOptions(TargetOptions):
    """The same options, for a command that changes nothing."""

    read_only: Annotated[
        bool,
        typer.Option(
            "--read-only",
            help="Look at the data directory of all accounts, and write nothing.",
            rich_help_panel=TARGET_PANEL,
        ),
    ] = False


@contextmanager
def open_client(where: TargetOptions, makes: DirectoryPolicy = "any") -> "Iterator[Client]":
    """Open a client of the engine or the server that the options name.

    An embedded engine resumes no work that was left: listing runs asks for none.

    Args:
        where: the options.
        makes: the data directories that are created where there are none: `any`, only the
            `default` one, or `none`: that engine has an empty temporary folder.

    Raises:
        BadParameter: they name both, or a variable that is not set.
        ServiceError: `UNAVAILABLE` when the data directory cannot be used.
    """
    read_only = isinstance(where, ReadTargetOptions) and where.read_only
    local = is_local(where)
    if local and (where.base_url or where.profile):
        hint = "--base-url" if where.base_url else "--profile"
        raise typer.BadParameter("name a server, or an engine right here", param_hint=hint)
    key = os.environ.get(where.api_key_env)
    if key is None and where.api_key_env != KEY_VARIABLE:
        raise typer.BadParameter(f"{where.api_key_env} is not set", param_hint="--api-key-env")
    with ExitStack() as opened:
        if not local and names_server(where):
            from toolkit.client import Client

            # The usual variable is the client's to read: a profile's address has another key.
            given = None if where.api_key_env == KEY_VARIABLE else key
            client = Client(
                where.base_url,
                given,
                profile=where.profile,
                max_wait_s=where.max_wait_s,
                cacert=where.cacert,
            )
            yield opened.enter_context(client)
            return
        if key is not None and not local:
            raise typer.BadParameter(
                f"{where.api_key_env} is set, and no server: name it, or a folder by --data-dir",
                param_hint="--base-url, TOOLKIT_BASE_URL",
            )
        from toolkit.local import Client as LocalClient

        folder = where.data_dir
        if makes == "none" or (makes == "default" and folder is not None):
            folder = _find_data_dir(where, opened, read_only=read_only)
        local_client = LocalClient.local(
            folder, sandbox=where.sandbox, take_up=False, read_only=read_only
        )
        yield opened.enter_context(local_client)


def is_local(where: TargetOptions) -> bool:
    """Tell whether the options name an embedded engine."""
    read_only = isinstance(where, ReadTargetOptions) and where.read_only
    return where.data_dir is not None or where.sandbox or read_only


def names_server(where: TargetOptions) -> bool:
    """Tell whether a server is used, unless the options name an embedded engine."""
    from toolkit.profiles import resolution

    return resolution.names_server(where.base_url, where.profile)


def _find_data_dir(where: TargetOptions, opened: ExitStack, *, read_only: bool) -> Path:
    """Find the data directory; make a temporary empty one where none was named.

    Raises:
        ServiceError: `UNAVAILABLE` when the one that was named is none.
    """
    from toolkit.settings import Settings
    from toolkit.store.data_dir.location import find_database

    folder = where.data_dir or Settings().data_dir
    if where.data_dir is not None or read_only or (folder / "state.db").exists():
        return find_database(folder).parent
    return Path(opened.enter_context(TemporaryDirectory(prefix="toolkit-")))


def service_command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a command that has the target options; the function takes the output first."""
    return _make_command(function, TargetOptions, "any")


def existing_command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a command of existing things, as `service_command`; it creates no data directory."""
    return _make_command(function, TargetOptions, "none")


def named_command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a command as `service_command`, that creates no directory of a mistyped name."""
    return _make_command(function, TargetOptions, "default")


def read_command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a command as `existing_command` that only reads, and has `--read-only`, too."""
    return _make_command(function, ReadTargetOptions, "none")


def read_command_unless(
    instead: Callable[..., bool],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command as `read_command`, unless `instead` can do without a client.

    Args:
        instead: takes the target and the command's own options; returns true if it did all.
    """
    return partial(_make_command, options=ReadTargetOptions, makes="none", instead=instead)


def _make_command(
    function: Callable[..., None],
    options: type[TargetOptions],
    makes: DirectoryPolicy,
    instead: Callable[..., bool] | None = None,
) -> Callable[..., None]:
    shared = fields(options)
    own = list(inspect.signature(function).parameters.values())[1:]
    # One parameter stands for all options of a run.
    grouped = {
        each.name: make_parameters(each.annotation)
        for each in own
        if each.annotation in (RunOptions, WorkOptions)
    }

    @wraps(function)
    def command(**given: Any) -> None:
        where = options(**{option.name: given.pop(option.name) for option in shared})
        for name, parameters in grouped.items():
            given[name] = {each.name: given.pop(each.name) for each in parameters}
        if instead is not None and instead(where, **given):
            return
        with open_client(where, makes) as client:
            function(ClientOutput(client, where.as_json, where), **given)

    spelled = [each for one in own for each in grouped.get(one.name, [one])]
    added = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=option.default,
            annotation=option.type,
        )
        for option in shared
    ]
    # Typer reads a command's options from these.
    every = sorted([*spelled, *added], key=lambda each: each.kind)
    command.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in every}
    return command
