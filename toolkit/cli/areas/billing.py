"""`toolkit billing`."""

from typing import Annotated

import typer

from toolkit.cli.options import on_existing
from toolkit.cli.output import Shell
from toolkit.cli.verbs import group

app = group("Who bills what.")


@app.command()
@on_existing
def show(
    shell: Shell,
    month: Annotated[str | None, typer.Option(help="Such as 2026-11; this one by default.")] = None,
) -> None:
    """Show what each vendor bills for a month."""
    columns = ("billed_by", "title", "calls", "unpriced_calls", "pod_hours", "cost_usd")
    shell.show(shell.client.billing.get(month), "lines", columns)
