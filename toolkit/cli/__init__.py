"""The `toolkit` command: one module a group in `resources`, and commands of their own beside."""

import pkgutil
import sys
from collections.abc import Mapping
from typing import Annotated, ClassVar

import typer

from toolkit.cli import areas
from toolkit.cli.errors import EXIT_CODES, exit_code, report
from toolkit.cli.lazy import Home, LazyGroup
from toolkit.contract.errors import ToolkitError

WORK, HERE, SERVICE, PROFILES = "Work", "Here", "The service", "Profiles"


class Commands(LazyGroup):
    """All commands, in the order in which the help shows them."""

    homes: ClassVar[Mapping[str, Home]] = {
        "run": Home("cli.areas.runs", "run", WORK),
        "task": Home("cli.areas.tasks", "task", WORK),
        "route": Home("cli.alone", "route", WORK),
        "batch": Home("cli.batch", "batch", HERE),
        "demo": Home("cli.demo", "demo", HERE),
        "serve": Home("cli.serve", "serve", HERE),
        "verify": Home("cli.verify", "verify", HERE),
        "doctor": Home("upkeep", "doctor", HERE),
        "backup": Home("upkeep", "backup", HERE),
        "prune": Home("upkeep", "prune", HERE),
        "health": Home("cli.alone", "health", SERVICE),
        "whoami": Home("cli.login", "whoami", SERVICE),
        "login": Home("cli.login", "login", PROFILES),
        "logout": Home("cli.login", "logout", PROFILES),
        "profiles": Home("cli.login", "profiles", PROFILES),
        **{
            module.name: Home(f"cli.areas.{module.name}", "app", SERVICE)
            for module in pkgutil.iter_modules(areas.__path__)
        },
        # The singular, as an alias.
        "workflow": Home("cli.areas.workflows", "app", SERVICE, hidden=True),
    }


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Ask for capabilities, not vendors.",
    epilog="Exit codes: " + ", ".join(f"{code} {why}" for code, why in EXIT_CODES.items()) + ".",
)


def _print_version(asked: bool) -> None:
    if asked:
        from toolkit.contract.version import installed_version

        print("capability-toolkit", installed_version())
        raise typer.Exit


@app.callback()
def begin(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Ask for capabilities, not vendors."""


def main() -> None:
    """Run the command line; an error is one line on stderr and an exit code."""
    # httpx's own command line would take as long to import as the rest of it, and is not used here.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
    try:
        app()
    except (ToolkitError, OSError) as error:
        report(error, as_json="--json" in sys.argv)
        sys.exit(exit_code(error))
