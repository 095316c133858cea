"""`toolkit endpoints`."""

from typing import Annotated

import typer

from toolkit.cli import completion
from toolkit.cli.options import service_command
from toolkit.cli.output import ClientOutput
from toolkit.cli.resource_commands import add_resource_commands, make_group

app = make_group("Serverless GPU endpoints: billed by the second, nothing while idle.")
add_resource_commands(
    app, "endpoints", ("id", "name", "status", "gpu_ids", "workers_max", "created_at")
)


@app.command()
@service_command
def create(
    shell: ClientOutput,
    name: Annotated[str | None, typer.Argument(help="Name of the endpoint.")] = None,
    gpu_ids: Annotated[
        str | None,
        typer.Option(help="Pool of GPUs, such as ADA_24.", autocompletion=completion.pools),
    ] = None,
    workers_min: Annotated[
        int | None, typer.Option(min=0, help="Minimum number of workers.")
    ] = None,
    workers_max: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of workers.")
    ] = None,
    image: Annotated[str | None, typer.Option(help="Container image to run.")] = None,
    storage_id: Annotated[
        str | None,
        typer.Option(
            help="Volume to attach.", autocompletion=completion.make_id_completion("storage")
        ),
    ] = None,
    template_id: Annotated[
        str | None,
        typer.Option(
            help="Shared template.", autocompletion=completion.make_id_completion("templates")
        ),
    ] = None,
) -> None:
    """Create a serverless endpoint."""
    endpoint = shell.client.endpoints.create(
        name,
        gpu_ids=gpu_ids,
        workers_min=workers_min,
        workers_max=workers_max,
        image=image,
        storage_id=storage_id,
        template_id=template_id,
    )
    shell.print_record(endpoint)
