"""A filter of repeated log lines: the first is written, and later the number of the rest."""

import logging
import re
import time
from dataclasses import dataclass

WINDOW_S = 60.0
MAX_TRACKED_LINES = 1_000
# These loggers need every line, even repeats.
UNFILTERED_LOGGERS = ("toolkit.served",)
# Libraries log other systems' faults, which are no errors of this process, and need no frames.
LIBRARY_LOGGERS = ("opentelemetry", "urllib3")
_VARYING_PARTS = re.compile(r"0x[0-9a-f]+|\b[a-z]{3}_[0-9a-hjkmnp-tv-z]{26}\b|\d+")


@dataclass
class _RepeatedLine:
    """A written line: its time, and the number of repeats left out since."""

    record: logging.LogRecord
    since: float
    repeats: int = 0


class RepeatFilter(logging.Filter):
    """A filter that passes the first of several like lines, and reports the number of repeats.

    The number comes with the next such line after `WINDOW_S` seconds; or with any other line, once
    the condition has been over for that long; or at the end.
    """

    def __init__(self, handler: logging.Handler) -> None:
        super().__init__()
        self._handler = handler
        self._seen_lines: dict[tuple[str, int, str], _RepeatedLine] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Check whether a line is to be written."""
        if record.name in UNFILTERED_LOGGERS:
            return True
        if record.name.startswith(LIBRARY_LOGGERS) and record.levelno > logging.WARNING:
            record.levelno, record.levelname = logging.WARNING, "WARNING"
            record.exc_info = None
        now = time.monotonic()
        self._report_older(now - WINDOW_S)
        key = (record.name, record.levelno, _compute_line_kind(record))
        line = self._seen_lines.get(key)
        if line is not None:
            line.repeats += 1
            return False
        if len(self._seen_lines) < MAX_TRACKED_LINES:
            self._seen_lines[key] = _RepeatedLine(record, now)
        return True

    def close(self) -> None:
        """Report the repeats that have not been reported yet."""
        self._report_older(time.monotonic())

    def _report_older(self, than: float) -> None:
        old_keys = [key for key, condition in self._seen_lines.items() if condition.since <= than]
        for key in old_keys:
            condition = self._seen_lines.pop(key)
            if condition.repeats:
                self._handler.emit(_build_summary(condition))


def _compute_line_kind(record: logging.LogRecord) -> str:
    """Compute the common part of similar lines, without the varying parts."""
    lines = record.getMessage().splitlines() or [""]
    error = record.exc_info[0].__qualname__ if record.exc_info and record.exc_info[0] else ""
    return f"{error} {_VARYING_PARTS.sub('#', lines[0])}"


def _build_summary(condition: _RepeatedLine) -> logging.LogRecord:
    """Build the line again, with the number of repeats that were left out."""
    record = condition.record
    text = (record.getMessage().splitlines() or [""])[0]
    return logging.makeLogRecord(
        {
            "name": record.name,
            "levelno": record.levelno,
            "levelname": record.levelname,
            "msg": "%s (repeated %d times within %d s)",
            "args": (text, condition.repeats, round(time.monotonic() - condition.since)),
        }
    )
