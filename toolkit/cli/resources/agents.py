"""The commands of `toolkit agents`."""

from typing import Annotated

from typer import Argument, Option

from toolkit.cli import completion, options
from toolkit.cli.options import service_command
from toolkit.cli.output import ClientOutput
from toolkit.cli.resource_commands import add_resource_commands, make_group
from toolkit.cli.work import finish_work
from toolkit.input_parsing import parse_fields

app = make_group("Named objectives with parameters.")
add_resource_commands(
    app, "agents", ("id", "name", "version", "objective", "parameters", "created_at")
)


@app.command()
@service_command
def create(
    shell: ClientOutput,
    name: Annotated[str, Argument(help="Name in lower case, such as card-maker.")],
    objective: Annotated[str, Argument(help="Objective; each {word} is a parameter of its runs.")],
    version: Annotated[
        str | None, Option(help="Version, 1 by default; a version never changes.")
    ] = None,
    capability: Annotated[
        list[str] | None,
        Option(
            help="Capability that it may use; repeatable, all by default.",
            autocompletion=completion.capabilities,
        ),
    ] = None,
    max_cost_usd: options.MaxCost = None,
    optimize_for: options.Optimize = None,
    endpoint_id: options.OnEndpoint = None,
    compute_id: options.OnCompute = None,
) -> None:
    """Register a version of an agent."""
    agent = shell.client.agents.create(
        name,
        objective,
        version=version,
        capabilities=capability or None,
        max_cost_usd=max_cost_usd,
        optimize_for=optimize_for,
        endpoint_id=endpoint_id,
        compute_id=compute_id,
    )
    shell.print_record(agent)


@app.command()
@service_command
def run(
    shell: ClientOutput,
    name: Annotated[
        str,
        Argument(
            help="Agent, as name or name@version.",
            autocompletion=completion.make_id_completion("agents", "name"),
        ),
    ],
    fields: Annotated[list[str] | None, Argument(help="Parameters: name=value.")] = None,
    max_cost_usd: options.MaxCost = None,
    no_wait: options.NoWait = False,
    quiet: options.Quiet = False,
) -> None:
    """Run an agent and print its output."""
    work = shell.client.runs.create(
        name, parse_fields(fields or []), target="agent", max_cost_usd=max_cost_usd
    )
    if finish_work(shell, "runs", work, no_wait, quiet):
        shell.print_json(work.to_dict() if shell.as_json else work.output)
