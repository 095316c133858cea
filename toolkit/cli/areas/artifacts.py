"""`toolkit artifacts`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.options import looking, on_service
from toolkit.cli.output import Shell
from toolkit.cli.verbs import Id, deletes, group, reads

app = group("What work has made, and what was uploaded for it.")
reads(app, "artifacts", ("id", "media_type", "size_bytes", "job_id", "created_at"))
deletes(app, "artifacts")


@app.command()
@looking
def save(
    shell: Shell,
    id: Id,  # noqa: A002 - the contract's word
    path: Annotated[
        Path | None,
        typer.Argument(help="The file to write, or its folder; - is stdout."),
    ] = None,
) -> None:
    """Write one to a file, by default in this folder and under its own name."""
    artifact = shell.client.artifacts.get(id)
    if path is not None and str(path) == "-":
        sys.stdout.buffer.write(artifact.content())
        return
    made = str(artifact.save(path or Path(artifact.record.filename).name))
    if shell.as_json:
        shell.print_json({**artifact.to_dict(), "path": made})
    else:
        print(made)


@app.command()
@on_service
def upload(
    shell: Shell,
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="What to keep.")],
) -> None:
    """Upload a file, such as reference audio; its type is told from its bytes."""
    shell.show(shell.client.artifacts.upload(file, filename=file.name))


@app.command()
@looking
def lineage(shell: Shell, id: Id) -> None:  # noqa: A002
    """Show the jobs and artifacts that one came from."""
    columns = ("id", "capability", "provider", "artifact_id", "completed_at")
    shell.show(shell.client.artifacts.lineage(id), "jobs", columns)
