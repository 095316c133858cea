"""The commands of `toolkit endpoints`."""

from typing import Annotated

from typer import Argument, Option

from toolkit.cli import completion, options
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
    name: Annotated[str | None, Argument(help="Name of the endpoint.")] = None,
    gpu_ids: Annotated[
        str | None, Option(help="Pool of GPUs, such as ADA_24.", autocompletion=completion.pools)
    ] = None,
    workers_min: Annotated[int | None, Option(min=0, help="Minimum number of workers.")] = None,
    workers_max: Annotated[int | None, Option(min=1, help="Maximum number of workers.")] = None,
    image: options.Image = None,
    storage_id: options.StorageId = None,
    template_id: options.TemplateId = None,
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
