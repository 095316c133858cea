"""The commands `toolkit route`, `compare` and `health`, which belong to no resource."""

from typing import Annotated

from typer import Argument

from toolkit.cli import completion, options
from toolkit.cli.options import read_command
from toolkit.cli.output import ClientOutput, escape_controls, measure_width
from toolkit.contract.run_options import RunOptions
from toolkit.input_parsing import parse_fields

WorkId = Annotated[
    str, Argument(help="The id of a run, a workflow or a task.", autocompletion=completion.work_ids)
]
CANDIDATE_COLUMNS = ("provider", "model", "score", "estimated_cost_usd", "latency_p50_ms", "reason")


@read_command
def route(
    shell: ClientOutput,
    name: options.Name,
    fields: options.Fields = None,
    input_file: options.InputFile = None,
    *,
    run_options: RunOptions,
) -> None:
    """Show the vendor that would serve a run, and why; nothing is spent."""
    decision = shell.client.route(name, parse_fields(fields or [], input_file), **run_options)
    shell.print_record(decision, "candidates", CANDIDATE_COLUMNS)


@read_command
def compare(shell: ClientOutput, a: WorkId, b: WorkId) -> None:
    """Show the differences of two runs, jobs, workflows or tasks; with --json, all facts."""
    comparison = shell.client.compare(a, b)
    if shell.as_json:
        shell.print_json(comparison.to_dict())
        return
    shell.print_note(repr(comparison)[1:-1])
    for line in comparison.format_lines(measure_width()):
        print(escape_controls(line))


@read_command
def health(shell: ClientOutput) -> None:
    """Show the state of the service, and how busy it is."""
    shell.print_record(shell.client.read("/health", max_wait_s=0.0))
