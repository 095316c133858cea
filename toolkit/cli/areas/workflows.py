"""`toolkit workflows`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from toolkit.cli import complete, options
from toolkit.cli.options import on_existing, on_service
from toolkit.cli.output import Shell
from toolkit.cli.verbs import Id, follows, group, reads
from toolkit.cli.work import make_folder, saved, started, waited
from toolkit.given import document, parsed, workflow_of

NODES = ("id", "capability", "status", "provider", "cost_usd", "retry_count", "artifact_id")

app = group("Graphs of capabilities.")
reads(app, "workflows", ("id", "name", "status", "cost_usd", "created_at"), "nodes", NODES)
follows(app, "workflows")


@app.command()
@on_service
def run(
    shell: Shell,
    file: Annotated[
        Path, typer.Argument(help="The workflow as YAML or JSON, as POST /v1/workflows takes it.")
    ],
    out: Annotated[Path | None, typer.Option(help="Save what it made to this folder.")] = None,
    no_wait: options.NoWait = False,
    quiet: options.Quiet = False,
) -> None:
    """Submit a workflow, wait for it and show its nodes; - reads it from stdin."""
    body = workflow_of(document(file), str(file))
    if out is not None and not no_wait:
        make_folder(out)  # before anything is paid for what could not be put there
    work = shell.client.workflows.create(body)
    _finish(shell, work, no_wait, quiet)
    if out is not None and not no_wait:
        for path in saved(shell, work.record.sink_artifact_ids, out):
            shell.note(path)


@app.command()
@on_existing
def retry(
    shell: Shell,
    id: Id,  # noqa: A002 - the contract's word
    no_wait: options.NoWait = False,
    quiet: options.Quiet = False,
) -> None:
    """Run one that did not complete again, from its failed nodes on."""
    _finish(shell, shell.client.workflows.retry(id), no_wait, quiet)


@app.command()
@on_existing
def fork(
    shell: Shell,
    id: Id,  # noqa: A002
    from_node: Annotated[
        str, typer.Argument(help="The node to run again.", autocompletion=complete.nodes)
    ],
    fields: Annotated[
        list[str] | None,
        typer.Argument(help="Input of that node that differs: name=value, or name:=JSON."),
    ] = None,
    overrides: Annotated[
        Path | None,
        typer.Option(help="A JSON or YAML file: input that differs, by the id of a node."),
    ] = None,
    no_wait: options.NoWait = False,
    quiet: options.Quiet = False,
) -> None:
    """Make a new one that runs a node again and what depends on it, and keeps the rest."""
    differing = document(overrides) if overrides is not None else {}
    if fields:
        differing[from_node] = {**(differing.get(from_node) or {}), **parsed(fields)}
    _finish(shell, shell.client.workflows.fork(id, from_node, differing), no_wait, quiet)


def _finish(shell: Shell, work: Any, no_wait: bool, quiet: bool) -> None:
    if no_wait:
        started(shell, work)
    else:
        shell.show(waited(shell, "workflows", work, quiet), "nodes", NODES)
