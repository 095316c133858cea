"""Repeated log lines are written once, with a count, at the right level."""

import io
import json
import logging
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from toolkit.cli import app
from toolkit.observability.logs import configure_logging


def read_lines(stream: io.StringIO) -> list[dict[str, object]]:
    """Read the lines of a log."""
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_counts_repeated_lines() -> None:
    """Given a condition that lasts, such as a lack of descriptors, then one line and a count."""
    stream = io.StringIO()
    with configure_logging(stream, "json", "info"):
        for number in range(5_000):
            try:
                raise OSError(24, "Too many open files")
            except OSError:
                logging.getLogger("asyncio").exception(
                    "socket.accept() out of system resource\nsocket: <fd=%d>", number
                )
    first, last = read_lines(stream)
    assert first["level"] == last["level"] == "error"
    assert first["exception"] == "OSError"
    assert "repeated 4999 times" in str(last["event"])


def test_writes_the_count_every_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a condition that goes on, then it is counted every minute, and starts anew."""
    clock = SimpleNamespace(now=0.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr("toolkit.observability.logs.time", clock)
    stream = io.StringIO()
    with configure_logging(stream, "json", "info"):
        for second in range(130):
            clock.now = float(second)
            logging.getLogger("toolkit.engine").warning("the store does not answer: try %d", second)
    events = [str(line["event"]) for line in read_lines(stream)]
    assert [text.partition("(")[2] for text in events] == [
        "", "repeated 59 times within 60 s)", "", "repeated 59 times within 60 s)", "",
        "repeated 9 times within 9 s)",
    ]  # fmt: skip


def test_keeps_lines_that_differ() -> None:
    """Given lines about different things or requests, then all of them are written."""
    stream = io.StringIO()
    with configure_logging(stream, "json", "info"):
        logging.getLogger("toolkit.engine").warning("a thing")
        logging.getLogger("toolkit.engine").warning("another thing")
        logging.getLogger("toolkit.store").warning("a thing")
        for _ in range(3):
            logging.getLogger("toolkit.served").info("request")
    assert len(read_lines(stream)) == 6


def test_a_lost_collector_is_one_warning() -> None:
    """Given a condition that lasts, a lost collector of traces, then one warning without frames."""
    stream = io.StringIO()
    exporter = logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    with configure_logging(stream, "json", "info"):
        for attempt in range(3):
            try:
                raise ConnectionError("refused")
            except ConnectionError:
                exporter.exception("Failed to export span batch code: %d", attempt)
    lines = read_lines(stream)
    assert [line["level"] for line in lines] == ["warning", "warning"]
    assert "frames" not in lines[0]
    assert "repeated 2 times" in str(lines[1]["event"])


@pytest.mark.parametrize(
    ("option", "status", "code"),
    [("--port=BUSY", 4, "UNAVAILABLE"), ("--trust-proxy=nonsense", 3, "INVALID_REQUEST")],
)
def test_a_failed_start_ends_in_json(option: str, status: int, code: str, tmp_path: Path) -> None:
    """Given logs in JSON and a failed start, then the last line is JSON, and no file is made."""
    command = ["serve", "--sandbox", "--log-format=json", f"--data-dir={tmp_path}/data", "--port=0"]
    with socket.create_server(("127.0.0.1", 0)) as busy:
        option = option.replace("BUSY", str(busy.getsockname()[1]))
        result = CliRunner().invoke(app, [*command, option])
    assert result.exit_code == status
    assert json.loads(result.stderr.splitlines()[-1])["error_code"] == code
    assert not (tmp_path / "data").exists()
