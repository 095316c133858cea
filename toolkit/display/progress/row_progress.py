"""Progress of many rows: one line that is written over, with cost and the time left."""

import sys
import time

from toolkit.display.progress.html import render_bar, render_line
from toolkit.display.progress.places import NotebookScreen, find_place
from toolkit.display.text import format_money

REDRAW_INTERVAL_S = 0.2


class RowProgress:
    """Shows how many rows are done, what they cost and how long the rest may take.

    Args:
        total: how many rows there are.
        limit_usd: the budget over all of them, if there is one.
        is_shown: whether anything is shown.
    """

    def __init__(self, total: int, limit_usd: float | None, *, is_shown: bool = True) -> None:
        self._total = total
        self._limit_usd = limit_usd
        self._is_shown = is_shown
        self._began = time.monotonic()
        self._drawn_at = 0.0
        self._place = find_place()
        self._screen = NotebookScreen()
        self.done = 0
        self.failed = 0
        self.not_begun = 0
        self._paced = 0

    def add(self, spent_usd: float, *, failed: bool, begun: bool, paced: bool) -> None:
        """Count one row that is done.

        Args:
            spent_usd: what all rows cost so far.
            failed: whether it failed.
            begun: whether it was begun at all.
            paced: whether it took its time: a result that was there says nothing of the rest.
        """
        self.done += 1
        self.failed += failed and begun
        self.not_begun += not begun
        self._paced += paced
        at = time.monotonic()
        if self._is_shown and (self.done == self._total or at - self._drawn_at > REDRAW_INTERVAL_S):
            self._drawn_at = at
            self._draw(self.describe(spent_usd))

    def describe(self, spent_usd: float) -> str:
        """Return the line.

        >>> RowProgress(2, 1.0).describe(0.25)
        '0 of 2 rows, $0.25 of $1'
        """
        parts = [f"{self.done} of {self._total} rows"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.not_begun:
            parts.append(f"{self.not_begun} not begun")
        budget = "" if self._limit_usd is None else f" of {format_money(self._limit_usd)}"
        parts.append(f"{format_money(round(spent_usd, 9))}{budget}")
        if self._paced and self.done < self._total:
            pace_s = (time.monotonic() - self._began) / self._paced
            parts.append(f"about {pace_s * (self._total - self.done):.0f} s left")
        return ", ".join(parts)

    def _draw(self, line: str) -> None:
        is_over = self.done == self._total
        if self._place == "notebook" or (self._place == "batch" and is_over):
            bar = render_bar(self.done / self._total, "completed", line, width="100%")
            html = render_line(line) if is_over else render_line(line) + bar
            self._screen.show(line, f'<div style="max-width:60em">{html}</div>')
        elif self._place == "terminal":
            end = "\n" if is_over else ""
            print(f"\r\x1b[K{line}", end=end, file=sys.stderr, flush=True)
        elif self._place == "log" and is_over:
            print(line, file=sys.stderr, flush=True)
