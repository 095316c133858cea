"""`toolkit plans`."""

from toolkit.cli import options
from toolkit.cli.options import on_service
from toolkit.cli.output import Shell
from toolkit.cli.verbs import group, reads

NODES = ("id", "capability", "depends_on", "reason")

app = group("What a task would do.")
reads(app, "plans", ("id", "objective", "planner", "created_at"), "nodes", NODES)


@app.command()
@on_service
def create(
    shell: Shell,
    objective: options.Objective,
    max_cost_usd: options.MaxCost = None,
    optimize_for: options.Optimize = None,
) -> None:
    """Plan an objective without doing it."""
    plan = shell.client.plans.create(
        objective, max_cost_usd=max_cost_usd, optimize_for=optimize_for
    )
    shell.show(plan, "nodes", NODES)
