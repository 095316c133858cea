"""`toolkit compute`."""

from typing import Annotated

import typer

from toolkit.cli import completion
from toolkit.cli.options import service_command
from toolkit.cli.output import ClientOutput
from toolkit.cli.resource_commands import add_resource_commands, make_group

app = make_group("GPU pods: billed by the hour until they are deleted.")
add_resource_commands(
    app, "compute", ("id", "name", "status", "gpu_type", "cost_per_hour_usd", "created_at")
)


@app.command()
@service_command
def create(
    shell: ClientOutput,
    name: Annotated[str, typer.Argument(help="Name of the pod.")],
    gpu_type: Annotated[
        str,
        typer.Argument(
            help="Type of GPU, such as `NVIDIA GeForce RTX 4090`.", autocompletion=completion.gpus
        ),
    ],
    image: Annotated[str | None, typer.Option(help="Container image to run.")] = None,
    storage_id: Annotated[
        str | None,
        typer.Option(
            help="Volume to mount.", autocompletion=completion.make_id_completion("storage")
        ),
    ] = None,
    template_id: Annotated[
        str | None,
        typer.Option(
            help="Template for pods.", autocompletion=completion.make_id_completion("templates")
        ),
    ] = None,
) -> None:
    """Rent a GPU pod."""
    pod = shell.client.compute.create(
        name, gpu_type, image=image, storage_id=storage_id, template_id=template_id
    )
    shell.print_record(pod)
