"""When each node of a workflow ran: a Gantt chart, as numbers and as SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import floor, log10

from toolkit.contract.workflows import Node, WorkflowRecord
from toolkit.display.text import SYMBOLS, fit_text, format_money, format_seconds
from toolkit.display.theme import (
    build_ink_attributes,
    build_state_attributes,
    escape_xml,
    format_coordinate,
    wrap_svg,
)
from toolkit.display.workflow.boxes import format_caption, format_workflow_cost, measure_duration_s

MARGIN, CAPTION_HEIGHT, AXIS_HEIGHT = 14, 24, 22
NAME_WIDTH, NOTE_WIDTH, SPAN_WIDTH = 150, 180, 480  # together, what a cell has room for
ROOMY_ROW_HEIGHT, THIN_ROW_HEIGHT, MAX_ROOMY_ROWS = 24, 13, 60
MAX_TICKS = 7  # at most


@dataclass(frozen=True, slots=True)
class TimelineBar:
    """A node in time; seconds count from when the workflow was submitted.

    Attributes:
        ready_s: when its last dependency was completed, so that it could have started.
        start_s, end_s: when it ran; none for what never did, or still does.
        critical: whether the workflow could not have ended sooner without it.
    """

    node: Node
    ready_s: float
    start_s: float | None
    end_s: float | None
    critical: bool


def build_bars(workflow: WorkflowRecord) -> list[TimelineBar]:
    """Build the bars of a workflow's nodes in the order of their start; last what never did."""

    def since(moment: datetime | None) -> float | None:
        return None if moment is None else (moment - workflow.created_at).total_seconds()

    nodes = {node.id: node for node in workflow.nodes}
    critical = _find_critical_path(nodes)
    made = []
    for node in workflow.nodes:
        ends = [since(nodes[up].completed_at) or 0.0 for up in node.depends_on]
        made.append(
            TimelineBar(
                node=node,
                ready_s=max(ends, default=0.0),
                start_s=since(node.started_at),
                end_s=since(node.completed_at),
                critical=node.id in critical,
            )
        )
    return sorted(made, key=lambda bar: (bar.start_s is None, bar.start_s or 0.0))


def _find_critical_path(nodes: dict[str, Node]) -> set[str]:
    """Find the nodes that led to the end: the last to end, the one it waited for, and so on."""

    def get_end(node: Node) -> float:
        ran = node.completed_at if node.started_at is not None else None
        return 0.0 if ran is None else ran.timestamp()

    found: set[str] = set()
    last = max(nodes.values(), key=get_end, default=None)
    while last is not None and get_end(last):
        found.add(last.id)
        last = max((nodes[up] for up in last.depends_on), key=get_end, default=None)
    return found


def measure_span_s(shown: Sequence[TimelineBar]) -> float:
    """Return how long all of them took, in seconds."""
    return max((bar.end_s or bar.start_s or 0.0 for bar in shown), default=0.0) or 1.0


def format_note(bar: TimelineBar) -> str:
    """Write the note beside a bar: how long, what it cost, who did it, and what went wrong."""
    node, took = bar.node, measure_duration_s(bar.node)
    parts = [
        f"{SYMBOLS.get(node.status, '·')} {node.status}" if took is None else format_seconds(took)
    ]
    if node.cost_usd is not None:
        parts.append(format_money(node.cost_usd))
    parts += [text for text in (node.provider, "cached" if node.cached_from else "") if text]
    if node.retry_count:
        parts.append(f"{node.retry_count} retr{'y' if node.retry_count == 1 else 'ies'}")
    if node.error is not None:
        parts.append(node.error.code)
    return " · ".join(parts)


def choose_ticks(span: float) -> list[float]:
    """Choose round times along the axis.

    >>> choose_ticks(3.2)
    [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    """
    rough = span / MAX_TICKS
    power = 10.0 ** floor(log10(rough))
    step = next(power * by for by in (1, 2, 5, 10) if power * by >= rough)
    return [round(i * step, 9) for i in range(int(span / step) + 1)]


