"""The commands of `toolkit account`."""

from functools import partial
from typing import Annotated

from typer import Argument

from toolkit.cli.commands import account_admin
from toolkit.cli.options import read_command, service_command
from toolkit.cli.output import ClientOutput
from toolkit.cli.resource_commands import make_group

app = make_group("The account of the key; for operators, also the accounts of a data directory.")


@app.command()
@partial(read_command, instead=account_admin.show_account)
def show(
    shell: ClientOutput,
    account: Annotated[  # noqa: ARG001 - `show_account` sees to it
        str | None,
        Argument(
            help="Account of a data directory, by id or email address; by default the"
            " account of the key.",
            autocompletion=account_admin.complete_accounts,
        ),
    ] = None,
) -> None:
    """Show the account of the key, or a named account of a data directory, with its keys."""
    shell.print_record(shell.read("/account"))


@app.command("open")
@service_command
def sign_up(
    shell: ClientOutput, email: Annotated[str, Argument(help="Email address of the owner.")]
) -> None:
    """Open an account; its key is shown only once."""
    shell.print_record(shell.client.account.create(email))


app.command("list")(account_admin.list_accounts)
app.command("create")(account_admin.create_account)
app.command("limit")(account_admin.limit_account)
app.command("keys")(account_admin.list_keys)
app.command("disable")(account_admin.disable)
app.command("enable")(account_admin.enable)
app.command("promote")(account_admin.promote)
app.command("demote")(account_admin.demote)
app.command("recover")(account_admin.recover)
