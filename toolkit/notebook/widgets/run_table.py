"""`RunTable`: many runs compared."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import ipywidgets
import traitlets

from toolkit.client import Job, Run
from toolkit.contract.short_tracebacks import ArgumentError
from toolkit.display.records.inputs import describe_input
from toolkit.display.text import format_total
from toolkit.notebook import widget_html
from toolkit.notebook.widget_base import Panel, make_button, make_labelled, make_row

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "id", "capability", "input", "status", "provider", "model", "cost_usd", "latency_ms",
    "queue_ms", "attempts", "cached", "error", "created_at",
)  # fmt: skip


class RunTable(Panel):
    """Runs or jobs in one table, sorted by a column of choice.

    Args:
        runs: handles, such as `client.runs.list()`.

    Attributes:
        order, descending: the sort column and the direction.
        refresh: the button that reads unfinished runs again.
        rows: the table, as HTML.
    """

    order = traitlets.Unicode("created_at")
    descending = traitlets.Bool(True)

    def __init__(self, runs: Iterable[Run | Job]) -> None:
        if not isinstance(runs, Iterable):
            raise ArgumentError(
                f"RunTable takes runs, such as client.runs.list(), not a {type(runs).__name__}"
            )
        self.runs = list(runs)
        columns = [(column.replace("_", " "), column) for column in COLUMNS]
        self.by = make_labelled(ipywidgets.Dropdown, "sort by", options=columns, value=self.order)
        self.falling = ipywidgets.Checkbox(True, description="descending", indent=False)
        self.refresh = make_button(
            "Refresh", "Refresh the runs that had not ended", self.make_action(self._read_runs)
        )
        self.rows = ipywidgets.HTML()
        super().__init__(make_row(self.by, self.falling, self.refresh), self.rows)
        traitlets.link((self.by, "value"), (self, "order"))
        traitlets.link((self.falling, "value"), (self, "descending"))
        self.observe(lambda _: self._show_table(), ["order", "descending"])
        self._show_table()

    def table(self) -> "pd.DataFrame":
        """Return the runs as a table, sorted as shown."""
        import pandas as pd

        return pd.DataFrame(self._sort_rows(), columns=list(COLUMNS))

    def snapshot(self) -> str:
        """Return the table, for a saved notebook."""
        return str(self.rows.value)

    def __repr__(self) -> str:
        way = "descending" if self.descending else "ascending"
        return f"<RunTable {len(self.runs)} runs by {self.order}, {way}>"

    def _sort_rows(self) -> list[dict[str, object]]:
        """Return the sorted rows; unknown values come last, in either direction."""
        facts = [_collect_facts(run) for run in self.runs]
        rows = [row for row in facts if row[self.order] is not None]
        incomplete = [row for row in facts if row[self.order] is None]
        rows.sort(key=lambda row: _make_sort_key(row[self.order]), reverse=self.descending)
        return rows + incomplete

    def _show_table(self) -> None:
        caption = format_total(len(self.runs), "runs")
        self.rows.value = widget_html.render_table(
            self._sort_rows(), COLUMNS, caption, self.order, self.descending
        )

    def _read_runs(self) -> None:
        for run in self.runs:
            if not run.done:
                run.refresh()
        self._show_table()


def _collect_facts(run: Run | Job) -> dict[str, object]:
    record = run.record
    return {
        **{name: getattr(record, name, None) for name in COLUMNS},
        "input": describe_input({"input": record.input, "capability": record.capability})["input"],
        "attempts": len(record.attempts),
        "error": record.error.code if record.error is not None else None,
        "created_at": record.created_at.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3],
    }


def _make_sort_key(value: object) -> tuple[float, str]:
    """Return the sort key of a value: numbers by size, other values by their letters."""
    return (float(value), "") if isinstance(value, int | float) else (0.0, str(value).casefold())
