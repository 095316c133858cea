"""The commands of `toolkit billing`."""

from typing import Annotated

import typer
from typer import Option

from toolkit.cli.options import read_command
from toolkit.cli.output import ClientOutput
from toolkit.cli.resource_commands import make_group

app = make_group("The bills of vendors.")


@app.command()
@read_command
def show(
    shell: ClientOutput,
    month: Annotated[
        str | None, Option(help="Month, such as 2026-11; the present month by default.")
    ] = None,
    by_key: Annotated[bool, Option("--by-key", help="A line for each key.")] = False,
    by_account: Annotated[
        bool,
        Option(
            "--by-account", help="A line for each account whose work used your own connections."
        ),
    ] = False,
) -> None:
    """Show each vendor's bill for a month."""
    if by_key and by_account:
        raise typer.BadParameter("give either --by-key or --by-account")
    by = "key" if by_key else "account" if by_account else None
    groups = () if by is None else (f"{by}_id",)
    columns = ("billed_by", "title", *groups, "calls", "unpriced_calls", "pod_hours", "cost_usd")
    shell.print_record(shell.read("/billing", month=month, group_by=by), "lines", columns)
