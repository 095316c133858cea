"""When each node of a workflow ran: a Gantt chart, as numbers and as SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import floor, log10

from toolkit.contract.workflows import Node, Workflow
from toolkit.display.boxes import caption, cost_of, took_s
from toolkit.display.text import SYMBOLS, fitted, money, seconds
from toolkit.display.theme import escape_xml, framed, ink, number, state_ink

MARGIN, CAPTION, AXIS = 14, 24, 22
NAME_WIDTH, NOTE_WIDTH, SPAN_WIDTH = 170, 190, 620
ROOMY_ROW, THIN_ROW, MOST_ROOMY = 24, 13, 60
TICKS = 7  # at most


@dataclass(frozen=True, slots=True)
class Bar:
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


def bars(workflow: Workflow) -> list[Bar]:
    """Build the bars of a workflow's nodes in the order of their start; last what never did."""

    def since(moment: datetime | None) -> float | None:
        return None if moment is None else (moment - workflow.created_at).total_seconds()

    nodes = {node.id: node for node in workflow.nodes}
    critical = _critical(nodes)
    made = []
    for node in workflow.nodes:
        ends = [since(nodes[up].completed_at) or 0.0 for up in node.depends_on]
        made.append(
            Bar(
                node=node,
                ready_s=max(ends, default=0.0),
                start_s=since(node.started_at),
                end_s=since(node.completed_at),
                critical=node.id in critical,
            )
        )
    return sorted(made, key=lambda bar: (bar.start_s is None, bar.start_s or 0.0))


def _critical(nodes: dict[str, Node]) -> set[str]:
    """Find the nodes that led to the end: the last to end, the one it waited for, and so on."""

    def ended(node: Node) -> float:
        ran = node.completed_at if node.started_at is not None else None
        return 0.0 if ran is None else ran.timestamp()

    found: set[str] = set()
    last = max(nodes.values(), key=ended, default=None)
    while last is not None and ended(last):
        found.add(last.id)
        last = max((nodes[up] for up in last.depends_on), key=ended, default=None)
    return found


def span_s(shown: Sequence[Bar]) -> float:
    """Return how long all of them took, in seconds."""
    return max((bar.end_s or bar.start_s or 0.0 for bar in shown), default=0.0) or 1.0


def note(bar: Bar) -> str:
    """Write the note beside a bar: how long, what it cost, who did it, and what went wrong."""
    node, took = bar.node, took_s(bar.node)
    parts = [f"{SYMBOLS.get(node.status, '·')} {node.status}" if took is None else seconds(took)]
    if node.cost_usd is not None:
        parts.append(money(node.cost_usd))
    parts += [text for text in (node.provider, "cached" if node.cached_from else "") if text]
    if node.retry_count:
        parts.append(f"{node.retry_count} retr{'y' if node.retry_count == 1 else 'ies'}")
    if node.error is not None:
        parts.append(node.error.code)
    return " · ".join(parts)


def ticks(span: float) -> list[float]:
    """Choose round times along the axis.

    >>> ticks(3.2)
    [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    """
    rough = span / TICKS
    power = 10.0 ** floor(log10(rough))
    step = next(power * by for by in (1, 2, 5, 10) if power * by >= rough)
    return [round(i * step, 9) for i in range(int(span / step) + 1)]


def timeline_svg(workflow: Workflow) -> str:
    """Draw the chart: a bar a node, grey where it could have started and had not, the critical path
    marked.
    """
    shown = bars(workflow)
    row = ROOMY_ROW if len(shown) <= MOST_ROOMY else THIN_ROW
    span = span_s(shown)
    top = MARGIN + CAPTION + AXIS
    left, bottom = MARGIN + NAME_WIDTH, top + row * len(shown)
    width = left + SPAN_WIDTH + NOTE_WIDTH + MARGIN
    head = (
        caption(workflow.name, workflow.nodes, cost=cost_of(workflow))
        + f" · {seconds(span)}, the critical path in bold"
    )
    body = (
        f'<text x="{MARGIN}" y="{MARGIN + 6}" font-size="12" {ink("note")}>'
        f"{escape_xml(head)}</text>"
    )
    for at in ticks(span):
        x = number(left + at / span * SPAN_WIDTH)
        body += f'<path d="M{x} {top - 4}V{bottom}" {ink("grid")}/>'
        for y in (top - 8, bottom + 14):
            body += (
                f'<text x="{x}" y="{y}" font-size="10" text-anchor="middle" {ink("head")}>'
                f"{seconds(at) if at else '0'}</text>"
            )
    body += "".join(
        _row(bar, left, top + i * row, row, SPAN_WIDTH / span) for i, bar in enumerate(shown)
    )
    label = f"Timeline of workflow {workflow.name}: {len(shown)} nodes in {seconds(span)}"
    return framed(width, bottom + AXIS + 4, label, f"Timeline of {workflow.name}", body)


def _row(bar: Bar, left: float, top: float, row: int, scale: float) -> str:
    """Draw the name, the bar, and the note of a node."""
    node = bar.node
    font = 11 if row == ROOMY_ROW else 9
    base, thick = top + row / 2 + font * 0.35, row - (8 if row == ROOMY_ROW else 3)
    weight = ' font-weight="700"' if bar.critical else ""
    name = fitted(node.id, NAME_WIDTH - 10, font)
    out = (
        f"<g><title>{escape_xml(f'{node.id} · {node.capability} · {node.status} · {note(bar)}')}"
        f'</title><text x="{left - 8}" y="{number(base)}" font-size="{font}"{weight} '
        f'text-anchor="end" {ink("name")}>{escape_xml(name)}</text>'
    )
    end = left + bar.ready_s * scale
    if bar.start_s is not None:
        x, y = left + bar.start_s * scale, top + (row - thick) / 2
        if bar.start_s > bar.ready_s:
            out += (
                f'<path d="M{number(end)} {number(top + row / 2)}H{number(x)}" {ink("edge")} '
                'stroke-width="1" stroke-dasharray="2 2"/>'
            )
        ran = (end_of(bar) - bar.start_s) * scale
        edge = "2.4" if bar.critical else "1"
        out += (
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(max(1.5, ran))}" '
            f'height="{thick}" rx="2" {state_ink(node.status)} stroke-width="{edge}"/>'
        )
        end = x + max(1.5, ran)
    room = left + SPAN_WIDTH + NOTE_WIDTH - end - 6
    said = fitted(note(bar), room, font * 0.95)
    return out + (
        f'<text x="{number(end + 6)}" y="{number(base)}" font-size="{number(font * 0.95)}" '
        f"{ink('note')}>{escape_xml(said)}</text></g>"
    )


def end_of(bar: Bar) -> float:
    """Return where a node's bar ends; what still runs is shown as begun."""
    return bar.end_s if bar.end_s is not None else (bar.start_s or 0.0)
