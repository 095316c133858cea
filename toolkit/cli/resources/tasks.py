"""The commands of `toolkit tasks`, and the command `toolkit task`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from toolkit.cli import options
from toolkit.cli.options import Id, existing_command, service_command
from toolkit.cli.output import ClientOutput
from toolkit.cli.resource_commands import add_resource_commands, make_group
from toolkit.cli.resources.plans import NODE_COLUMNS
from toolkit.cli.work import finish_work, make_folder, save_artifacts
from toolkit.contract.choices import Decision
from toolkit.input_parsing import load_document, parse_fields

if TYPE_CHECKING:
    from toolkit.client import Workflow

REVIEW_COLUMNS = ("decision", "score", "issues", "reviewer")

app = make_group("Objectives that are planned, executed and reviewed.")
add_resource_commands(
    app,
    "tasks",
    ("id", "objective", "status", "review_attempts", "cost_usd", "created_at"),
    "reviews",
    REVIEW_COLUMNS,
)


@service_command
def task(
    shell: ClientOutput,
    objective: Annotated[
        str | None,
        Argument(help="Objective, in plain words; with --plan, by default the plan's objective."),
    ] = None,
    max_cost_usd: options.MaxCost = None,
    optimize_for: options.Optimize = None,
    endpoint_id: options.OnEndpoint = None,
    compute_id: options.OnCompute = None,
    planner: options.Planner = None,
    plan_file: Annotated[
        Path | None,
        Option("--plan", help="Run this plan as it is: JSON or YAML, as plans show prints."),
    ] = None,
    review: options.Review = None,
    plan_only: Annotated[
        bool, Option("--plan-only", help="Show the plan, and execute nothing.")
    ] = False,
    out: Annotated[Path, Option(help="Folder for the artifacts.")] = Path("."),
    no_wait: options.NoWait = False,
    quiet: options.Quiet = False,
    tag: options.Tags = None,
    note: options.Note = None,
) -> None:
    """Plan an objective, run it, review it, and save the results."""
    if objective is None and (plan_file is None or plan_only):
        raise typer.BadParameter("give an objective, or --plan", param_hint="OBJECTIVE")
    if plan_only and objective is not None:
        plan = shell.client.plans.create(
            objective, max_cost_usd=max_cost_usd, optimize_for=optimize_for, planner=planner
        )
        shell.print_record(plan, "nodes", NODE_COLUMNS)
        return
    if not no_wait:
        make_folder(out)  # nothing may be paid before the results have a folder
    work = shell.client.tasks.create(
        objective,
        max_cost_usd=max_cost_usd,
        optimize_for=optimize_for,
        endpoint_id=endpoint_id,
        compute_id=compute_id,
        planner=planner,
        plan=_read_plan(plan_file) if plan_file is not None else None,
        review=review,
        tags=tag or None,
        note=note,
    )
    if not finish_work(shell, "tasks", work, no_wait, quiet):
        return
    paths = save_artifacts(shell, work.record.artifact_ids, out)
    if shell.as_json:
        shell.print_json({**work.to_dict(), "paths": paths})
    else:
        print("\n".join(paths))


def _read_plan(path: Path) -> "dict[str, Any] | Workflow":
    """Read a plan, or a workflow as `POST /v1/workflows` takes it."""
    from toolkit.client import Workflow

    body = load_document(path)
    return Workflow.from_dict(body) if "objective" not in body and "name" in body else body


app.command("create")(task)


@app.command()
@existing_command
def resume(
    shell: ClientOutput,
    id: Id,
    answer: Annotated[str | None, Option(help="Answer to the question of the task.")] = None,
) -> None:
    """Return a blocked task to planning, after the cause of the block is gone."""
    shell.print_record(shell.client.tasks.resume(id, answer))


@app.command()
@existing_command
def review(
    shell: ClientOutput,
    id: Id,
    decision: Annotated[Decision, Argument(help="The verdict.")],
    issue: Annotated[list[str] | None, Option(help="Fault of the results; repeatable.")] = None,
    score: Annotated[float | None, Option(min=0, max=1, help="Overall.")] = None,
    attempt: Annotated[
        int | None, Option(min=1, help="Number of the attempt under review, from 1.")
    ] = None,
    node_id: Annotated[
        str | None, Option(help="Node that a retry runs again; the last node by default.")
    ] = None,
    fields: Annotated[
        list[str] | None,
        Option("--set", help="Input of that node that a retry changes: name=value; repeatable."),
    ] = None,
) -> None:
    """Judge an ended task, in place of the reviewer."""
    judged = shell.client.tasks.submit_review(
        id,
        decision,
        issues=issue or [],
        score=score,
        attempt=attempt,
        node_id=node_id,
        constraints=parse_fields(fields) if fields else None,
    )
    shell.print_record(judged, "reviews", REVIEW_COLUMNS)
