"""`toolkit agents`."""

from typing import Annotated

import typer

from toolkit.cli import complete, options
from toolkit.cli.options import on_service
from toolkit.cli.output import Shell
from toolkit.cli.verbs import deletes, group, reads
from toolkit.cli.work import started, waited
from toolkit.given import parsed

app = group("Objectives to fill in, under a name.")
reads(app, "agents", ("id", "name", "version", "objective", "parameters", "created_at"))
deletes(app, "agents")


@app.command()
@on_service
def create(
    shell: Shell,
    name: Annotated[str, typer.Argument(help="In lower case, such as card-maker.")],
    objective: Annotated[
        str, typer.Argument(help="What is wanted; each {word} is a parameter of its runs.")
    ],
    version: Annotated[
        str | None, typer.Option(help="1 by default; a version is for good.")
    ] = None,
    capability: Annotated[
        list[str] | None,
        typer.Option(
            help="One that it may use; repeatable, all by default.",
            autocompletion=complete.capabilities,
        ),
    ] = None,
    max_cost_usd: options.MaxCost = None,
    optimize_for: options.Optimize = None,
    endpoint_id: options.OnEndpoint = None,
    compute_id: options.OnCompute = None,
) -> None:
    """Register a version of an agent."""
    made = shell.client.agents.create(
        name,
        objective,
        version=version,
        capabilities=capability or None,
        max_cost_usd=max_cost_usd,
        optimize_for=optimize_for,
        endpoint_id=endpoint_id,
        compute_id=compute_id,
    )
    shell.show(made)


@app.command()
@on_service
def run(
    shell: Shell,
    name: Annotated[
        str,
        typer.Argument(
            help="An agent, as name or name@version.",
            autocompletion=complete.ids_of("agents", "name"),
        ),
    ],
    fields: Annotated[list[str] | None, typer.Argument(help="Its parameters: name=value.")] = None,
    max_cost_usd: options.MaxCost = None,
    no_wait: options.NoWait = False,
    quiet: options.Quiet = False,
) -> None:
    """Run an agent and print its output."""
    work = shell.client.runs.create(
        name, parsed(fields or []), target="agent", max_cost_usd=max_cost_usd
    )
    if no_wait:
        started(shell, work)
        return
    waited(shell, "runs", work, quiet)
    shell.print_json(work.to_dict() if shell.as_json else work.output)
