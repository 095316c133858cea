"""`toolkit tasks`, and `toolkit task`."""

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli import options
from toolkit.cli.areas.plans import NODES
from toolkit.cli.options import on_existing, on_service
from toolkit.cli.output import Shell
from toolkit.cli.verbs import Id, follows, group, reads
from toolkit.cli.work import make_folder, saved, started, waited
from toolkit.contract.choices import Decision
from toolkit.given import parsed

REVIEWS = ("decision", "score", "issues", "reviewer")

app = group("Objectives, planned, run and reviewed.")
reads(
    app,
    "tasks",
    ("id", "objective", "status", "review_attempts", "cost_usd", "created_at"),
    "reviews",
    REVIEWS,
)
follows(app, "tasks")


@on_service
def task(
    shell: Shell,
    objective: options.Objective,
    max_cost_usd: options.MaxCost = None,
    optimize_for: options.Optimize = None,
    endpoint_id: options.OnEndpoint = None,
    compute_id: options.OnCompute = None,
    plan_only: Annotated[
        bool, typer.Option("--plan-only", help="Show what it would do, and do nothing.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Where the artifacts go.")] = Path("."),
    no_wait: options.NoWait = False,
    quiet: options.Quiet = False,
) -> None:
    """Plan an objective, run it, review it, and save what it made."""
    if plan_only:
        plan = shell.client.plans.create(
            objective, max_cost_usd=max_cost_usd, optimize_for=optimize_for
        )
        shell.show(plan, "nodes", NODES)
        return
    if not no_wait:
        make_folder(out)  # before anything is paid for what could not be put there
    work = shell.client.tasks.create(
        objective,
        max_cost_usd=max_cost_usd,
        optimize_for=optimize_for,
        endpoint_id=endpoint_id,
        compute_id=compute_id,
    )
    if no_wait:
        started(shell, work)
        return
    waited(shell, "tasks", work, quiet)
    paths = saved(shell, work.record.artifact_ids, out)
    if shell.as_json:
        shell.print_json({**work.to_dict(), "paths": paths})
    else:
        print("\n".join(paths))


app.command("create")(task)


@app.command()
@on_existing
def resume(shell: Shell, id: Id) -> None:  # noqa: A002 - the contract's word
    """Take a blocked one back to planning, once what it lacked is there."""
    shell.show(shell.client.tasks.resume(id))


@app.command()
@on_existing
def review(
    shell: Shell,
    id: Id,  # noqa: A002
    decision: Annotated[Decision, typer.Argument(help="The verdict.")],
    issue: Annotated[list[str] | None, typer.Option(help="What is wrong; repeatable.")] = None,
    score: Annotated[float | None, typer.Option(min=0, max=1, help="Overall.")] = None,
    node_id: Annotated[
        str | None, typer.Option(help="What a retry runs again; the last node by default.")
    ] = None,
    fields: Annotated[
        list[str] | None,
        typer.Option("--set", help="Input that a retry sets on it: name=value; repeatable."),
    ] = None,
) -> None:
    """Judge one that has ended, in place of the reviewer."""
    judged = shell.client.tasks.review(
        id,
        decision,
        issues=issue or [],
        score=score,
        node_id=node_id,
        constraints=parsed(fields) if fields else None,
    )
    shell.show(judged, "reviews", REVIEWS)
