"""Progress of many rows: one line, drawn in place, with failures, cost and remaining time."""

import sys
import time
from collections import Counter

from toolkit.contract.money import format_usd
from toolkit.display.progress.html import render_line, render_stacked_bar
from toolkit.display.progress.places import NotebookScreen, find_place
from toolkit.display.progress.words import escape_line
from toolkit.display.text import truncate_line

REDRAW_INTERVAL_S = 0.2
MAX_ERROR_CHARACTERS = 240


class RowProgress:
    """Show how many rows are done, why rows failed, and the expected total cost and remaining time.

    At the end, each reason has a line with the first row's error.

    Attributes:
        total: number of rows.
        done: number of rows that have ended.
    """

    def __init__(self, total: int, limit_usd: float | None, *, is_shown: bool = True) -> None:
        self.total = total
        self._limit_usd = limit_usd
        self._is_shown = is_shown
        self._began = time.monotonic()
        self._drawn_at = 0.0
        self._place = find_place()
        self._screen = NotebookScreen()
        self.done = 0
        self._failed: Counter[str] = Counter()  # rows without a value, by their reason
        self._not_begun: Counter[str] = Counter()
        self._errors: dict[str, str] = {}  # the first row's error, by reason
        self._timed_count = 0

    def add(
        self,
        spent_usd: float,
        *,
        is_started: bool,
        is_timed: bool,
        reason: str | None,
        error: str | None,
    ) -> None:
        """Count one finished row.

        Args:
            is_timed: whether the row's time counts; that of an existing result does not.
            reason: reason for a missing value; None if the row has a value.
        """
        self.done += 1
        self._timed_count += is_timed
        if reason is not None:
            (self._failed if is_started else self._not_begun)[reason] += 1
            self._errors.setdefault(reason, error or "")
        at = time.monotonic()
        if self._is_shown and (self.done == self.total or at - self._drawn_at > REDRAW_INTERVAL_S):
            self._drawn_at = at
            self._draw(self.describe(spent_usd))

    def describe(self, spent_usd: float) -> str:
        """Return the progress in one line: rows, failures, cost and remaining time.

        >>> progress = RowProgress(3, 1.0, is_shown=False)
        >>> flags = {"is_started": True, "is_timed": False}
        >>> progress.add(0.25, **flags, reason="INVALID_OUTPUT", error="No JSON.")
        >>> progress.describe(0.25)
        '1 of 3 rows, 1 failed (INVALID_OUTPUT), $0.25 of $1, about $0.75 for all'
        """
        parts = [f"{self.done} of {self.total} rows"]
        for counts, words in ((self._failed, "failed"), (self._not_begun, "not begun")):
            if counts:
                parts.append(f"{counts.total()} {words} ({_list_reasons(counts)})")
        budget = "" if self._limit_usd is None else f" of {format_usd(self._limit_usd)}"
        parts.append(f"{format_usd(round(spent_usd, 9))}{budget}")
        remainder, starts = self.total - self.done, self.done - self._not_begun.total()
        if starts and remainder:
            all_usd = spent_usd + spent_usd / starts * remainder
            parts.append(f"about {format_usd(float(f'{all_usd:.2g}'))} for all")
        if self._timed_count and remainder:
            rate = self._timed_count / max(time.monotonic() - self._began, 1e-3)
            pace = f"{rate:.0f}" if rate >= 10 else f"{rate:.2g}"
            parts.append(f"about {remainder / rate:.0f} s left at {pace} rows/s")
        return ", ".join(parts)

    def _draw(self, line: str) -> None:
        is_over = self.done == self.total
        lines = [line, *(self._list_errors() if is_over else ())]
        if self._place == "notebook" or (self._place == "batch" and is_over):
            failed = self._failed.total() + self._not_begun.total()
            html = "".join(map(render_line, lines))
            if failed or not is_over:
                parts = {"completed": self.done - failed, "failed": failed}
                shares = {state: count / self.total for state, count in parts.items()}
                html += render_stacked_bar(shares, line)
            self._screen.show("\n".join(lines), f'<div style="max-width:60em">{html}</div>')
        elif self._place == "terminal":
            text = "\n".join(map(escape_line, lines))
            print(f"\r\x1b[K{text}", end="\n" if is_over else "", file=sys.stderr, flush=True)
        elif self._place == "log" and is_over:
            print("\n".join(map(escape_line, lines)), file=sys.stderr, flush=True)

    def _list_errors(self) -> list[str]:
        """List the first error of each reason; most errors already begin with their code."""
        return [
            truncate_line(
                error if error.startswith(reason) else f"{reason}: {error}", MAX_ERROR_CHARACTERS
            )
            for reason, error in self._errors.items()
        ]


def show_line(line: str) -> None:
    """Show a line that ends the progress of several parts, at the place of progress."""
    if find_place() in ("notebook", "batch"):
        NotebookScreen().show(line, render_line(line))
    else:
        print(escape_line(line), file=sys.stderr, flush=True)


def _list_reasons(counts: Counter[str]) -> str:
    """List reasons, the most frequent first, with counts if there are several reasons.

    >>> _list_reasons(Counter(["TIMEOUT", "INVALID_OUTPUT", "TIMEOUT"]))
    '2 TIMEOUT, 1 INVALID_OUTPUT'
    """
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{count} {reason}" for reason, count in counts.most_common())
