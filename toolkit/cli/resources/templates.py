"""The commands of `toolkit templates`."""

from typing import Annotated

from typer import Argument, Option

from toolkit.cli.options import service_command
from toolkit.cli.output import ClientOutput
from toolkit.cli.resource_commands import add_resource_commands, make_group

app = make_group("Containers that endpoints or pods run.")
add_resource_commands(
    app, "templates", ("id", "name", "status", "image", "serverless", "created_at")
)


@app.command()
@service_command
def create(
    shell: ClientOutput,
    name: Annotated[str, Argument(help="Name of the template.")],
    image: Annotated[str, Argument(help="The container.")],
    pods: Annotated[bool, Option("--pods", help="Make it for pods, not for endpoints.")] = False,
) -> None:
    """Make a template to share between endpoints, or between pods."""
    shell.print_record(shell.client.templates.create(name, image, serverless=not pods))
