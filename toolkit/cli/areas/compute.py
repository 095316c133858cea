"""`toolkit compute`."""

from typing import Annotated

import typer

from toolkit.cli import complete
from toolkit.cli.options import on_service
from toolkit.cli.output import Shell
from toolkit.cli.verbs import deletes, group, reads

app = group("GPU pods: billed by the hour until they are deleted.")
reads(app, "compute", ("id", "name", "status", "gpu_type", "cost_per_hour_usd", "created_at"))
deletes(app, "compute")


@app.command()
@on_service
def create(
    shell: Shell,
    name: Annotated[str, typer.Argument(help="What to call it.")],
    gpu_type: Annotated[
        str, typer.Argument(help="Such as `NVIDIA GeForce RTX 4090`.", autocompletion=complete.gpus)
    ],
    image: Annotated[str | None, typer.Option(help="The container to run.")] = None,
    storage_id: Annotated[
        str | None,
        typer.Option(help="A volume to mount.", autocompletion=complete.ids_of("storage")),
    ] = None,
    template_id: Annotated[
        str | None,
        typer.Option(help="A template for pods.", autocompletion=complete.ids_of("templates")),
    ] = None,
) -> None:
    """Rent a GPU pod."""
    made = shell.client.compute.create(
        name, gpu_type, image=image, storage_id=storage_id, template_id=template_id
    )
    shell.show(made)
