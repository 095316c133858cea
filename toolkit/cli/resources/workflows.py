"""The commands of `toolkit workflows`."""

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from toolkit.cli import completion, options
from toolkit.cli.options import Id, existing_command, service_command
from toolkit.cli.output import ClientOutput
from toolkit.cli.resource_commands import add_resource_commands, make_group
from toolkit.cli.work import finish_work, make_folder, save_artifacts
from toolkit.input_parsing import check_workflow_ids, load_document, parse_fields

NODE_COLUMNS = ("id", "capability", "status", "provider", "cost_usd", "retry_count", "artifact_id")

app = make_group("Graphs of capabilities.")
add_resource_commands(
    app, "workflows", ("id", "name", "status", "cost_usd", "created_at"), "nodes", NODE_COLUMNS
)


@app.command()
@service_command
def run(
    shell: ClientOutput,
    file: Annotated[
        Path, Argument(help="Workflow as YAML or JSON, in the form of POST /v1/workflows.")
    ],
    out: Annotated[Path | None, Option(help="Save its artifacts to this folder.")] = None,
    no_wait: options.NoWait = False,
    quiet: options.Quiet = False,
    tag: options.Tags = None,
    note: options.Note = None,
) -> None:
    """Submit a workflow, wait for it and show its nodes. With `-` as FILE, read it from stdin."""
    body = check_workflow_ids(load_document(file), str(file))
    if out is not None and not no_wait:
        make_folder(out)  # nothing may be paid before the results have a folder
    annotations = {"tags": tag or None, "note": note}  # these replace the values of the file
    body |= {name: value for name, value in annotations.items() if value is not None}
    work = shell.client.workflows.create(body)
    if not _finish_work(shell, work, no_wait, quiet):
        return
    if out is not None:
        for path in save_artifacts(shell, work.record.sink_artifact_ids, out):
            shell.print_note(path)


app.command("submit")(run)


@app.command()
@existing_command
def retry(
    shell: ClientOutput, id: Id, no_wait: options.NoWait = False, quiet: options.Quiet = False
) -> None:
    """Run a failed or cancelled workflow again, from its failed nodes on."""
    _finish_work(shell, shell.client.workflows.retry(id), no_wait, quiet)


@app.command()
@existing_command
def fork(
    shell: ClientOutput,
    id: Id,
    from_node: Annotated[str, Argument(help="Node to run again.", autocompletion=completion.nodes)],
    fields: Annotated[
        list[str] | None, Argument(help="Changed input of that node: name=value, or name:=JSON.")
    ] = None,
    overrides: Annotated[
        Path | None, Option(help="JSON or YAML file of changed input, by node id.")
    ] = None,
    no_wait: options.NoWait = False,
    quiet: options.Quiet = False,
) -> None:
    """Make a new workflow that runs a node and its dependents again, and keeps other results."""
    differing = load_document(overrides) if overrides is not None else {}
    if fields:
        differing[from_node] = {**(differing.get(from_node) or {}), **parse_fields(fields)}
    _finish_work(shell, shell.client.workflows.fork(id, from_node, differing), no_wait, quiet)


def _finish_work(shell: ClientOutput, work: Any, no_wait: bool, quiet: bool) -> bool:
    is_completed = finish_work(shell, "workflows", work, no_wait, quiet)
    if is_completed:
        shell.print_record(work, "nodes", NODE_COLUMNS)
    return is_completed
