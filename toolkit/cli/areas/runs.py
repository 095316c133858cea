"""`toolkit runs`, and `toolkit run`."""

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli import options
from toolkit.cli.options import on_service
from toolkit.cli.output import Shell
from toolkit.cli.verbs import executions, group
from toolkit.cli.work import started, waited
from toolkit.given import parsed

app = group("Single capabilities, each executed once.")
executions(app, "runs")


@on_service
def run(
    shell: Shell,
    name: options.Name,
    fields: options.Fields = None,
    given: options.Given = None,
    save: Annotated[Path | None, typer.Option(help="Write the artifact to this file.")] = None,
    optimize_for: options.Optimize = None,
    provider: options.Provider = None,
    endpoint_id: options.OnEndpoint = None,
    compute_id: options.OnCompute = None,
    max_cost_usd: options.MaxCost = None,
    deadline_s: options.Deadline = None,
    cache: options.Cache = None,
    fallback_on_rejection: options.Fallback = False,
    no_wait: options.NoWait = False,
    quiet: options.Quiet = False,
) -> None:
    """Run one capability and print its output."""
    work = shell.client.runs.create(
        name,
        parsed(fields or [], given),
        optimize_for=optimize_for,
        provider=provider,
        endpoint_id=endpoint_id,
        compute_id=compute_id,
        max_cost_usd=max_cost_usd,
        deadline_s=deadline_s,
        cache=cache,
        fallback_on_rejection=fallback_on_rejection,
    )
    if no_wait:
        started(shell, work)
        return
    waited(shell, "runs", work, quiet)
    if save is not None:
        shell.client.artifacts.get(work.artifact_id).save(save)
    shell.print_json(work.to_dict() if shell.as_json else work.output)


app.command("create")(run)