def draw_timeline_svg(workflow: WorkflowRecord) -> str:
    """Draw the chart: a bar a node, grey where it could have started and had not, the critical path
    marked.
    """
    shown = build_bars(workflow)
    row = ROOMY_ROW_HEIGHT if len(shown) <= MAX_ROOMY_ROWS else THIN_ROW_HEIGHT
    span = measure_span_s(shown)
    top = MARGIN + CAPTION_HEIGHT + AXIS_HEIGHT
    left, bottom = MARGIN + NAME_WIDTH, top + row * len(shown)
    width = left + SPAN_WIDTH + NOTE_WIDTH + MARGIN
    head = (
        format_caption(workflow.name, workflow.nodes, cost=format_workflow_cost(workflow))
        + f" · {format_seconds(span)}, the critical path in bold"
    )
    body = (
        f'<text x="{MARGIN}" y="{MARGIN + 6}" font-size="12" {build_ink_attributes("note")}>'
        f"{escape_xml(head)}</text>"
    )
    for at in choose_ticks(span):
        x = format_coordinate(left + at / span * SPAN_WIDTH)
        body += f'<path d="M{x} {top - 4}V{bottom}" {build_ink_attributes("grid")}/>'
        for y in (top - 8, bottom + 14):
            body += (
                f'<text x="{x}" y="{y}" font-size="10" text-anchor="middle" '
                f"{build_ink_attributes('head')}>"
                f"{format_seconds(at) if at else '0'}</text>"
            )
    body += "".join(
        _draw_row(bar, left, top + i * row, row, SPAN_WIDTH / span) for i, bar in enumerate(shown)
    )
    label = f"Timeline of workflow {workflow.name}: {len(shown)} nodes in {format_seconds(span)}"
    return wrap_svg(width, bottom + AXIS_HEIGHT + 4, label, f"Timeline of {workflow.name}", body)


def _draw_row(bar: TimelineBar, left: float, top: float, row: int, scale: float) -> str:
    """Draw the name, the bar, and the note of a node."""
    node = bar.node
    font = 11 if row == ROOMY_ROW_HEIGHT else 9
    base, thick = top + row / 2 + font * 0.35, row - (8 if row == ROOMY_ROW_HEIGHT else 3)
    weight = ' font-weight="700"' if bar.critical else ""
    name = fit_text(node.id, NAME_WIDTH - 10, font)
    words = (node.id, node.label, node.status, format_note(bar))
    out = (
        f"<g><title>{escape_xml(' · '.join(words))}"
        f'</title><text x="{left - 8}" y="{format_coordinate(base)}" font-size="{font}"{weight} '
        f'text-anchor="end" {build_ink_attributes("name")}>{escape_xml(name)}</text>'
    )
    end = left + bar.ready_s * scale
    if bar.start_s is not None:
        x, y = left + bar.start_s * scale, top + (row - thick) / 2
        if bar.start_s > bar.ready_s:
            out += (
                f'<path d="M{format_coordinate(end)} {format_coordinate(top + row / 2)}'
                f'H{format_coordinate(x)}" {build_ink_attributes("edge")} '
                'stroke-width="1" stroke-dasharray="2 2"/>'
            )
        ran = (get_end_s(bar) - bar.start_s) * scale
        edge = "2.4" if bar.critical else "1"
        out += (
            f'<rect x="{format_coordinate(x)}" y="{format_coordinate(y)}" '
            f'width="{format_coordinate(max(1.5, ran))}" '
            f'height="{thick}" rx="2" {build_state_attributes(node.status)} stroke-width="{edge}"/>'
        )
        end = x + max(1.5, ran)
    room = left + SPAN_WIDTH + NOTE_WIDTH - end - 6
    said = fit_text(format_note(bar), room, font * 0.95)
    return out + (
        f'<text x="{format_coordinate(end + 6)}" y="{format_coordinate(base)}" '
        f'font-size="{format_coordinate(font * 0.95)}" '
        f"{build_ink_attributes('note')}>{escape_xml(said)}</text></g>"
    )


def get_end_s(bar: TimelineBar) -> float:
    """Return where a node's bar ends; what still runs is shown as begun."""
    return bar.end_s if bar.end_s is not None else (bar.start_s or 0.0)
