"""Bar charts: the candidates of a route, and costs by provider or party."""

from collections import defaultdict
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolkit.contract.billing import Billing
from toolkit.contract.jobs import Candidate
from toolkit.contract.money import format_usd
from toolkit.contract.runs import Route
from toolkit.contract.usage import UsageLine
from toolkit.display.plots.figure import Chart, escape_mathtext

KEPT_COLOUR, DROPPED_COLOUR, CHOSEN_COLOUR = "#2f6f8f", "#b8b8b8", "#c8553d"
# A colour for each party that colour-blind readers can distinguish (Okabe and Ito); repeats.
PARTY_COLOURS = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#f0e442",
    "#999999",
)


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


def draw_usage(lines: Sequence[UsageLine], ax: Axes | None = None) -> Figure:
    """Draw the cost of each day as a bar stacked by provider, or of all days without a day."""
    days = sorted({line.day for line in lines if line.day is not None})
    spent: dict[str, dict[object, float]] = defaultdict(lambda: defaultdict(float))
    for line in lines:
        spent[line.provider or "this machine"][line.day] += line.cost_usd
    columns: list[object] = list(days) or [None]
    axis = _prepare_axis(ax, max(6.0, 1.5 + 0.45 * len(columns)))
    floor = [0.0] * len(columns)
    for i, (provider, by_day) in enumerate(sorted(spent.items())):
        heights = [by_day[day] for day in columns]
        colour = PARTY_COLOURS[i % len(PARTY_COLOURS)]
        axis.bar(
            range(len(columns)), heights, 0.7, floor, color=colour, label=escape_mathtext(provider)
        )
        floor = [under + height for under, height in zip(floor, heights, strict=True)]
    for place, total in enumerate(floor):
        axis.annotate(_format_dollars(total), (place, total), ha="center", va="bottom", fontsize=7)
    names = [f"{day:%b %d}" for day in days] or ["all days"]
    axis.set_xticks(range(len(columns)), names, fontsize=8, rotation=90 if len(days) > 12 else 0)
    axis.set_ylabel("cost, US dollars")
    if spent:
        axis.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return axis.get_figure(root=True)  # type: ignore[return-value]


def draw_billing(billing: Billing, ax: Axes | None = None) -> Figure:
    """Draw a bar for the amount that each party bills for a month."""
    axis = _prepare_axis(ax, 7.0, 1.0 + 0.35 * max(1, len(billing.lines)))
    lines = list(reversed(billing.lines))
    colours = [PARTY_COLOURS[i % len(PARTY_COLOURS)] for i in range(len(lines))]
    notes = []
    for line in lines:
        unpriced = f", {line.unpriced_calls} of unknown price" if line.unpriced_calls else ""
        notes.append(f"{_format_dollars(line.cost_usd)}, {line.calls} calls{unpriced}")
    _draw_bars(axis, [line.cost_usd for line in lines], colours, notes)
    axis.set_yticks(
        range(len(lines)), [escape_mathtext(line.billed_by) for line in lines], fontsize=8
    )
    axis.set_xlabel(f"{billing.month}, US dollars{', simulated' if billing.simulated else ''}")
    axis.set_xlim(0, 1.4 * max((line.cost_usd for line in lines), default=0.0) or 1)
    return axis.get_figure(root=True)  # type: ignore[return-value]


def _draw_bars(
    axis: Axes, widths: Sequence[float | None], colours: Sequence[str], notes: Sequence[str]
) -> None:
    """Draw bars from the lowest up, each with a note at its end; None has no bar."""
    lengths = [width or 0.0 for width in widths]
    axis.barh(range(len(lengths)), lengths, color=colours)
    for place, (width, note) in enumerate(zip(lengths, notes, strict=True)):
        axis.annotate(f" {note}", (width, place), va="center", fontsize=8)


def _prepare_axis(ax: Axes | None, width: float, height: float = 3.2) -> Axes:
    """Return the given axes, or the axes of a new figure of this size in inches."""
    axis = ax or Chart(figsize=(width, height), layout="constrained").subplots()
    axis.spines[["top", "right"]].set_visible(False)
    return axis


def _format_dollars(amount: float) -> str:
    """Format money, escaped because matplotlib reads text between dollar signs as a formula."""
    return format_usd(amount).replace("$", r"\$")


def _choose_colour(candidate: Candidate, route: Route) -> str:
    if (candidate.provider, candidate.model) == (route.provider, route.model):
        return CHOSEN_COLOUR
    return DROPPED_COLOUR if candidate.excluded else KEPT_COLOUR
