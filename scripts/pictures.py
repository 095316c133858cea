"""Draw the pictures of the README into docs/pictures; `--check` only reports stale pictures.

The workflow is invented, including its times, so that the same bytes are drawn everywhere.
"""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from toolkit.contract.workflows import Node, WorkflowRecord
from toolkit.display.workflow.boxes import format_workflow_cost
from toolkit.display.workflow.svg import draw_workflow_svg
from toolkit.display.workflow.timeline import draw_timeline_svg

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
START = datetime(2026, 11, 20, 8, tzinfo=UTC)


def node(
    name: str, capability: str, ups: str, ran: tuple[float, float], **facts: str | float | None
) -> Node:
    """Make a completed node; `ran` is its start and its end, in seconds."""
    start, end = (START + timedelta(seconds=second) for second in ran)
    fields = {"id": name, "capability": capability, "depends_on": ups.split(), **facts}
    times = {"status": "completed", "started_at": start, "completed_at": end}
    return Node.model_validate({**fields, **times})


def workflow() -> WorkflowRecord:
    """Make a workflow of a launch card with its picture and its voice, in two languages."""
    mini, runpod = {"provider": "minimax"}, {"provider": "runpod"}
    nodes = [
        node("facts", "research.gather@1", "", (0.05, 0.62), cost_usd=0.0),
        node("headline", "text.generate@1", "facts", (0.66, 1.71), cost_usd=0.00041, **mini),
        node("summary", "text.generate@1", "facts", (0.67, 2.35), cost_usd=0.00062, **mini),
        node("artwork", "image.generate@1", "headline", (1.76, 6.9), cost_usd=0.0031,
             retry_count=1, **runpod),
        node("speech", "speech.generate@1", "summary", (2.4, 4.12), cost_usd=0.0048,
             provider="elevenlabs"),
        node("translation", "llm.generate@1", "summary", (2.41, 3.63), cost_usd=0.00058, **mini),
        node("card", "composition.layout@1", "headline artwork facts", (6.95, 7.2), cost_usd=0.0),
        node("card_fr", "composition.layout@1", "translation artwork", (6.96, 7.18), cost_usd=0.0),
    ]  # fmt: skip
    head = {"id": "wfl_1", "name": "launch-card", "status": "completed", "created_at": START}
    paid = {
        "cost_usd": 0.00951,
        "cost_incurred_usd": 0.00951,
        "completed_at": nodes[-2].completed_at,
    }
    return WorkflowRecord.model_validate({**head, **paid, "nodes": nodes})


def main() -> int:
    """Write the pictures, or check them."""
    flow = workflow()
    drawn = {
        "workflow.svg": draw_workflow_svg(flow.name, flow.nodes, cost=format_workflow_cost(flow)),
        "timeline.svg": draw_timeline_svg(flow),
    }
    stale = []
    PICTURES.mkdir(exist_ok=True)
    for name, svg in drawn.items():
        path = PICTURES / name
        if not path.is_file() or path.read_text(encoding="utf-8") != svg + "\n":
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(svg + "\n", encoding="utf-8")
    if stale and "--check" in sys.argv:
        print(f"stale, run scripts/fix: {', '.join(stale)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
