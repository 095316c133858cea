"""The commands of `toolkit plans`."""

from toolkit.cli import options
from toolkit.cli.options import service_command
from toolkit.cli.output import ClientOutput
from toolkit.cli.resource_commands import add_resource_commands, make_group

NODE_COLUMNS = ("id", "capability", "depends_on", "reason")

app = make_group("The plans of tasks.")
add_resource_commands(
    app, "plans", ("id", "objective", "planner", "created_at"), "nodes", NODE_COLUMNS
)


@app.command()
@service_command
def create(
    shell: ClientOutput,
    objective: options.Objective,
    max_cost_usd: options.MaxCost = None,
    optimize_for: options.Optimize = None,
    planner: options.Planner = None,
) -> None:
    """Plan an objective without running the plan."""
    plan = shell.client.plans.create(
        objective, max_cost_usd=max_cost_usd, optimize_for=optimize_for, planner=planner
    )
    shell.print_record(plan, "nodes", NODE_COLUMNS)
