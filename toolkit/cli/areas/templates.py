"""`toolkit templates`."""

from typing import Annotated

import typer

from toolkit.cli.options import on_service
from toolkit.cli.output import Shell
from toolkit.cli.verbs import deletes, group, reads

app = group("Containers that endpoints or pods run.")
reads(app, "templates", ("id", "name", "status", "image", "serverless", "created_at"))
deletes(app, "templates")


@app.command()
@on_service
def create(
    shell: Shell,
    name: Annotated[str, typer.Argument(help="What to call it.")],
    image: Annotated[str, typer.Argument(help="The container.")],
    pods: Annotated[bool, typer.Option("--pods", help="For pods, not for endpoints.")] = False,
) -> None:
    """Make a template to share between endpoints, or between pods."""
    shell.show(shell.client.templates.create(name, image, serverless=not pods))
