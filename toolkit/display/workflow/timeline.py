"""When each node of a workflow ran: a Gantt chart, as numbers and as SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import floor, log10

from toolkit.contract.money import format_usd, sum_usd
from toolkit.contract.workflows import Node, WorkflowRecord
from toolkit.display.text import fit_text, format_seconds, format_status, format_total
from toolkit.display.theme import (
    build_ink_attributes,
    build_state_attributes,
    escape_xml,
    format_coordinate,
    wrap_svg,
)
from toolkit.display.workflow.boxes import (
    find_group_state,
    format_caption,
    format_state_counts,
    format_workflow_cost,
    measure_duration_s,
    stack_nodes,
)

MARGIN, CAPTION_HEIGHT, AXIS_HEIGHT = 14, 24, 22
NAME_WIDTH, NOTE_WIDTH, SPAN_WIDTH = 150, 180, 480  # their sum fits the width of a cell
ROW_HEIGHT, BAR_HEIGHT, FONT = 24, 16, 11
MAX_ROWS = 60
MAX_TICKS = 7  # highest number


@dataclass(frozen=True, slots=True)
class TimelineBar:
    """A node in time, in seconds since the workflow was submitted.

    Attributes:
        ready_s: completion of its last dependency, so the earliest possible start.
        start_s, end_s: start and end; None if the node has not started or not ended.
        critical: whether the node is on the critical path.
    """

    node: Node
    ready_s: float
    start_s: float | None
    end_s: float | None
    critical: bool


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """A row of the chart: a node, or several nodes folded into one row.

    Attributes:
        description: all known details, for the tooltip.
        ready_s, start_s: earliest values among its nodes.
        end_s: end of the bar; a running node ends at its start.
        critical: whether one of its nodes is on the critical path.
    """

    name: str
    description: str
    state: str
    note: str
    ready_s: float
    start_s: float | None
    end_s: float
    critical: bool


def build_bars(workflow: WorkflowRecord) -> list[TimelineBar]:
    """Build the bars of a workflow's nodes in the order of start; unstarted nodes come last."""

    def since(moment: datetime | None) -> float | None:
        return None if moment is None else (moment - workflow.created_at).total_seconds()

    nodes = {node.id: node for node in workflow.nodes}
    critical = _find_critical_path(nodes)
    bars = []
    for node in workflow.nodes:
        ends = [since(nodes[up].completed_at) or 0.0 for up in node.depends_on]
        bars.append(
            TimelineBar(
                node=node,
                ready_s=max(ends, default=0.0),
                start_s=since(node.started_at),
                end_s=since(node.completed_at),
                critical=node.id in critical,
            )
        )
    return sorted(bars, key=lambda bar: (bar.start_s is None, bar.start_s or 0.0))


def _find_critical_path(nodes: dict[str, Node]) -> set[str]:
    """Find the critical path: the last node to end, its last dependency to end, and so on."""

    def get_end(node: Node) -> float:
        ran = node.completed_at if node.started_at is not None else None
        return 0.0 if ran is None else ran.timestamp()

    path: set[str] = set()
    last = max(nodes.values(), key=get_end, default=None)
    while last is not None and get_end(last):
        path.add(last.id)
        last = max((nodes[up] for up in last.depends_on), key=get_end, default=None)
    return path


def measure_span_s(bars: Sequence[TimelineBar | TimelineRow]) -> float:
    """Return the seconds from the submission to the last end; 1 if nothing has started."""
    return max((bar.end_s or bar.start_s or 0.0 for bar in bars), default=0.0) or 1.0


