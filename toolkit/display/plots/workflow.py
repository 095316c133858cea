"""A workflow and its timeline as matplotlib draws them, from the same numbers as the SVGs."""

from collections.abc import Sequence
from typing import cast

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path

from toolkit.contract.workflows import Node, WorkflowRecord
from toolkit.display.plots.figure import Chart, escape_mathtext
from toolkit.display.text import fit_text, format_seconds
from toolkit.display.theme import INK_COLOURS, STATE_COLOURS
from toolkit.display.workflow.arrangement import BoxSize, EdgeLine
from toolkit.display.workflow.boxes import NodeBox, lay_out_workflow
from toolkit.display.workflow.timeline import build_rows, choose_ticks, measure_span_s

PIXELS_PER_INCH = 100  # pixels an inch; a point is 1/72 of it
EDGE_COLOUR, GRID_COLOUR = INK_COLOURS["edge"][1], INK_COLOURS["grid"][1]
NAME_COLOUR, NOTE_COLOUR = INK_COLOURS["name"][1], INK_COLOURS["note"][1]


def draw_workflow_figure(
    name: str,
    nodes: Sequence[Node],
    ax: Axes | None = None,
    *,
    planned: bool = False,
    cost: str = "",
) -> Figure:
    """Draw a workflow, on the given axes or on a figure of its own."""
    drawn = lay_out_workflow(name, nodes, planned=planned, cost=cost)
    if ax is None:
        inches = (drawn.width / PIXELS_PER_INCH, drawn.height / PIXELS_PER_INCH)
        ax = Chart(figsize=inches).add_axes((0.0, 0.0, 1.0, 1.0))
    ax.set_xlim(0, drawn.width)
    ax.set_ylim(drawn.height, 0)
    ax.set_axis_off()
    ax.set_aspect("equal", adjustable="box")
    scale = _calculate_scale(ax, drawn.width)
    for line in drawn.lines:
        ax.add_artist(_build_edge(line))
    for box in drawn.boxes:
        _draw_box(ax, box, drawn.size, scale)
    ax.text(14, 20, escape_mathtext(drawn.caption), fontsize=12 * scale, color=NOTE_COLOUR)
    return _get_figure(ax)


def draw_timeline_figure(workflow: WorkflowRecord, ax: Axes | None = None) -> Figure:
    """Draw when each node ran, on the given axes or on a figure of its own."""
    rows = build_rows(workflow)
    if ax is None:
        height = 1 + 0.2 * len(rows)
        place_for_names = (0.16, 0.4 / height, 0.83, 1 - 0.6 / height)
        ax = Chart(figsize=(10, height)).add_axes(place_for_names)
    ran = [(place, row, row.start_s) for place, row in enumerate(rows) if row.start_s is not None]
    colours = [STATE_COLOURS.get(row.state, STATE_COLOURS["pending"]) for _, row, _ in ran]
    ax.hlines(
        [place for place, _, _ in ran], [row.ready_s for _, row, _ in ran],
        [max(start, row.ready_s) for _, row, start in ran], EDGE_COLOUR, "dotted", linewidth=0.8,
    )  # fmt: skip
    ax.barh(
        [place for place, _, _ in ran], [row.end_s - start for _, row, start in ran], 0.7,
        [start for _, _, start in ran], color=[fill for fill, _ in colours],
        edgecolor=[stroke for _, stroke in colours],
        linewidth=[2.0 if row.critical else 0.8 for _, row, _ in ran],
    )  # fmt: skip
    for place, row in enumerate(rows):
        at = row.ready_s if row.start_s is None else row.end_s
        ax.text(
            at,
            place,
            escape_mathtext(f" {row.note}"),
            va="center",
            fontsize=7,
            color=NOTE_COLOUR,
        )
        name = escape_mathtext(f"{fit_text(row.name, 170, 11)} ")
        weight = "bold" if row.critical else "normal"
        ax.text(
            0, place, name, transform=ax.get_yaxis_transform(), ha="right", va="center",
            fontsize=8, color=NAME_COLOUR, fontweight=weight,
        )  # fmt: skip
    span = measure_span_s(rows)
    ax.set_xlim(0, span * 1.3)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_yticks([])  # a tick takes ten times as long to draw as a text
    ax.set_xticks(
        choose_ticks(span), [format_seconds(at) if at else "0" for at in choose_ticks(span)]
    )
    ax.tick_params(labelsize=8, length=0)
    ax.grid(axis="x", color=GRID_COLOUR)
    ax.set_axisbelow(True)
    for side in ax.spines.values():
        side.set_visible(False)
    return _get_figure(ax)


def _get_figure(ax: Axes) -> Figure:
    return cast("Figure", ax.get_figure(root=True))  # axes always belong to a figure


def _calculate_scale(ax: Axes, width: int) -> float:
    """Return the points of text for each pixel of the picture, as drawn on the axes."""
    inches = _get_figure(ax).get_size_inches()[0] * ax.get_position().width
    return float(inches * 72 / width)


def _build_edge(line: EdgeLine) -> PathPatch:
    corners, codes = [line.start], [Path.MOVETO]
    for step in line.steps:
        corners += step
        codes += [Path.CURVE4] * 3 if len(step) == 3 else [Path.LINETO]
    return PathPatch(Path(corners, codes), fill=False, edgecolor=EDGE_COLOUR, linewidth=0.9)


def _draw_box(ax: Axes, box: NodeBox, size: BoxSize, scale: float) -> None:
    fill, stroke = STATE_COLOURS.get(box.state, STATE_COLOURS["pending"])
    for by in (4, 2, 0) if len(box.members) > 1 else (0,):
        corner = (box.left + by, box.top + by)
        ax.add_artist(
            FancyBboxPatch(
                corner, size.width, size.height, "round,pad=0,rounding_size=5",
                facecolor=fill, edgecolor=stroke, linewidth=0.9,
            )
        )  # fmt: skip
    pitch = size.height / (size.lines + 0.6)
    first = box.top + size.height / 2 - pitch * (len(box.lines) - 1) / 2
    for i, line in enumerate(box.lines):
        font = size.font if i == 0 else size.font * 0.81
        label = escape_mathtext(fit_text(line, size.width - 7, font))
        ax.text(
            box.left + size.width / 2, first + i * pitch, label,
            fontsize=font * scale, ha="center", va="center",
            color=NAME_COLOUR if i == 0 else NOTE_COLOUR, fontweight="bold" if i == 0 else "normal",
        )  # fmt: skip
