"""Log lines: one for each request, one for each job that ended, and the server's start and stop.

Every logger of the process goes through the same pipeline, uvicorn's and the libraries' too.
"""

import logging
import re
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

import structlog
from pydantic_core import to_json

from toolkit.contract.ids import Prefix
from toolkit.contract.jobs import FINAL_STATUSES
from toolkit.contract.key_shapes import looks_like_key
from toolkit.contract.money import to_wire_usd
from toolkit.engine.observer import ObservedJob, Observer
from toolkit.server.middleware.telemetry import HttpExchange

WINDOW_S = 60.0
MAX_TRACKED_LINES = 1_000
# These loggers need every line, even repeats.
UNFILTERED_LOGGERS = ("toolkit.served",)
# Libraries log other systems' faults, which are no errors of this process, and need no frames.
LIBRARY_LOGGERS = ("opentelemetry", "urllib3")
_VARYING_PARTS = re.compile(r"0x[0-9a-f]+|\b[a-z]{3}_[0-9a-hjkmnp-tv-z]{26}\b|\d+")
REDACTED = "[redacted]"
_BEARER = re.compile(r"\b(bearer|basic)\s+[^\s\"',;]+", re.I)
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+")
_WORD = re.compile(r"[^\s\"'`,;:()\[\]{}<>=&?|]+")
# An id that the service made. None of these prefixes is a key's.
_OWN_ID = re.compile(rf"(?:{'|'.join(Prefix)})_[0-7][0-9a-hjkmnp-tv-z]{{25}}")
# A word that is no address: most values of our own lines, such as states and paths.
_SINGLE_WORD = re.compile(r"[A-Za-z0-9_./-]+")
_MAX_CLEAN_TEXTS, _MAX_CLEAN_CHARS = 1_000, 64
# Short texts without anything to redact, because lines repeat the same few. None of them is a
# secret, so they may stay in memory.
_clean_texts: set[str] = set()
LogFormat = Literal["auto", "json", "text"]
LogLevel = Literal["debug", "info", "warning", "error"]
_ROOT_LOGGER = "toolkit"
_SERVED_LOGGER = "toolkit.served"
_PLAIN_TYPES = frozenset({bool, int, float})  # nothing to redact
# Flags for the origin of a record. Our lines leave it out, because finding it takes as long as
# writing a line. Not all versions of Python have each flag.
_ORIGIN_FLAGS = [
    name
    for name in ("logAsyncioTasks", "logMultiprocessing", "logProcesses", "logThreads")
    if hasattr(logging, name)
]
_UNAUTHORIZED = 401
_PEER_LOGGED_STATUSES = frozenset({_UNAUTHORIZED, 403, 429})


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


def redact_text(text: str) -> str:
    """Redact likely keys and addresses; return one line of printable characters.

    >>> redact_text("the key sk-abc123 of ada@example.org was refused")
    'the key [redacted] of [redacted] was refused'
    """
    if text in _clean_texts or _OWN_ID.fullmatch(text):
        return text
    redacted = _redact_anew(text)
    if redacted == text and len(text) <= _MAX_CLEAN_CHARS:
        if len(_clean_texts) >= _MAX_CLEAN_TEXTS:
            _clean_texts.clear()
        _clean_texts.add(text)
    return redacted


def _redact_anew(text: str) -> str:
    if _SINGLE_WORD.fullmatch(text):
        return REDACTED if looks_like_key(text) else text
    text = _EMAIL.sub(REDACTED, _BEARER.sub(REDACTED, text))
    text = _WORD.sub(_redact_word, text)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _redact_word(word: re.Match[str]) -> str:
    return REDACTED if looks_like_key(word[0]) else word[0]


class LogObserver(Observer):
    """An observer that logs a line at the end of each request and each job."""

    def __init__(self) -> None:
        self._logger = logging.getLogger(_SERVED_LOGGER)

    def log_event(self, event: str, **fields: object) -> None:
        """Write a line about the server itself."""
        self._log_fields(logging.INFO, event, fields)

    def log_failure(self, event: str, **fields: object) -> None:
        """Write a line about a failure of the server."""
        self._log_fields(logging.ERROR, event, fields)

    def _log_fields(self, level: int, event: str, fields: dict[str, object]) -> None:
        """Write a line; its fields are the record's message, which `_LineFormatter` reads."""
        if self._logger.isEnabledFor(level):
            fields["event"] = event
            record = logging.LogRecord(_SERVED_LOGGER, level, "", 0, fields, None, None)
            self._logger.handle(record)

    @contextmanager
    def request(self, exchange: HttpExchange) -> Iterator[None]:
        """Log one HTTP exchange (a request and its answer) when it ends."""
        began = time.perf_counter()
        try:
            yield
        finally:
            level = logging.ERROR if exchange.status >= 500 else logging.INFO
            self._log_fields(level, "request", _build_request_fields(exchange, began))

    @contextmanager
    def watch_job(self, observed: ObservedJob) -> Iterator[None]:
        """Log a job when it ends."""
        try:
            yield
        finally:
            # A job left to be resumed has not ended; the process that resumes it logs its end.
            if observed.job.status in FINAL_STATUSES:
                level = logging.WARNING if observed.job.status == "failed" else logging.INFO
                self._log_fields(level, "job", _build_job_fields(observed))


