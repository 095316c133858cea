"""`toolkit jobs`."""

from typing import Annotated

import typer

from toolkit.cli import complete, options
from toolkit.cli.options import on_service
from toolkit.cli.output import Shell
from toolkit.cli.verbs import executions, group
from toolkit.cli.work import started, waited
from toolkit.given import parsed

Kind = Annotated[
    str,
    typer.Argument(help="What to do, such as image.", autocompletion=complete.kinds_of_job),
]

app = group("What executes a capability: for a run, for a workflow's node, or on your own compute.")
executions(app, "jobs")


@app.command()
@on_service
def create(
    shell: Shell,
    type: Kind,  # noqa: A002 - the contract's word
    compute_id: Annotated[
        str,
        typer.Argument(help="The cmp_ id to do it on.", autocompletion=complete.ids_of("compute")),
    ],
    fields: options.Fields = None,
    given: options.Given = None,
    optimize_for: options.Optimize = None,
    provider: options.Provider = None,
    max_cost_usd: options.MaxCost = None,
    deadline_s: options.Deadline = None,
    cache: options.Cache = None,
    fallback_on_rejection: options.Fallback = False,
    no_wait: options.NoWait = False,
    quiet: options.Quiet = False,
) -> None:
    """Have a job done on a compute of one's own."""
    work = shell.client.jobs.create(
        type,
        compute_id,
        parsed(fields or [], given),
        optimize_for=optimize_for,
        provider=provider,
        max_cost_usd=max_cost_usd,
        deadline_s=deadline_s,
        cache=cache,
        fallback_on_rejection=fallback_on_rejection,
    )
    if no_wait:
        started(shell, work)
    else:
        shell.show(waited(shell, "jobs", work, quiet))
