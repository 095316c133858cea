"""The commands of `toolkit storage`."""

from typing import Annotated

from typer import Argument, Option

from toolkit.cli.options import service_command
from toolkit.cli.output import ClientOutput
from toolkit.cli.resource_commands import add_resource_commands, make_group

app = make_group("Network volumes: billed until they are deleted.")
add_resource_commands(
    app, "storage", ("id", "name", "status", "size_gb", "data_center", "created_at")
)


@app.command()
@service_command
def create(
    shell: ClientOutput,
    name: Annotated[str, Argument(help="Name of the volume.")],
    size_gb: Annotated[int, Argument(min=10, max=4096, help="Gigabytes.")],
    data_center: Annotated[str | None, Option(help="Data centre, such as EU-RO-1.")] = None,
) -> None:
    """Rent a network volume."""
    shell.print_record(shell.client.storage.create(name, size_gb, data_center=data_center))
