"""Figures: what a router weighed, as matplotlib draws it; slow to import, so only for drawing."""

import io

from matplotlib.figure import Figure

from toolkit.contract.jobs import Candidate
from toolkit.contract.runs import Route
from toolkit.display.text import money

KEPT, DROPPED, CHOSEN = "#2f6f8f", "#b8b8b8", "#c8553d"


class Chart(Figure):
    """A figure that shows itself in a notebook, whichever backend is chosen."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=100)
        return file.getvalue()


def candidates_chart(route: Route) -> Chart:
    """The candidates of a route: expected cost and median latency, a bar each, the best on top.

    What is unknown has no bar and says so; what was dropped is grey; the choice stands out.
    """
    shown = list(reversed(route.candidates))
    figure = Chart(figsize=(9, 1.2 + 0.32 * max(1, len(shown))), layout="constrained")
    cost_axis, latency_axis = figure.subplots(1, 2, sharey=True)
    names = [f"{c.provider}\n{c.model}" if c.model else c.provider for c in shown]
    colours = [_colour(c, route) for c in shown]
    costs = [c.estimated_cost_usd for c in shown]
    cost_axis.barh(range(len(shown)), [cost or 0.0 for cost in costs], color=colours)
    for place, candidate in enumerate(shown):
        cost_axis.annotate(
            f" {money(candidate.estimated_cost_usd)}",
            (candidate.estimated_cost_usd or 0.0, place),
            va="center",
            fontsize=8,
        )
    latency_axis.barh(range(len(shown)), [c.latency_p50_ms or 0.0 for c in shown], color=colours)
    for place, candidate in enumerate(shown):
        known = candidate.latency_p50_ms
        label = "not called yet" if known is None else f"{known:.0f} ms"
        latency_axis.annotate(f" {label}", (known or 0.0, place), va="center", fontsize=8)
    cost_axis.set_yticks(range(len(shown)), names, fontsize=8)
    cost_axis.set_xlabel("expected cost, US dollars")
    latency_axis.set_xlabel("median latency, ms")
    for axis in (cost_axis, latency_axis):
        axis.spines[["top", "right"]].set_visible(False)
        widest = max((bar.get_width() for bar in axis.patches), default=0.0)
        axis.set_xlim(0, 1.3 * widest or 1)
    figure.suptitle(f"{route.capability}, policy {route.policy}", fontsize=10, x=0.01, ha="left")
    return figure


def _colour(candidate: Candidate, route: Route) -> str:
    if (candidate.provider, candidate.model) == (route.provider, route.model):
        return CHOSEN
    return DROPPED if candidate.excluded else KEPT
