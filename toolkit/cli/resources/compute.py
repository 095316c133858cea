"""The commands of `toolkit compute`."""

from typing import Annotated

from typer import Argument

from toolkit.cli import completion, options
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
    name: Annotated[str, Argument(help="Name of the pod.")],
    gpu_type: Annotated[
        str,
        Argument(
            help="Type of GPU, such as `NVIDIA GeForce RTX 4090`.", autocompletion=completion.gpus
        ),
    ],
    image: options.Image = None,
    storage_id: options.StorageId = None,
    template_id: options.TemplateId = None,
) -> None:
    """Rent a GPU pod."""
    pod = shell.client.compute.create(
        name, gpu_type, image=image, storage_id=storage_id, template_id=template_id
    )
    shell.print_record(pod)
