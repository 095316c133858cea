"""`UsageDashboard`: cost and latency, by day, capability or provider."""

from datetime import UTC, datetime, timedelta
from html import escape
from typing import TYPE_CHECKING

import ipywidgets

from toolkit.client import Client
from toolkit.contract.money import format_usd, sum_usd
from toolkit.contract.usage import UsageLine
from toolkit.display.records.html import render_bar
from toolkit.notebook.widget_base import Panel, make_button, make_labelled, make_row

if TYPE_CHECKING:
    import pandas as pd

USAGE_GROUP_CHOICES = ("day", "capability", "provider")
SPAN_CHOICES = [
    ("today", 1),
    ("the last 7 days", 7),
    ("the last 30 days", 30),
    ("the last 90 days", 90),
]


class UsageDashboard(Panel):
    """Cost and latency as bars, by day, capability or provider.

    Args:
        client: the client whose usage is shown.

    Attributes:
        group, days: the grouping, and the number of days.
        refresh: the button that reads the usage again.
        lines: the usage lines read last.
        chart: the bars, as HTML.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self.lines: list[UsageLine] = []
        self.group = make_labelled(
            ipywidgets.Dropdown, "by", options=USAGE_GROUP_CHOICES, value="capability"
        )
        self.days = make_labelled(ipywidgets.Dropdown, "of", options=SPAN_CHOICES, value=30)
        start_read = self.make_action(self._read_usage)
        self.refresh = make_button("Refresh", "Read the usage again", start_read)
        self.chart = ipywidgets.HTML()
        super().__init__(make_row(self.group, self.days, self.refresh), self.chart)
        for control in (self.group, self.days):
            control.observe(lambda _: start_read(), "value")
        self._read_usage()

    def table(self) -> "pd.DataFrame":
        """Return the displayed usage as a table, one row for each line."""
        from toolkit.display.records.data_frame import to_data_frame

        return to_data_frame(self.lines)

    def snapshot(self) -> str:
        """Return the bars, for a saved notebook."""
        return str(self.chart.value)

    def __repr__(self) -> str:
        jobs = sum(line.jobs for line in self.lines)
        cost = sum_usd(line.cost_usd for line in self.lines)
        return f"<UsageDashboard by {self.group.value}: {jobs} jobs, {format_usd(cost)}>"

    def _read_usage(self) -> None:
        today = datetime.now(UTC).date()
        usage = self._client.usage.list(
            [self.group.value], first=today - timedelta(days=self.days.value - 1), last=today
        )
        self.lines = [line.record for line in usage]
        self.chart.value = self._render_bars()

    def _render_bars(self) -> str:
        """Render a row for each line: cost and job duration, each as a bar and in words."""
        if not self.lines:
            return '<p class="tk-quiet">No usage in this period.</p>'
        group = str(self.group.value)
        means = [line.latency_ms / line.jobs if line.jobs else 0.0 for line in self.lines]
        dearest = max(line.cost_usd for line in self.lines) or 1.0
        slowest = max(means) or 1.0
        rows = "".join(
            f'<tr><th scope="row">{escape(str(getattr(line, group) or "none"))}</th>'
            f"<td>{render_bar(line.cost_usd / dearest)}"
            f"{format_usd(line.cost_usd)}</td>"
            f"<td>{render_bar(mean / slowest)}{mean:.0f} ms</td>"
            f'<td class="tk-number">{line.jobs}</td><td class="tk-number">{line.failed}</td>'
            f'<td class="tk-number">{line.cached}</td></tr>'
            for line, mean in zip(self.lines, means, strict=True)
        )
        names = (group, "cost", "mean time of a job", "jobs", "failed", "cached")
        head = "".join(f'<th scope="col">{name}</th>' for name in names)
        return (
            f'<table class="tk"><caption>{escape(repr(self)[1:-1])}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        )
