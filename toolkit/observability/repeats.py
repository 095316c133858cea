"""A filter of repeated log lines: the first is written, and later the number of the rest."""

import logging
import re
import time

WINDOW_S = 60.0
MAX_CONDITIONS = 1_000
# These loggers need every line, however alike they are.
COUNTED_ELSEWHERE = ("toolkit.served",)
# Libraries log other systems' faults, which are no errors of this process, and need no frames.
OTHERS = ("opentelemetry", "urllib3")
_VARYING = re.compile(r"0x[0-9a-f]+|\b[a-z]{3}_[0-9a-hjkmnp-tv-z]{26}\b|\d+")


class _Condition:
    """A line that was written: when, and how many repeats were left out since."""

    def __init__(self, record: logging.LogRecord, now: float) -> None:
        self.record = record
        self.since = now
        self.again = 0


class Repeats(logging.Filter):
    """A filter that lets the first of several like lines through, and reports how many followed.

    The number comes with the next such line after `WINDOW_S` seconds, or once the condition has
    been over for that long and anything else is told, or at the end.
    """

    def __init__(self, handler: logging.Handler) -> None:
        super().__init__()
        self._handler = handler
        self._told: dict[tuple[str, int, str], _Condition] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a line is to be written."""
        if record.name in COUNTED_ELSEWHERE:
            return True
        if record.name.startswith(OTHERS) and record.levelno > logging.WARNING:
            record.levelno, record.levelname = logging.WARNING, "WARNING"
            record.exc_info = None
        now = time.monotonic()
        self._tell_older(now - WINDOW_S)
        key = (record.name, record.levelno, _kind_of(record))
        known = self._told.get(key)
        if known is not None:
            known.again += 1
            return False
        if len(self._told) < MAX_CONDITIONS:
            self._told[key] = _Condition(record, now)
        return True

    def close(self) -> None:
        """Report the repeats that have not been reported yet."""
        self._tell_older(time.monotonic())

    def _tell_older(self, than: float) -> None:
        over = [key for key, condition in self._told.items() if condition.since <= than]
        for key in over:
            condition = self._told.pop(key)
            if condition.again:
                self._handler.emit(_summary(condition))


def _kind_of(record: logging.LogRecord) -> str:
    """Compute what like lines have in common, without what varies."""
    lines = record.getMessage().splitlines() or [""]
    error = record.exc_info[0].__qualname__ if record.exc_info and record.exc_info[0] else ""
    return f"{error} {_VARYING.sub('#', lines[0])}"


def _summary(condition: _Condition) -> logging.LogRecord:
    """Build the line once more, with the number of repeats that were left out."""
    told = condition.record
    text = (told.getMessage().splitlines() or [""])[0]
    return logging.makeLogRecord(
        {
            "name": told.name,
            "levelno": told.levelno,
            "levelname": told.levelname,
            "msg": "%s (%d times more within %d s)",
            "args": (text, condition.again, round(time.monotonic() - condition.since)),
        }
    )
