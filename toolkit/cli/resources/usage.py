"""The commands of `toolkit usage`."""

from typing import Annotated

from typer import Option

from toolkit.cli import options
from toolkit.cli.options import read_command
from toolkit.cli.output import ClientOutput
from toolkit.cli.resource_commands import make_group

FIGURE_COLUMNS = ("jobs", "failed", "cached", "calls", "unpriced_calls", "cost_usd", "latency_ms")
ID_COLUMNS = {name: f"{name}_id" for name in ("connection", "agent", "key", "account")}

app = make_group("The usage and its cost.")


@app.command("list")
@read_command
def list_them(
    shell: ClientOutput,
    by: Annotated[
        list[options.UsageWord] | None,
        Option(
            help="Field that groups the lines; repeatable. `account` selects all work"
            " by your own connections, of any account."
        ),
    ] = None,
    first: Annotated[str | None, Option(help="First day, such as 2026-11-01.")] = None,
    last: Annotated[str | None, Option(help="Last day.")] = None,
) -> None:
    """Show the total usage, of the last 30 days by default."""
    groups = by or ["day", "capability", "provider"]
    lines = shell.read("/usage", group_by=",".join(groups), **{"from": first, "to": last})["items"]
    shell.print_table(lines, (*(ID_COLUMNS.get(name, name) for name in groups), *FIGURE_COLUMNS))
