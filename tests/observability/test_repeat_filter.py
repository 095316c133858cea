"""Conditions that last are told once, with a count, at the right level."""

import io
import json
import logging
from pathlib import Path
from types import SimpleNamespace

import pytest

from toolkit.observability.logs import configure_logging


def read_lines(stream: io.StringIO) -> list[dict[str, object]]:
    """The lines that were written."""
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_condition_is_told_once_with_a_count() -> None:
    """Given a loop that is out of file descriptors, then one line and a count."""
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


def test_a_count_comes_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a condition that goes on, then it is counted every minute, and begins anew."""
    clock = SimpleNamespace(now=0.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr("toolkit.observability.repeat_filter.time", clock)
    stream = io.StringIO()
    with configure_logging(stream, "json", "info"):
        for second in range(130):
            clock.now = float(second)
            logging.getLogger("toolkit.engine").warning("the store does not answer: try %d", second)
    told = [str(line["event"]) for line in read_lines(stream)]
    assert [text.partition("(")[2] for text in told] == [
        "", "repeated 59 times within 60 s)", "", "repeated 59 times within 60 s)", "",
        "repeated 9 times within 9 s)",
    ]  # fmt: skip


def test_what_differs_is_told_apart() -> None:
    """Given lines about different things, then none is held back, and no request's ever is."""
    stream = io.StringIO()
    with configure_logging(stream, "json", "info"):
        logging.getLogger("toolkit.engine").warning("a thing")
        logging.getLogger("toolkit.engine").warning("another thing")
        logging.getLogger("toolkit.store").warning("a thing")
        for _ in range(3):
            logging.getLogger("toolkit.served").info("request")
    assert len(read_lines(stream)) == 6


def test_a_collector_that_is_away_is_a_warning() -> None:
    """Given a lost collector of traces, then it is one warning without frames."""
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


@pytest.mark.parametrize("taken", ["a port", "a proxy"])
def test_a_failed_start_ends_in_json(
    taken: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given logs in JSON, then the last line says so too; nothing was made in the directory."""
    import socket

    from typer.testing import CliRunner

    from toolkit.cli import app

    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = str(busy.getsockname()[1]) if taken == "a port" else "0"
        proxy = ["--trust-proxy", "nonsense"] if taken == "a proxy" else []
        done = CliRunner().invoke(
            app,
            ["serve", "--sandbox", "--data-dir", str(tmp_path / "data"), "--log-format", "json",
             "--port", port, *proxy],
        )  # fmt: skip
    assert done.exit_code == (4 if taken == "a port" else 3)
    last = json.loads(done.stderr.splitlines()[-1])
    expected = ("UNAVAILABLE", "listen on") if taken == "a port" else ("INVALID_REQUEST", "proxy")
    assert last["error_code"] == expected[0]
    assert expected[1] in last["message"]
    assert not (tmp_path / "data").exists()
