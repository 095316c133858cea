"""`toolkit keys`."""

from typing import Annotated

import typer

from toolkit.cli import options
from toolkit.cli.options import looking, on_existing, on_named
from toolkit.cli.output import MOST, Shell
from toolkit.cli.verbs import Id, group

app = group("The keys of the account; a key itself is shown once, when it is made.")


@app.command("list")
@looking
def list_them(shell: Shell) -> None:
    """List them by their last four characters, those that have ended too."""
    columns = (
        "id", "name", "last4", "scopes", "max_cost_usd_per_day", "left_usd_today", "last_used_at",
        "expires_at", "revoked_at", "created_at",
    )  # fmt: skip
    shell.table(shell.items("/account/keys", MOST), columns)


@app.command()
@looking
def show(shell: Shell, id: Id) -> None:  # noqa: A002 - the contract's word
    """Show what is known of one: never the key itself."""
    shell.show(shell.read(f"/account/keys/{id}"))


@app.command()
@on_named
def create(
    shell: Shell,
    name: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    scope: Annotated[
        list[options.ScopeWord] | None,
        typer.Option(help="What it allows; repeatable, read and write by default."),
    ] = None,
    max_cost_usd_per_day: Annotated[
        float | None, typer.Option(min=0, help="What may be spent with it in a day, by UTC.")
    ] = None,
) -> None:
    """Make another key; it is shown this once."""
    made = shell.client.account.create_key(
        name=name, scopes=scope or None, max_cost_usd_per_day=max_cost_usd_per_day
    )
    shell.show(made)


@app.command()
@on_existing
def rotate(
    shell: Shell,
    id: Id,  # noqa: A002
    overlap_s: Annotated[
        int | None, typer.Option(min=0, help="How long the old one is still good; a day.")
    ] = None,
) -> None:
    """Make a key in the place of another; it is shown this once."""
    shell.show(shell.client.account.rotate_key(id, overlap_s=overlap_s))


@app.command()
@on_existing
def revoke(shell: Shell, id: Id) -> None:  # noqa: A002 - the contract's word
    """Make a key invalid at once."""
    shell.show(shell.client.account.revoke(id))
