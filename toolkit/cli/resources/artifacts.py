"""The commands of `toolkit artifacts`."""

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from toolkit.cli.options import Id, read_command, service_command
from toolkit.cli.output import ClientOutput
from toolkit.cli.resource_commands import add_resource_commands, make_group

app = make_group("Results of work, and uploaded files.")
add_resource_commands(app, "artifacts", ("id", "media_type", "size_bytes", "job_id", "created_at"))


@app.command()
@read_command
def save(
    shell: ClientOutput,
    id: Id,
    path: Annotated[
        Path | None, Argument(help="The file to write, or its folder; - is stdout.")
    ] = None,
    overwrite: Annotated[
        bool, Option("--overwrite", help="Replace an existing file in the folder.")
    ] = False,
) -> None:
    """Write an artifact to a file, by default in this folder under a safe form of its name."""
    artifact = shell.client.artifacts.get(id)
    if path is not None and str(path) == "-":
        sys.stdout.buffer.write(artifact.content())
        return
    file = str(artifact.save(path or Path(), overwrite=overwrite))
    if shell.as_json:
        shell.print_json({**artifact.to_dict(), "path": file})
    else:
        print(file)


@app.command()
@service_command
def upload(
    shell: ClientOutput,
    file: Annotated[Path, Argument(exists=True, dir_okay=False, help="File to upload.")],
) -> None:
    """Upload a file, such as reference audio; its bytes determine its type."""
    shell.print_record(shell.client.artifacts.upload(file, filename=file.name))


@app.command()
@read_command
def lineage(shell: ClientOutput, id: Id) -> None:
    """Show the jobs and artifacts that an artifact was made from."""
    columns = ("id", "capability", "provider", "artifact_id", "completed_at")
    shell.print_record(shell.client.artifacts.lineage(id), "jobs", columns)
