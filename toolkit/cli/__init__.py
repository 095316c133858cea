"""The `toolkit` command: one module a group in `areas`, and what stands alone beside them."""

import pkgutil
import sys
from importlib import import_module
from typing import Annotated

import typer

from toolkit import upkeep
from toolkit.batch.cli import batch
from toolkit.cli import alone, areas, login
from toolkit.cli.areas import runs, tasks, workflows
from toolkit.cli.demo import demo
from toolkit.cli.errors import EXIT_CODES, exit_code, report
from toolkit.cli.serve import serve
from toolkit.cli.verify import verify
from toolkit.contract.errors import ToolkitError

app = typer.Typer(
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


app.command(rich_help_panel="Work")(runs.run)
app.command(rich_help_panel="Work")(tasks.task)
app.command(rich_help_panel="Work")(alone.route)
app.command(rich_help_panel="Here")(batch)
app.command(rich_help_panel="Here")(demo)
app.command(rich_help_panel="Here")(serve)
app.command(rich_help_panel="Here")(verify)
app.command(rich_help_panel="Here")(upkeep.doctor)
app.command(rich_help_panel="Here")(upkeep.backup)
app.command(rich_help_panel="Here")(upkeep.prune)
app.command(rich_help_panel="The service")(alone.health)
app.command(rich_help_panel="The service")(login.whoami)
app.command(rich_help_panel="Profiles")(login.login)
app.command(rich_help_panel="Profiles")(login.logout)
app.command(rich_help_panel="Profiles")(login.profiles)
for _module in pkgutil.iter_modules(areas.__path__):
    _area = import_module(f"{areas.__name__}.{_module.name}").app
    app.add_typer(_area, name=_module.name, rich_help_panel="The service")
app.add_typer(workflows.app, name="workflow", hidden=True)  # as one says it of a single one


def main() -> None:
    """Run the command line; an error is one line on stderr and an exit code."""
    try:
        app()
    except (ToolkitError, OSError) as error:
        report(error, as_json="--json" in sys.argv)
        sys.exit(exit_code(error))
