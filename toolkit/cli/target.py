"""The engine or the server that a command uses, and its client."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Option

from toolkit.cli import local_completion

if TYPE_CHECKING:
    from toolkit.client import Client

KEY_VARIABLE = "TOOLKIT_API_KEY"
DirectoryPolicy = Literal["any", "default", "none"]

_option = partial(Option, rich_help_panel="Connection and output")
AsJson = Annotated[bool, _option("--json", help="Print JSON instead of text.")]


@dataclass(frozen=True)
class Target:
    """The engine or the server that a command uses, and the format of its output.

    Each field is an option of the commands of a service, in the order of their help.
    """

    data_dir: Annotated[
        Path | None,
        _option(help="Use an embedded engine, with its data in this folder; .toolkit by default."),
    ] = None
    sandbox: Annotated[bool, _option("--sandbox", help="Simulated vendors: no keys, no bills.")] = (
        False
    )
    base_url: Annotated[
        str | None, _option(help="Use this server; TOOLKIT_BASE_URL by default.")
    ] = None
    profile: Annotated[
        str | None,
        _option(
            help="Use this profile of `toolkit login`; TOOLKIT_PROFILE by default.",
            autocompletion=local_completion.profiles,
        ),
    ] = None
    api_key_env: Annotated[
        str,
        _option(
            help="Variable that contains the server's key.",
            autocompletion=local_completion.variables,
        ),
    ] = KEY_VARIABLE
    max_wait_s: Annotated[
        float | None,
        _option(
            "--max-wait",
            min=0,
            help="Maximum seconds to wait for an unavailable server; TOOLKIT_MAX_WAIT_S, or 60.",
        ),
    ] = None
    cacert: Annotated[
        Path | None,
        _option(help="Trust the certificates in this file (PEM), too; or set SSL_CERT_FILE."),
    ] = None
    as_json: AsJson = False
    read_only: Annotated[
        bool,
        _option(
            "--read-only",
            help="Read the data directory or the database, with all accounts; write nothing.",
        ),
    ] = False


@contextmanager
def open_client(target: Target, makes: DirectoryPolicy = "any") -> "Iterator[Client]":
    """Open a client of the engine or the server of a target.

    An embedded engine resumes no old work, because listing runs must not start any.

    Args:
        makes: data directories that may be created: `any`, only the `default` one, or `none`,
            which replaces a missing default directory by an empty temporary folder.

    Raises:
        BadParameter: the target names a server and an engine, or a variable that is not set.
        ServiceError: `UNAVAILABLE` when the data directory cannot be used.
    """
    local = is_local(target)
    if local and (target.base_url or target.profile):
        hint = "--base-url" if target.base_url else "--profile"
        raise typer.BadParameter("name a server or an embedded engine, not both", param_hint=hint)
    key = os.environ.get(target.api_key_env)
    if key is None and target.api_key_env != KEY_VARIABLE:
        raise typer.BadParameter(f"{target.api_key_env} is not set", param_hint="--api-key-env")
    from toolkit.client import Client

    with ExitStack() as opened:
        if not local and names_server(target):
            # The client reads the usual variable, because a profile's address has another key.
            api_key = None if target.api_key_env == KEY_VARIABLE else key
            client = Client(
                target.base_url,
                api_key,
                profile=target.profile,
                max_wait_s=target.max_wait_s,
                cacert=target.cacert,
            )
            yield opened.enter_context(client)
            return
        if key is not None and not local:
            raise typer.BadParameter(
                f"{target.api_key_env} is set, but no server is named: name a"
                " server, or a folder with --data-dir",
                param_hint="--base-url, TOOLKIT_BASE_URL",
            )
        folder = target.data_dir
        if makes == "none" or (makes == "default" and folder is not None):
            folder = _find_data_dir(target, opened)
        local_client = Client.local(
            folder, sandbox=target.sandbox, take_up=False, read_only=target.read_only
        )
        yield opened.enter_context(local_client)


def is_local(target: Target) -> bool:
    """Check whether a target is an embedded engine."""
    return target.data_dir is not None or target.sandbox or target.read_only


def names_server(target: Target) -> bool:
    """Check whether a target names a server, if it is no embedded engine."""
    from toolkit.profiles import resolution

    return resolution.names_server(target.base_url, target.profile)


def _find_data_dir(target: Target, opened: ExitStack) -> Path:
    """Find the data directory; if none is named and none exists, make an empty temporary one.

    Raises:
        ServiceError: `UNAVAILABLE` if the named directory is no data directory.
    """
    from toolkit.settings import Settings
    from toolkit.store.data_dir.location import find_database

    settings = Settings()
    folder = target.data_dir or settings.data_dir
    if settings.database is not None:
        return folder
    if target.data_dir is not None or target.read_only or (folder / "state.db").exists():
        return find_database(folder).parent
    return Path(opened.enter_context(TemporaryDirectory(prefix="toolkit-")))
