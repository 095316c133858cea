"""The progress of a batch: a bar on a terminal, and elsewhere a line every few seconds."""

import sys
import time
from typing import Self, TextIO

from toolkit.batch.table import RowOutcome

LINE_INTERVAL_S = 5.0


class BatchProgress:
    """A display on standard error of completed and failed rows, and of the remaining time."""

    def __init__(self, total: int, *, is_shown: bool = True, stream: TextIO | None = None) -> None:
        self._total = total
        self._is_shown = is_shown and total > 0
        self._stream = stream or sys.stderr
        self._bar = self._is_shown and self._stream.isatty()
        self._started = self._line_written_at = time.monotonic()
        self._count = self._failures = 0

    def __enter__(self) -> Self:
        if self._bar:
            self._write_line("\r")
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._stream.write("\n")
            self._stream.flush()

    def add(self, outcome: RowOutcome) -> None:
        """Count a notebook that has ended; a failure is shown at once."""
        self._count += 1
        self._failures += outcome.status == "failed"
        if not self._is_shown:
            return
        now = time.monotonic()
        if outcome.status == "failed":
            self._print_text(f"{outcome.path}: {outcome.error}")
        if self._bar:
            self._write_line("\r")
        elif now - self._line_written_at >= LINE_INTERVAL_S or self._count == self._total:
            self._line_written_at = now
            self._write_line("", "\n")

    def format_line(self) -> str:
        """Return the progress in one line: rows, failures, time and remaining time."""
        spent = time.monotonic() - self._started
        remaining = spent / self._count * (self._total - self._count) if self._count else None
        failed = f", {self._failures} failed" if self._failures else ""
        estimate = f", {_format_duration(remaining)} left" if remaining else ""
        return f"{self._count}/{self._total}{failed}, {_format_duration(spent)}{estimate}"

    def _print_text(self, text: str) -> None:
        clear = "\r\x1b[2K" if self._bar else ""
        self._stream.write(f"{clear}{text}\n")

    def _write_line(self, before: str, after: str = "") -> None:
        bar = ""
        if self._bar:
            full = 24 * self._count // self._total
            bar = f"\x1b[2K[{'█' * full}{' ' * (24 - full)}] "
        self._stream.write(f"{before}{bar}{self.format_line()}{after}")
        self._stream.flush()


def _format_duration(seconds: float) -> str:
    minutes, remainder = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {remainder:02} s" if minutes else f"{remainder} s"
