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
    name: Annotated[str | None, typer.Argument(help="What to call it.")] = None,
    gpu_ids: Annotated[
        str | None,
        typer.Option(help="The pool of GPUs, such as ADA_24.", autocompletion=completion.pools),
    ] = None,
    workers_min: Annotated[int | None, typer.Option(min=0, help="Kept ready.")] = None,
    workers_max: Annotated[int | None, typer.Option(min=1, help="At most.")] = None,
    image: Annotated[str | None, typer.Option(help="The container to run.")] = None,
    storage_id: Annotated[
        str | None,
        typer.Option(
            help="A volume to attach.", autocompletion=completion.make_id_completion("storage")
        ),
    ] = None,
    template_id: Annotated[
        str | None,
        typer.Option(
            help="A shared template.", autocompletion=completion.make_id_completion("templates")
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