def _build_request_fields(exchange: HttpExchange, began: float) -> dict[str, object]:
    return {
        "method": exchange.method,
        "route": exchange.route,
        "status": exchange.status,
        "error_code": exchange.error_code,
        # For callers without a valid key, so that their operator can be found.
        "peer": exchange.peer if exchange.status in _PEER_LOGGED_STATUSES else None,
        "key_last4": exchange.key_last4 if exchange.status == _UNAUTHORIZED else None,
        "duration_ms": round((time.perf_counter() - began) * 1000, 1),
        "bytes_out": exchange.bytes_out,
        "request_id": exchange.request_id,
        "account_id": exchange.account_id,
        "key_id": exchange.key_id,
    }


def _build_job_fields(observed: ObservedJob) -> dict[str, object]:
    job = observed.job
    return {
        "job_id": job.id,
        "run_id": job.run_id,
        "workflow_id": job.workflow_id,
        "node_id": job.node_id,
        "account_id": observed.account_id,
        "key_id": observed.lease.key_id,
        "capability": job.capability,
        "provider": job.provider,
        "model": job.model,
        "status": job.status,
        "error_code": job.error.code if job.error is not None else None,
        "cost_usd": to_wire_usd(job.cost_incurred_usd),
        "latency_ms": job.latency_ms,
        "queue_ms": job.queue_ms,
        "attempts": len(job.attempts),
        "cached": job.cached,
    }


@contextmanager
def configure_logging(stream: TextIO, form: LogFormat, level: LogLevel) -> Iterator[None]:
    """Have all loggers write to a stream in one format, until the block ends.

    Args:
        form: `auto` is text on a terminal and JSON elsewhere.
        level: minimum level of our own lines; libraries only log warnings.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_LineFormatter(stream, form))
    repeats = RepeatFilter(handler)
    handler.addFilter(repeats)
    root, ours = logging.getLogger(), logging.getLogger(_ROOT_LOGGER)
    before = root.handlers[:], root.level, ours.level
    origins = {name: getattr(logging, name) for name in _ORIGIN_FLAGS}
    vars(logging).update(dict.fromkeys(origins, False))
    root.handlers = [handler]
    root.setLevel("ERROR" if level == "error" else "WARNING")
    ours.setLevel(level.upper())
    logging.captureWarnings(True)
    try:
        yield
    finally:
        repeats.close()
        vars(logging).update(origins)
        logging.captureWarnings(False)
        root.handlers = before[0]
        root.setLevel(before[1])
        ours.setLevel(before[2])


def is_json_format(stream: TextIO, form: LogFormat) -> bool:
    """Check whether lines on a stream are JSON; by `auto` they are, except on a terminal."""
    return form == "json" or (form == "auto" and not stream.isatty())


class _LineFormatter(logging.Formatter):
    """A formatter of all lines: our own come as fields, and the others as a text."""

    def __init__(self, stream: TextIO, form: LogFormat) -> None:
        super().__init__()
        self._render = _build_renderer(stream, form)

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line, with likely secrets redacted."""
        fields: object = record.msg
        if not isinstance(fields, dict):
            fields = {"event": record.getMessage(), **_describe_exception(record)}
        line: dict[str, object] = {}
        for name, value in fields.items():
            if type(value) is str:  # as most are
                line[name] = redact_text(value)
            elif value is not None:
                line[name] = value if type(value) in _PLAIN_TYPES else _redact_value(value)
        line["level"] = record.levelname.lower()
        line["logger"] = record.name
        at = datetime.fromtimestamp(record.created, UTC)
        line["timestamp"] = at.isoformat(timespec="microseconds").replace("+00:00", "Z")
        return self._render(line)


def _build_renderer(stream: TextIO, form: LogFormat) -> Callable[[dict[str, Any]], str]:
    """Build the function that writes the fields of a line as text."""
    if is_json_format(stream, form):
        return lambda line: to_json(line, fallback=str).decode()
    console = structlog.dev.ConsoleRenderer(colors=stream.isatty(), sort_keys=False)
    return lambda line: console(None, "", line)


def _describe_exception(record: logging.LogRecord) -> dict[str, object]:
    """Return the class and the frames of an exception, but not its text: it may hold a secret."""
    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        return {}
    frames = traceback.extract_tb(error.__traceback__)
    return {
        "exception": type(error).__qualname__,
        "frames": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames],
    }


def _redact_value(value: object) -> object:
    match value:
        case str():
            return redact_text(value)
        case bool() | int() | float() | None:
            return value
        case list() | tuple():
            return [_redact_value(element) for element in value]
        case dict():
            return {str(name): _redact_value(element) for name, element in value.items()}
    return redact_text(str(value))
