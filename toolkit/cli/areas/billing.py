"""`toolkit billing`."""

from typing import Annotated

import typer

from toolkit.cli.options import looking
from toolkit.cli.output import Shell
from toolkit.cli.verbs import group

app = group("Who bills what.")


@app.command()
@looking
def show(
    shell: Shell,
    month: Annotated[str | None, typer.Option(help="Such as 2026-11; this one by default.")] = None,
    by_key: Annotated[bool, typer.Option("--by-key", help="A line for each key.")] = False,
) -> None:
    """Show what each vendor bills for a month."""
    key = ("key_id",) if by_key else ()
    columns = ("billed_by", "title", *key, "calls", "unpriced_calls", "pod_hours", "cost_usd")
    shell.show(
        shell.read("/billing", month=month, group_by="key" if by_key else None), "lines", columns
    )
