"""Figures drawn by matplotlib, which loads slowly: workflows, timelines, candidates of a route.

Never use `pyplot`: its figures are global, and calls from a notebook's threads would mix them up.
"""

import io
from collections.abc import Sequence
from functools import lru_cache
from typing import cast

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path

from toolkit.contract.jobs import Candidate
from toolkit.contract.money import format_usd
from toolkit.contract.runs import Route
from toolkit.contract.workflows import Node, WorkflowRecord
from toolkit.display.text import fit_text, format_seconds
from toolkit.display.theme import INK_COLOURS, STATE_COLOURS
from toolkit.display.workflow.boxes import BoxSize, EdgeLine, NodeBox, lay_out_workflow
from toolkit.display.workflow.timeline import build_rows, choose_ticks, measure_span_s

MAX_PIXELS = 4_000  # of the longer side of a PNG; larger pictures get fewer dots per inch
MISSING_GLYPH = "\N{WHITE SQUARE}"
PIXELS_PER_INCH = 100  # pixels an inch; a point is 1/72 of it
EDGE_COLOUR, GRID_COLOUR = INK_COLOURS["edge"][1], INK_COLOURS["grid"][1]
NAME_COLOUR, NOTE_COLOUR = INK_COLOURS["name"][1], INK_COLOURS["note"][1]
KEPT_COLOUR, DROPPED_COLOUR, CHOSEN_COLOUR = "#2f6f8f", "#b8b8b8", "#c8553d"


def escape_mathtext(text: str) -> str:
    """Escape a text so that matplotlib draws it literally and does not warn of missing glyphs.

    Matplotlib reads text between dollar signs as a formula. A character without a glyph becomes
    a box, because a name may be in any script, and fonts differ between machines.

    >>> escape_mathtext("$a$ and \U000f0000")
    '\\\\$a\\\\$ and □'
    """
    if not text.isascii():
        glyphs = _load_glyphs(tuple(FontProperties().get_family()))
        text = "".join(c if ord(c) in glyphs else MISSING_GLYPH for c in text)
    return text.replace("$", r"\$")


@lru_cache(maxsize=4)
def _load_glyphs(families: tuple[str, ...]) -> frozenset[int]:
    """Load the characters that the chosen fonts have in both normal and bold."""

    def glyphs(weight: str) -> set[int]:
        fonts = (findfont(FontProperties(family=name, weight=weight)) for name in families)
        return {code for path in fonts for code in get_font(path).get_charmap()}

    return frozenset(glyphs("normal") & glyphs("bold"))


class Chart(Figure):
    """A matplotlib figure that a notebook displays by itself, with any backend."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        dpi = min(100.0, MAX_PIXELS / max(self.get_size_inches()))
        self.savefig(file, format="png", dpi=dpi)
        return file.getvalue()


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


def draw_candidates(route: Route) -> Chart:
    """Draw the candidates of a route: bars of expected cost and median latency, the best on top.

    An unknown value has a note instead of a bar. An excluded candidate is grey; the choice
    stands out.
    """
    candidates = list(reversed(route.candidates))
    figure = Chart(figsize=(9, 1.2 + 0.32 * max(1, len(candidates))), layout="constrained")
    cost_axis, latency_axis = figure.subplots(1, 2, sharey=True)
    names = [
        escape_mathtext(f"{c.provider}\n{c.model}" if c.model else c.provider) for c in candidates
    ]
    colours = [_choose_colour(c, route) for c in candidates]
    costs = [c.estimated_cost_usd for c in candidates]
    _draw_bars(cost_axis, costs, colours, [format_usd(cost) for cost in costs])
    latencies = [c.latency_p50_ms for c in candidates]
    notes = ["not called yet" if ms is None else f"{ms:.0f} ms" for ms in latencies]
    _draw_bars(latency_axis, latencies, colours, notes)
    cost_axis.set_yticks(range(len(candidates)), names, fontsize=8)
    cost_axis.set_xlabel("expected cost, US dollars")
    latency_axis.set_xlabel("median latency, ms")
    for axis in (cost_axis, latency_axis):
        axis.spines[["top", "right"]].set_visible(False)
        widest = max((bar.get_width() for bar in axis.patches), default=0.0)
        axis.set_xlim(0, 1.3 * widest or 1)
    title = escape_mathtext(f"{route.capability}, policy {route.policy}")
    figure.suptitle(title, fontsize=10, x=0.01, ha="left")
    return figure


def _draw_bars(
    axis: Axes, widths: Sequence[float | None], colours: Sequence[str], notes: Sequence[str]
) -> None:
    """Draw bars from the lowest up, each with a note at its end; None has no bar."""
    lengths = [width or 0.0 for width in widths]
    axis.barh(range(len(lengths)), lengths, color=colours)
    for place, (width, note) in enumerate(zip(lengths, notes, strict=True)):
        axis.annotate(f" {note}", (width, place), va="center", fontsize=8)


def _choose_colour(candidate: Candidate, route: Route) -> str:
    if (candidate.provider, candidate.model) == (route.provider, route.model):
        return CHOSEN_COLOUR
    return DROPPED_COLOUR if candidate.excluded else KEPT_COLOUR
