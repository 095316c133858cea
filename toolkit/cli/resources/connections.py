"""The commands of `toolkit connections`."""

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from toolkit.cli import completion
from toolkit.cli.options import existing_command, service_command
from toolkit.cli.output import ClientOutput
from toolkit.cli.resource_commands import add_resource_commands, make_group
from toolkit.contract.choices import ConnectionType
from toolkit.contract.errors import ErrorCode, RequestError

if TYPE_CHECKING:
    from toolkit.client import Connection

app = make_group("Connections to vendors: pointers to keys, which stay where they are.")
CONNECTION_COLUMNS = ("id", "provider", "connection_type", "secret_ref", "shared", "created_at")
add_resource_commands(app, "connections", CONNECTION_COLUMNS)

Vendor = Annotated[str, Argument(help="A vendor.", autocompletion=completion.providers)]
Connected = Annotated[
    str,
    Argument(
        help="Connected vendor, or id of a connection.", autocompletion=completion.connected_vendors
    ),
]
Members = Annotated[
    list[str] | None,
    Option("--with", help="Id of an account that may use the connection; repeatable."),
]


@app.command()
@service_command
def create(
    shell: ClientOutput,
    provider: Vendor,
    secret_ref: Annotated[str, Argument(help="Name of the variable or of the secret.")],
    connection_type: Annotated[
        ConnectionType, Option("--type", help="Type of the pointer to the secret.")
    ] = "environment",
    share: Annotated[
        bool,
        Option(
            "--share",
            help="Share it, as an operator, with all accounts, or only with accounts named"
            " by --with.",
        ),
    ] = False,
    members: Members = None,
) -> None:
    """Register a pointer to a secret: its name, never its value."""
    if members and not share:
        raise typer.BadParameter("--with goes with --share")
    shared = (members or "all") if share else None
    connection = shell.client.connections.create(
        provider, connection_type, secret_ref, share=shared
    )
    shell.print_record(connection)
    _print_warning(shell, connection)


@app.command()
@service_command
def connect(
    shell: ClientOutput,
    providers: Annotated[
        list[str],
        Argument(
            help="Vendors, or `all` for all vendors whose variable is set.",
            autocompletion=completion.providers,
        ),
    ],
) -> None:
    """Make a connection to each vendor by the environment variable that usually has its key."""
    connections = shell.client.connections.connect(*providers)
    shell.print_table(connections, ("id", "provider", "secret_ref"))
    for connection in connections:
        _print_warning(shell, connection)


@app.command()
@service_command
def discover(
    shell: ClientOutput,
    connect: Annotated[
        list[str] | None,
        Option(
            help="Connect this vendor; repeatable, or `all`.",
            autocompletion=completion.vendors_to_connect,
        ),
    ] = None,
) -> None:
    """Show which conventional variables are set here, and connect those you name."""
    variables = shell.client.connections.discover()
    fresh = [
        row.record.provider for row in variables if row.record.set and not row.record.connected
    ]
    names = connect or []
    if names:
        for connection in shell.client.connections.connect(*names):
            _print_warning(shell, connection)
        variables = shell.client.connections.discover()
    shell.print_table(variables, ("provider", "variable", "set", "connected"))
    unconnected = [row.record.provider for row in variables if not row.record.connected]
    if fresh and not names:
        shell.print_note(f"Next: toolkit connections discover --connect {fresh[0]}")
    elif unconnected and shell.client.health().sandbox:
        shell.print_note(
            "In the sandbox, every vendor has a key without a variable. Next:"
            f" toolkit connections connect {' '.join(unconnected)}"
        )


@app.command()
@service_command
def test(shell: ClientOutput, connection: Connected) -> None:
    """Check whether the secret exists and the vendor accepts the key; costs nothing."""
    result = shell.client.connections.test(_find_id(shell, connection))
    if shell.as_json:
        shell.print_record(result)
    else:
        print(repr(result)[1:-1])
    if not result.ok:
        raise typer.Exit(1)


@app.command()
@existing_command
def trust(shell: ClientOutput, connection: Connected) -> None:
    """Let work with a budget use models again that billed more than was reserved for them."""
    shell.print_record(shell.client.connections.trust(_find_id(shell, connection)))


@app.command()
@existing_command
def share(
    shell: ClientOutput,
    connection: Connected,
    members: Members = None,
    everyone: Annotated[
        bool, Option("--all", help="Share it with all accounts, including future accounts.")
    ] = False,
) -> None:
    """Share an operator's connection with other accounts, each with its own bill and limits."""
    if everyone is bool(members):
        raise typer.BadParameter("give either --all or --with an account")
    shell.print_record(
        shell.client.connections.share(_find_id(shell, connection), members or "all")
    )


@app.command()
@existing_command
def unshare(
    shell: ClientOutput,
    connection: Connected,
    member: Annotated[
        str | None, Option("--with", help="Account that loses access; all by default.")
    ] = None,
) -> None:
    """Stop sharing a connection with one account, or with all accounts."""
    shell.print_record(shell.client.connections.unshare(_find_id(shell, connection), member))


def _print_warning(shell: ClientOutput, connection: "Connection") -> None:
    """Print on stderr the fault that the test of a new connection found."""
    warning = connection.record.warning
    if warning is not None:
        shell.print_note(f"Warning: {connection.provider} is connected, but {warning.message}")


def _find_id(shell: ClientOutput, name: str) -> str:
    """Find the newest connection to a vendor, preferring the account's own; return an id unchanged.

    Raises:
        RequestError: `NOT_FOUND`.
    """
    if name.startswith("prv_"):
        return name
    connections = [
        connection for connection in shell.client.connections if connection.provider == name
    ]
    if connections:
        return min(connections, key=lambda connection: connection.shared).id
    raise RequestError(ErrorCode.NOT_FOUND, f"`{name}` is not connected.")
