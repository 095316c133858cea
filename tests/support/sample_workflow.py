"""A completed workflow with fixed times, so that its picture is the same everywhere."""

from datetime import UTC, datetime, timedelta

from toolkit.contract.workflows import Node, WorkflowRecord

START = datetime(2026, 11, 20, 8, tzinfo=UTC)


def make_node(
    name: str, capability: str, depends_on: list[str], seconds: tuple[float, float], cost: float
) -> Node:
    """Make a completed node that ran from one second to another."""
    begin, end = (START + timedelta(seconds=second) for second in seconds)
    fields = {"id": name, "capability": capability, "depends_on": depends_on, "cost_usd": cost}
    times = {"status": "completed", "started_at": begin, "completed_at": end}
    return Node.model_validate({**fields, **times, "provider": "minimax"})


def make_workflow() -> WorkflowRecord:
    """Make a card with its text and its voice."""
    nodes = [
        make_node("facts", "research.gather@1", [], (0.05, 0.62), 0.0),
        make_node("copy", "text.generate@1", ["facts"], (0.66, 1.71), 0.00041),
        make_node("speech", "speech.generate@1", ["copy"], (1.76, 4.12), 0.0048),
        make_node("card", "composition.layout@1", ["copy", "facts"], (1.8, 2.2), 0.0),
    ]
    fields = {"id": "wfl_1", "name": "launch-card", "status": "completed", "created_at": START}
    return WorkflowRecord.model_validate({**fields, "cost_usd": 0.00521, "nodes": nodes})
