"""The options that commands share, and the decorator that gives them to a command."""

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolkit.cli import complete
from toolkit.cli.output import Shell

if TYPE_CHECKING:
    from toolkit.client import Client

WHERE = "Where, and how it is shown"
KEY_VARIABLE = "TOOLKIT_API_KEY"

Name = Annotated[
    str,
    typer.Argument(
        help="A capability, such as llm.generate.", autocompletion=complete.capabilities
    ),
]
Fields = Annotated[list[str] | None, typer.Argument(help="Its input: name=value, or name:=JSON.")]
Given = Annotated[
    Path | None,
    typer.Option("--input", help="A JSON or YAML file with its input; - is stdin."),
]
Provider = Annotated[
    str | None,
    typer.Option(help="Pin this vendor, or this prv_ id.", autocompletion=complete.providers),
]
Optimize = Annotated[
    str | None, typer.Option(help="What to favour: cost, latency, quality or balanced.")
]
MaxCost = Annotated[float | None, typer.Option(min=0, help="Spend at most this, in US dollars.")]
OnEndpoint = Annotated[str | None, typer.Option(help="The ep_ id that GPU work runs on.")]
OnCompute = Annotated[str | None, typer.Option(help="The cmp_ id that GPU work runs on.")]
Deadline = Annotated[
    float | None, typer.Option(min=0, help="Fail rather than take longer, in seconds.")
]
Cache = Annotated[
    bool | None,
    typer.Option("--cache/--no-cache", help="Use the result of an equal job again."),
]
Fallback = Annotated[
    bool,
    typer.Option(
        "--fallback-on-rejection", help="Try the next vendor with an input that one refused."
    ),
]
Objective = Annotated[str, typer.Argument(help="What is wanted, in plain words.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Only start it, and print its id.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]


@dataclass(frozen=True)
class Where:
    """Which engine a command speaks to, and how it shows what it is told."""

    data_dir: Annotated[
        Path | None,
        typer.Option(
            help="Use an engine right here, with its data in this folder; .toolkit by default.",
            rich_help_panel=WHERE,
        ),
    ] = None
    sandbox: Annotated[
        bool,
        typer.Option(
            "--sandbox",
            help="Simulated vendors: no keys, no bills.",
            rich_help_panel=WHERE,
        ),
    ] = False
    base_url: Annotated[
        str | None,
        typer.Option(help="Use this server; TOOLKIT_BASE_URL by default.", rich_help_panel=WHERE),
    ] = None
    api_key_env: Annotated[
        str,
        typer.Option(help="The variable that holds the server's key.", rich_help_panel=WHERE),
    ] = KEY_VARIABLE
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print JSON instead of text.", rich_help_panel=WHERE),
    ] = False


@contextmanager
def connected(where: Where, *, makes: bool = True) -> "Iterator[Client]":
    """Speak to the engine or the server that the options name.

    Args:
        where: the options.
        makes: make the data directory of an engine right here, where there is none; otherwise
            that engine begins with nothing, and leaves nothing.

    Raises:
        BadParameter: they name both, or a variable that is not set.
        ServiceError: `UNAVAILABLE` when the data directory cannot be used.
    """
    local = where.data_dir is not None or where.sandbox
    if local and where.base_url:
        raise typer.BadParameter("name a server, or an engine right here", param_hint="--base-url")
    key = os.environ.get(where.api_key_env)
    if key is None and where.api_key_env != KEY_VARIABLE:
        raise typer.BadParameter(f"{where.api_key_env} is not set", param_hint="--api-key-env")
    url = where.base_url or ("" if local else os.environ.get("TOOLKIT_BASE_URL", ""))
    with ExitStack() as opened:
        if url:
            from toolkit.client import Client

            yield opened.enter_context(Client(url, key))
            return
        from toolkit.local import Client as LocalClient

        folder = where.data_dir if makes else _existing(where, opened)
        yield opened.enter_context(LocalClient.local(folder, sandbox=where.sandbox))


def _existing(where: Where, opened: ExitStack) -> Path:
    """The data directory that there is; an empty one for a while, where none was named.

    Raises:
        ServiceError: `UNAVAILABLE` when the one that was named is none.
    """
    from toolkit.settings import Settings
    from toolkit.store.database import find_database

    folder = where.data_dir or Settings().data_dir
    if where.data_dir is not None or (folder / "state.db").exists():
        return find_database(folder).parent
    return Path(opened.enter_context(TemporaryDirectory(prefix="toolkit-")))


def on_service(function: Callable[..., None]) -> Callable[..., None]:
    """A command of a function that takes a `Shell` first: it has the options of `Where`, too."""
    return _command(function, makes=True)


def on_existing(function: Callable[..., None]) -> Callable[..., None]:
    """A command like those of `on_service`, for what is there: it makes no data directory."""
    return _command(function, makes=False)


def _command(function: Callable[..., None], *, makes: bool) -> Callable[..., None]:
    shared = fields(Where)

    @wraps(function)
    def command(**given: Any) -> None:
        where = Where(**{option.name: given.pop(option.name) for option in shared})
        with connected(where, makes=makes) as client:
            function(Shell(client, where.as_json), **given)

    own = list(inspect.signature(function).parameters.values())[1:]
    added = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=option.default,
            annotation=option.type,
        )
        for option in shared
    ]
    # What typer reads a command's options from.
    command.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in (*own, *added)}
    return command
