"""The `toolkit` command: a module in `resources` for each group, and further single commands."""

import gc
import pkgutil
import sys
from collections.abc import Mapping
from typing import Annotated, ClassVar

import typer
from typer import Option

from toolkit.cli import resources
from toolkit.cli.errors import EXIT_CODES, find_exit_code, report_error
from toolkit.cli.lazy import CommandLocation, LazyGroup
from toolkit.contract.errors import ToolkitError

WORK, HERE, SERVICE, PROFILES = "Work", "Here", "The service", "Profiles"


class RootGroup(LazyGroup):
    """All commands, in the order in which the help shows them."""

    locations: ClassVar[Mapping[str, CommandLocation]] = {
        "run": CommandLocation("cli.resources.runs", "run", WORK),
        "map": CommandLocation("cli.resources.maps", "run", WORK),
        "task": CommandLocation("cli.resources.tasks", "task", WORK),
        "route": CommandLocation("cli.commands.service", "route", WORK),
        "compare": CommandLocation("cli.commands.service", "compare", WORK),
        "batch": CommandLocation("cli.commands.batch", "batch", HERE),
        "demo": CommandLocation("cli.commands.demo", "demo", HERE),
        "serve": CommandLocation("cli.commands.serve", "serve", HERE),
        "verify": CommandLocation("cli.commands.verify", "verify", HERE),
        "doctor": CommandLocation("cli.commands.maintenance", "doctor", HERE),
        "backup": CommandLocation("cli.commands.maintenance", "backup", HERE),
        "prune": CommandLocation("cli.commands.maintenance", "prune", HERE),
        "migrate": CommandLocation("cli.commands.migrate", "migrate", HERE),
        "health": CommandLocation("cli.commands.service", "health", SERVICE),
        "whoami": CommandLocation("cli.commands.login", "whoami", SERVICE),
        "login": CommandLocation("cli.commands.login", "login", PROFILES),
        "logout": CommandLocation("cli.commands.login", "logout", PROFILES),
        "profiles": CommandLocation("cli.commands.login", "profiles", PROFILES),
        **{
            module.name: CommandLocation(f"cli.resources.{module.name}", "app", SERVICE)
            for module in pkgutil.iter_modules(resources.__path__)
        },
        # The singular, as an alias.
        "workflow": CommandLocation("cli.resources.workflows", "app", SERVICE, hidden=True),
    }


app = typer.Typer(
    cls=RootGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Ask for capabilities, not vendors.",
    epilog="Exit codes: " + ", ".join(f"{code} {why}" for code, why in EXIT_CODES.items()) + ".",
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        from toolkit.contract.version import read_installed_version

        print("capability-toolkit", read_installed_version())
        raise typer.Exit


@app.callback()
def begin(
    version: Annotated[
        bool, Option("--version", help="Show the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options of the command `toolkit` itself, such as `--version`."""


def main() -> None:
    """Run the command line; an error is one line on stderr and an exit code."""
    # httpx's own command line would take as long to import as the rest of it, and is not used here.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
    try:
        app()
    except (ToolkitError, OSError) as error:
        report_error(error, as_json="--json" in sys.argv)
        sys.exit(find_exit_code(error))
    finally:
        # As the process ends, the collector would visit all objects twice.
        gc.freeze()
