"""`toolkit account`."""

from typing import Annotated

import typer

from toolkit import upkeep
from toolkit.cli.options import looking, on_service
from toolkit.cli.output import Shell
from toolkit.cli.verbs import group

app = group("The account that a key belongs to.")


@app.command()
@looking
def show(shell: Shell) -> None:
    """Show the account."""
    shell.show(shell.read("/account"))


@app.command("open")
@on_service
def sign_up(
    shell: Shell, email: Annotated[str, typer.Argument(help="Whom it belongs to.")]
) -> None:
    """Open an account; its key is shown this once."""
    shell.show(shell.client.account.create(email))


app.command("create")(upkeep.create_account)
app.command("limit")(upkeep.limit_account)
