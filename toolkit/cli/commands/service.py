"""`toolkit route` and `toolkit health`: commands of the service without a group."""

from toolkit.cli import options
from toolkit.cli.options import read_command
from toolkit.cli.output import ClientOutput
from toolkit.contract.run_options import RunOptions
from toolkit.input_parsing import parse_fields

CANDIDATE_COLUMNS = ("provider", "model", "score", "estimated_cost_usd", "latency_p50_ms", "reason")


@read_command
def route(
    shell: ClientOutput,
    name: options.Name,
    fields: options.Fields = None,
    given: options.InputFile = None,
    *,
    run_options: RunOptions,
) -> None:
    """Show who would serve a run, and why; nothing is spent."""
    chosen = shell.client.route(
        name,
        parse_fields(fields or [], given),
        **run_options,
    )
    shell.print_record(chosen, "candidates", CANDIDATE_COLUMNS)


@read_command
def health(shell: ClientOutput) -> None:
    """Say whether the service is there, and how busy."""
    shell.print_record(shell.client.read("/health", max_wait_s=0.0))
