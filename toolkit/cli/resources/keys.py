"""The commands of `toolkit keys`."""

from typing import Annotated

from typer import Option

from toolkit.cli import options
from toolkit.cli.options import Id, default_dir_command, existing_command, read_command
from toolkit.cli.output import ClientOutput
from toolkit.cli.resource_commands import make_group

app = make_group("The keys of the account; a key itself is shown only once, when it is created.")


@app.command("list")
@read_command
def list_them(shell: ClientOutput) -> None:
    """List keys by their last four characters, including ended keys."""
    columns = (
        "id", "name", "last4", "scopes", "max_cost_usd_per_day", "left_usd_today", "max_cost_usd",
        "left_usd", "last_used_at", "expires_at", "revoked_at", "created_at",
    )  # fmt: skip
    shell.print_newest("/account/keys", columns)


@app.command()
@read_command
def show(shell: ClientOutput, id: Id) -> None:
    """Show the record of a key, without the secret itself."""
    shell.print_record(shell.read(f"/account/keys/{id}"))


@app.command()
@default_dir_command
def create(
    shell: ClientOutput,
    name: Annotated[str | None, Option(help="Name of the key, such as its purpose.")] = None,
    scope: Annotated[
        list[options.ScopeWord] | None,
        Option(help="Scope of the key; repeatable, read and write by default."),
    ] = None,
    max_cost_usd_per_day: Annotated[
        float | None,
        Option(min=0, help="Maximum cost of work with the key per UTC day, in US dollars."),
    ] = None,
    max_cost_usd: Annotated[
        float | None, Option(min=0, help="Maximum total cost of work with the key, in US dollars.")
    ] = None,
    expires_in_s: Annotated[
        int | None, Option(min=1, help="Lifetime of the key in seconds; unlimited by default.")
    ] = None,
) -> None:
    """Make another key; it is shown only once."""
    key = shell.client.api_keys.create(
        name=name,
        scopes=scope or None,
        max_cost_usd_per_day=max_cost_usd_per_day,
        max_cost_usd=max_cost_usd,
        expires_in_s=expires_in_s,
    )
    shell.print_record(key)


@app.command()
@existing_command
def rotate(
    shell: ClientOutput,
    id: Id,
    overlap_s: Annotated[
        int | None, Option(min=0, help="Seconds that the old key stays valid; a day by default.")
    ] = None,
) -> None:
    """Replace a key by a new key, which is shown only once."""
    shell.print_record(shell.client.api_keys.rotate(id, overlap_s=overlap_s))


@app.command()
@existing_command
def revoke(shell: ClientOutput, id: Id) -> None:
    """Revoke a key at once."""
    shell.print_record(shell.client.api_keys.delete(id))
