"""`toolkit storage`."""

from typing import Annotated

import typer

from toolkit.cli.options import on_service
from toolkit.cli.output import Shell
from toolkit.cli.verbs import deletes, group, reads

app = group("Network volumes: billed until they are deleted.")
reads(app, "storage", ("id", "name", "status", "size_gb", "data_center", "created_at"))
deletes(app, "storage")


@app.command()
@on_service
def create(
    shell: Shell,
    name: Annotated[str, typer.Argument(help="What to call it.")],
    size_gb: Annotated[int, typer.Argument(min=10, max=4096, help="Gigabytes.")],
    data_center: Annotated[str | None, typer.Option(help="Where, such as EU-RO-1.")] = None,
) -> None:
    """Rent a network volume."""
    shell.show(shell.client.storage.create(name, size_gb, data_center=data_center))
