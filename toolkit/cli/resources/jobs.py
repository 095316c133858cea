"""The commands of `toolkit jobs`."""

from typing import Annotated

from typer import Argument

from toolkit.cli import completion, options
from toolkit.cli.options import service_command
from toolkit.cli.output import ClientOutput
from toolkit.cli.resource_commands import add_execution_commands, make_group
from toolkit.cli.work import finish_work
from toolkit.contract.run_options import WorkOptions
from toolkit.input_parsing import parse_fields

Kind = Annotated[
    str, Argument(help="Type of the job, such as image.", autocompletion=completion.kinds_of_job)
]

app = make_group(
    "Executions of capabilities: for runs, for workflow nodes, or on your own compute."
)
add_execution_commands(app, "jobs")


@app.command()
@service_command
def create(
    shell: ClientOutput,
    type: Kind,
    compute_id: Annotated[
        str,
        Argument(
            help="Id (cmp_…) of the compute.",
            autocompletion=completion.make_id_completion("compute"),
        ),
    ],
    fields: options.Fields = None,
    input_file: options.InputFile = None,
    no_wait: options.NoWait = False,
    quiet: options.Quiet = False,
    *,
    run_options: WorkOptions,
) -> None:
    """Run a job on your own compute."""
    work = shell.client.jobs.create(
        type, compute_id, parse_fields(fields or [], input_file), **run_options
    )
    if finish_work(shell, "jobs", work, no_wait, quiet):
        shell.print_record(work)
