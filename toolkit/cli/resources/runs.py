"""The commands of `toolkit runs`, and the command `toolkit run`."""

from pathlib import Path
from typing import Annotated

from typer import Option

from toolkit.cli import options
from toolkit.cli.options import service_command
from toolkit.cli.output import ClientOutput
from toolkit.cli.resource_commands import add_execution_commands, make_group
from toolkit.cli.work import finish_work
from toolkit.contract.run_options import RunOptions
from toolkit.input_parsing import parse_fields

app = make_group("Single capabilities, each executed once.")
add_execution_commands(app, "runs")


@service_command
def run(
    shell: ClientOutput,
    name: options.Name,
    fields: options.Fields = None,
    input_file: options.InputFile = None,
    save: Annotated[Path | None, Option(help="Write the artifact to this file.")] = None,
    no_wait: options.NoWait = False,
    quiet: options.Quiet = False,
    tag: options.Tags = None,
    note: options.Note = None,
    *,
    run_options: RunOptions,
) -> None:
    """Run one capability and print its output."""
    work = shell.client.runs.create(
        name, parse_fields(fields or [], input_file), tags=tag or None, note=note, **run_options
    )
    if not finish_work(shell, "runs", work, no_wait, quiet):
        return
    if save is not None:
        shell.client.artifacts.get(work.artifact_id).save(save)
    shell.print_json(work.to_dict() if shell.as_json else work.output)


app.command("create")(run)