def build_rows(workflow: WorkflowRecord) -> list[TimelineRow]:
    """Build the rows of the chart, `MAX_ROWS` at most.

    Too many nodes are folded as in the workflow's graph; then neighbouring rows are folded.
    """
    bars = build_bars(workflow)
    groups = [[bar] for bar in bars]
    if len(groups) > MAX_ROWS:
        bar_of = {bar.node.id: bar for bar in bars}
        stacks = stack_nodes([bar.node for bar in bars]).values()
        groups = [[bar_of[node.id] for node in members] for members in stacks]
        size = -(-len(groups) // MAX_ROWS)
        groups = [
            [bar for group in groups[at : at + size] for bar in group]
            for at in range(0, len(groups), size)
        ]
    return [_build_row(group) for group in groups]


def _build_row(bars: Sequence[TimelineBar]) -> TimelineRow:
    nodes = [bar.node for bar in bars]
    first = nodes[0]
    starts = [bar.start_s for bar in bars if bar.start_s is not None]
    state: str = first.status
    name, note = first.id, format_note(bars[0])
    words = [first.id, first.label, first.status, note]
    if len(bars) > 1:
        name, state = f"{first.id} and {len(bars) - 1} more", find_group_state(nodes)
        costs = [node.cost_usd for node in nodes if node.cost_usd is not None]
        counts = format_state_counts(nodes)
        note = f"{counts} · {format_usd(sum_usd(costs))}" if costs else counts
        labels = list(dict.fromkeys(node.label for node in nodes))
        words = [f"{first.id} to {nodes[-1].id}", ", ".join(labels), note]
    return TimelineRow(
        name=name,
        description=" · ".join(words),
        state=state,
        note=note,
        ready_s=min(bar.ready_s for bar in bars),
        start_s=min(starts, default=None),
        end_s=max(bar.end_s or bar.start_s or 0.0 for bar in bars),
        critical=any(bar.critical for bar in bars),
    )


def format_note(bar: TimelineBar) -> str:
    """Format the note next to a bar: duration, cost, provider, retries and error code."""
    node, took = bar.node, measure_duration_s(bar.node)
    parts = [format_status(node.status) if took is None else format_seconds(took)]
    if node.cost_usd is not None:
        parts.append(format_usd(node.cost_usd))
    parts += [text for text in (node.provider, "cached" if node.cached_from else "") if text]
    if node.retry_count:
        parts.append(format_total(node.retry_count, "retries"))
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
    """Draw the chart as SVG, with a bar in each row and a dotted line from ready to start.

    The critical path is bold.
    """
    rows = build_rows(workflow)
    span = measure_span_s(rows)
    top = MARGIN + CAPTION_HEIGHT + AXIS_HEIGHT
    left, bottom = MARGIN + NAME_WIDTH, top + ROW_HEIGHT * len(rows)
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
        _draw_row(row, left, top + i * ROW_HEIGHT, SPAN_WIDTH / span) for i, row in enumerate(rows)
    )
    many = len(workflow.nodes)
    label = f"Timeline of workflow {workflow.name}: {many} nodes in {format_seconds(span)}"
    return wrap_svg(width, bottom + AXIS_HEIGHT + 4, label, f"Timeline of {workflow.name}", body)


def _draw_row(row: TimelineRow, left: float, top: float, scale: float) -> str:
    base, middle = top + ROW_HEIGHT / 2 + FONT * 0.35, top + ROW_HEIGHT / 2
    weight = ' font-weight="700"' if row.critical else ""
    name = fit_text(row.name, NAME_WIDTH - 10, FONT)
    out = (
        f"<g><title>{escape_xml(row.description)}"
        f'</title><text x="{left - 8}" y="{format_coordinate(base)}" font-size="{FONT}"{weight} '
        f'text-anchor="end" {build_ink_attributes("name")}>{escape_xml(name)}</text>'
    )
    end = left + row.ready_s * scale
    if row.start_s is not None:
        x, y = left + row.start_s * scale, middle - BAR_HEIGHT / 2
        if row.start_s > row.ready_s:
            out += (
                f'<path d="M{format_coordinate(end)} {format_coordinate(middle)}'
                f'H{format_coordinate(x)}" {build_ink_attributes("edge")} '
                'stroke-width="1" stroke-dasharray="2 2"/>'
            )
        ran = (row.end_s - row.start_s) * scale
        edge = "2.4" if row.critical else "1"
        out += (
            f'<rect x="{format_coordinate(x)}" y="{format_coordinate(y)}" '
            f'width="{format_coordinate(max(1.5, ran))}" '
            f'height="{BAR_HEIGHT}" rx="2" {build_state_attributes(row.state)} '
            f'stroke-width="{edge}"/>'
        )
        end = x + max(1.5, ran)
    room = left + SPAN_WIDTH + NOTE_WIDTH - end - 6
    note = fit_text(row.note, room, FONT * 0.95)
    return out + (
        f'<text x="{format_coordinate(end + 6)}" y="{format_coordinate(base)}" '
        f'font-size="{format_coordinate(FONT * 0.95)}" '
        f"{build_ink_attributes('note')}>{escape_xml(note)}</text></g>"
    )
