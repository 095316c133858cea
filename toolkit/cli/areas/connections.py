"""`toolkit connections`."""

from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli import complete
from toolkit.cli.options import on_existing, on_service
from toolkit.cli.output import Shell
from toolkit.cli.verbs import deletes, group, reads
from toolkit.contract.choices import ConnectionType
from toolkit.contract.errors import ErrorCode, RequestError

if TYPE_CHECKING:
    from toolkit.client._sync.areas.connections import Connection

app = group("The vendors you have keys for; keys stay where they are.")
COLUMNS = ("id", "provider", "connection_type", "secret_ref", "shared", "created_at")
reads(app, "providers/connections", COLUMNS)
deletes(app, "connections")

Vendor = Annotated[str, typer.Argument(help="A vendor.", autocompletion=complete.providers)]
Members = Annotated[
    list[str] | None,
    typer.Option("--with", help="The id of an account that may use it; repeatable."),
]


@app.command()
@on_service
def create(
    shell: Shell,
    provider: Vendor,
    secret_ref: Annotated[str, typer.Argument(help="The name of the variable, or of the secret.")],
    connection_type: Annotated[
        ConnectionType, typer.Option("--type", help="Where the secret is.")
    ] = "environment",
    share: Annotated[
        bool, typer.Option("--share", help="Share it, as an operator: with all, or --with some.")
    ] = False,
    members: Members = None,
) -> None:
    """Register a pointer to a secret: its name, never its value."""
    if members and not share:
        raise typer.BadParameter("--with goes with --share")
    shared = (members or "all") if share else None
    made = shell.client.connections.create(provider, connection_type, secret_ref, share=shared)
    shell.show(made)
    _warn(shell, made)


@app.command()
@on_service
def connect(
    shell: Shell,
    providers: Annotated[
        list[str], typer.Argument(help="Vendors.", autocompletion=complete.providers)
    ],
) -> None:
    """Register the conventional variables of vendors."""
    made = shell.client.connections.connect(*providers)
    shell.table(made, ("id", "provider", "secret_ref"))
    for connection in made:
        _warn(shell, connection)


@app.command()
@on_service
def discover(
    shell: Shell,
    connect: Annotated[
        list[str] | None,
        typer.Option(
            help="Connect this vendor; repeatable, or `all`.",
            autocompletion=complete.vendors_to_connect,
        ),
    ] = None,
) -> None:
    """Show which conventional variables are set here, and connect those you name."""
    found = shell.client.connections.discover()
    fresh = [row.record.provider for row in found if row.record.set and not row.record.connected]
    wanted = fresh if connect == ["all"] else connect or []
    if wanted:
        for connection in shell.client.connections.connect(*wanted):
            _warn(shell, connection)
        found = shell.client.connections.discover()
    shell.table(found, ("provider", "variable", "set", "connected"))
    left = [row.record.provider for row in found if not row.record.connected]
    if fresh and not wanted:
        shell.note(f"Next: toolkit connections discover --connect {fresh[0]}")
    elif left and shell.client.health().sandbox:
        shell.note(
            "In the sandbox every vendor has a key, whatever is set here. Next: toolkit"
            f" connections connect {' '.join(left)}"
        )


@app.command()
@on_service
def test(
    shell: Shell,
    connection: Annotated[
        str,
        typer.Argument(
            help="A connected vendor, or an id.", autocompletion=complete.connected_vendors
        ),
    ],
) -> None:
    """Say whether a pointer resolves and the vendor takes the key; costs nothing."""
    result = shell.client.connections.test(_id_of(shell, connection))
    if shell.as_json:
        shell.show(result)
    else:
        print(repr(result)[1:-1])
    if not result.ok:
        raise typer.Exit(1)


@app.command()
@on_existing
def trust(
    shell: Shell,
    connection: Annotated[
        str,
        typer.Argument(
            help="A connected vendor, or an id.", autocompletion=complete.connected_vendors
        ),
    ],
) -> None:
    """Use models under budgets again that billed more than was reserved for them."""
    shell.show(shell.client.connections.trust(_id_of(shell, connection)))


@app.command()
@on_existing
def share(
    shell: Shell,
    connection: Annotated[
        str,
        typer.Argument(help="A connected vendor, or an id.", autocompletion=complete.providers),
    ],
    members: Members = None,
    everyone: Annotated[
        bool,
        typer.Option("--all", help="All accounts, also those that are yet to be opened."),
    ] = False,
) -> None:
    """Have other accounts use an operator's connection, each billed and limited by itself."""
    if everyone is bool(members):
        raise typer.BadParameter("give either --all or --with an account")
    shell.show(shell.client.connections.share(_id_of(shell, connection), members or "all"))


@app.command()
@on_existing
def unshare(
    shell: Shell,
    connection: Annotated[
        str,
        typer.Argument(help="A connected vendor, or an id.", autocompletion=complete.providers),
    ],
    member: Annotated[
        str | None, typer.Option("--with", help="The account that loses it; all by default.")
    ] = None,
) -> None:
    """Share a connection no longer: with one account, or with nobody."""
    shell.show(shell.client.connections.unshare(_id_of(shell, connection), member))


def _warn(shell: Shell, connection: "Connection") -> None:
    """Print on stderr what a test found wrong with a connection that was made."""
    warning = connection.record.warning
    if warning is not None:
        shell.note(f"Warning: {connection.provider} is connected, but {warning.message}")


def _id_of(shell: Shell, name: str) -> str:
    """Find the newest connection to a vendor, preferring an own one; an id is returned as is.

    Raises:
        RequestError: `NOT_FOUND`.
    """
    if name.startswith("prv_"):
        return name
    found = [each for each in shell.client.connections if each.provider == name]
    if found:
        return min(found, key=lambda each: each.shared).id
    raise RequestError(ErrorCode.NOT_FOUND, f"`{name}` is not connected.")
