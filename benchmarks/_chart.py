"""Draw the chart of `docs/benchmarks.md`: figures and floors relative to other programs.

A bar is the figure divided by the other program's figure, so that times, CPU and throughputs share
an axis; throughputs are divided the other way around. The picture contains the drawn numbers as its
description, so that a check needs no drawing: other versions of matplotlib draw other bytes.
"""

import html
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

Line = Mapping[str, Any]
_COLOUR, _FLOOR_COLOUR, _RULE_COLOUR = "#3b6ea8", "#c2571a", "#444444"
_DESCRIPTION: Final = re.compile(r"<dc:description>(.*?)</dc:description>", re.DOTALL)


class Bar(NamedTuple):
    """A bar of the chart.

    Attributes:
        label: label of the figure and name of the other program.
        share: the figure relative to the other program; less is better.
        floor: the floor relative to the other program, or None without a floor.
    """

    label: str
    share: float
    floor: float | None


def list_bars(labels: Mapping[str, str], figures: Mapping[str, Line]) -> list[Bar]:
    """List a bar for each figure that has a peer.

    Args:
        labels: label of each figure on the page.
        figures: lines of all figures, by name.
    """
    return [
        _make_bar(label, figures[name])
        for name, label in labels.items()
        if "peer" in figures.get(name, {})
    ]


def _make_bar(label: str, line: Line) -> Bar:
    program = line["peer_name"].partition(",")[0]
    label = f"{label} ({program})".replace("`", "")
    value, peer, floor = line["value"], line["peer"], line.get("floor")
    if line["unit"].startswith("x "):  # already relative to the other program
        return Bar(label, value, floor)
    if "at_least" in line or line["unit"].endswith("/s"):
        return Bar(label, round(peer / value, 4), round(peer / floor, 4) if floor else None)
    return Bar(label, round(value / peer, 4), round(floor / peer, 4) if floor else None)


def describe_bars(bars: Sequence[Bar]) -> str:
    """Describe the chart in a sentence, for readers who do not see it."""
    shares = ", ".join(f"{bar.label} {bar.share:.2f}" for bar in bars)
    return f"Bar chart of figures as a share of another program's figure, less is better: {shares}."


def is_drawn(bars: Sequence[Bar], path: Path) -> bool:
    """Check whether a picture shows these bars."""
    if not path.exists():
        return False
    match = _DESCRIPTION.search(path.read_text("utf-8"))
    return match is not None and html.unescape(match[1]) == _dump_bars(bars)


def _dump_bars(bars: Sequence[Bar]) -> str:
    return json.dumps([bar._asdict() for bar in bars], ensure_ascii=False)


def draw_bars(bars: Sequence[Bar], path: Path) -> None:
    """Draw the chart as SVG: the same bars give the same bytes."""
    # Imported here because they are slow, and the check does not draw.
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    settings = {"svg.hashsalt": "benchmarks", "svg.fonttype": "none", "font.size": 9}
    with rc_context(settings):
        picture = Figure(figsize=(8, 0.6 + 0.34 * len(bars)), layout="constrained")
        axes = picture.add_subplot()
        rows = range(len(bars))
        axes.barh(rows, [bar.share for bar in bars], height=0.6, color=_COLOUR, label="toolkit")
        floors = [(bar.floor, row) for row, bar in zip(rows, bars, strict=True) if bar.floor]
        if floors:
            xs, ys = zip(*floors, strict=True)
            axes.scatter(xs, ys, marker="D", s=22, color=_FLOOR_COLOUR, zorder=3, label="floor")
        axes.axvline(1, color=_RULE_COLOUR, linewidth=1, label="other program")
        for row, bar in zip(rows, bars, strict=True):
            axes.annotate(f"{bar.share:.2f}", (bar.share, row), (4, 0), va="center",
                          textcoords="offset points")  # fmt: skip
        axes.set_xlim(0, max(1.02, *(bar.share + 0.1 for bar in bars)))
        axes.set_yticks(list(rows), [bar.label for bar in bars])
        axes.invert_yaxis()
        axes.set_xlabel("share of the other program's time, CPU or wait; less is better")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="lower right", bbox_to_anchor=(0.95, 0), fontsize=8)
        title = "Figures and floors relative to other programs"
        metadata = {"Title": title, "Description": _dump_bars(bars), "Date": None}
        picture.savefig(path, format="svg", metadata=metadata)
    lines = [line.rstrip() for line in path.read_text("utf-8").splitlines()]
    path.write_text("\n".join(lines) + "\n", "utf-8")
