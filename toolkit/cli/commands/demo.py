"""The command `toolkit demo`: an objective in the sandbox, and its reviewed artifacts in files."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from toolkit.cli.output import escape_controls, measure_width, print_rows

MAX_COST_USD = 0.10
NODE_COLUMNS = ("id", "capability", "provider", "status", "retry_count", "cost_usd")


def demo(
    topic: Annotated[str, Option(help="Topic of the card and the summary.")] = "tidal power",
    out: Annotated[Path, Option(help="Output folder for the results.")] = Path("demo-output"),
) -> None:
    """Make a social card with a spoken summary: one objective in, reviewed artifacts out."""
    from toolkit.client import Client
    from toolkit.display.records.outline import outline_record
    from toolkit.display.records.text_table import format_facts

    objective = f"A social card with a spoken summary about {topic}"
    print(escape_controls(f"{objective}, in the sandbox."))
    out.mkdir(parents=True, exist_ok=True)
    with Client.local(out / "engine", sandbox=True) as client:
        task = client.tasks.create(objective, max_cost_usd=MAX_COST_USD)
        task = task.wait(progress="lines", check=False)
        workflow: dict[str, Any] = {}
        if task.workflow_id:
            workflow = client.workflows.get(task.workflow_id).to_dict()
        paths = []
        for node_id, artifact_id in task.artifact_ids.items():
            artifact = client.artifacts.get(artifact_id)
            suffix = Path(artifact.record.filename).suffix
            paths.append(str(artifact.save(out / f"{node_id}{suffix}")))
        record = task.to_dict()
    report = {"task": record, "workflow": workflow, "paths": paths}
    (out / "report.json").write_text(json.dumps(report, indent=2), encoding="utf-8")
    if workflow:
        print("\nNodes")
        print_rows(workflow["nodes"], NODE_COLUMNS)
    names = ("status", "question", "missing", "error", "review", "cost_usd")
    facts, _ = outline_record({name: record.get(name) for name in names})
    cells = [(name, escape_controls(value)) for name, value in facts.items()]
    print("\nTask", *format_facts(cells, measure_width()), "\nMade", *paths, sep="\n")
    if task.status != "completed":
        raise typer.Exit(1)
