"""Lines of the log, and the values that are never logged."""

import io
import json
import logging
import subprocess
import sys

import pytest

from tests.observability.conftest import SECRET_WORDS, WatchedService
from toolkit.observability.logs import configure_logging, redact_text


async def test_logs_a_request_as_one_line(watched: WatchedService) -> None:
    """Given requests of every kind, then each is one line, with its route instead of its path."""
    before = len(watched.lines("request"))
    answers = [
        await watched.send("GET", "/v1/runs/run_01m7zbdfb0f6pwzs6wqy6wy62s"),
        await watched.send("GET", "/v1/nothing/here"),
        await watched.send("DELETE", "/v1/runs"),
        await watched.send("BREW", "/v1/runs"),
        await watched.http.get("/v1/health"),
    ]
    lines = watched.lines("request")[before:]
    assert [(line["method"], line["route"], line["status"]) for line in lines] == [
        ("GET", "/v1/runs/{id}", 404),
        ("GET", "unknown", 404),
        ("DELETE", "/v1/runs", 405),
        ("OTHER", "/v1/runs", 405),
        ("GET", "/v1/health", 200),
    ]
    for answer, line in zip(answers, lines, strict=True):
        assert line["request_id"] == answer.headers["x-request-id"]
        assert line["bytes_out"] == len(answer.content)
        assert line["duration_ms"] >= 0
    assert lines[0]["account_id"].startswith("acc_")
    assert lines[0]["key_id"].startswith("key_")
    assert "account_id" not in lines[-1]


async def test_logs_a_rejected_caller_without_the_key(watched: WatchedService) -> None:
    """Given a key that is unknown, then its line leads to the caller, and never has the key."""
    key = "sk_live_" + "A" * 39 + "wxyz"
    for sent in (key, "sk-another-vendors-key1"):
        await watched.http.get("/v1/runs", headers={"Authorization": f"Bearer {sent}"})
    await watched.send("GET", "/v1/runs/run_01m7zbdfb0f6pwzs6wqy6wy62s")
    unknown, foreign, missing = watched.lines("request")[-3:]
    assert (unknown["status"], unknown["error_code"]) == (401, "UNAUTHENTICATED")
    assert unknown["key_last4"] == "wxyz"
    assert unknown["peer"] == "127.0.0.1"
    assert key not in watched.stream.getvalue()
    assert "key_last4" not in foreign
    assert missing["error_code"] == "NOT_FOUND"
    assert "peer" not in missing
    assert "error_code" not in watched.lines("request")[0]


async def test_a_broken_upload_is_not_logged_as_an_error(watched: WatchedService) -> None:
    """Given a caller who hangs up in mid-body, then there is one line, and no error."""
    before = len(watched.stream.getvalue().splitlines())
    sent = iter([{"type": "http.request", "body": b"{", "more_body": True}])

    async def receive() -> dict[str, object]:
        return next(sent, {"type": "http.disconnect"})  # type: ignore[arg-type]

    async def send(_message: object) -> None: ...

    headers = {"host": "service.test", "content-type": "application/json", **watched.headers}
    scope = {
        "type": "http", "http_version": "1.1", "method": "POST", "path": "/v1/runs",
        "raw_path": b"/v1/runs", "query_string": b"", "scheme": "http", "client": ("127.0.0.1", 1),
        "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items()],
    }  # fmt: skip
    await watched.app(scope, receive, send)  # type: ignore[arg-type]
    (line,) = map(json.loads, watched.stream.getvalue().splitlines()[before:])
    assert (line["level"], line["status"]) == ("info", 400)


async def test_logs_a_replayed_answer(watched: WatchedService) -> None:
    """Given a request sent twice with an idempotency key, then both lines are alike."""
    run = {"target": "capability", "name": "llm.generate", "input": {"objective": "Tea"}}
    for _ in range(2):
        await watched.send("POST", "/v1/runs", json=run, headers={"Idempotency-Key": "once"})
    first, second = watched.lines("request")[-2:]
    for name in ("route", "status", "account_id", "key_id", "bytes_out"):
        assert first[name] == second[name]


async def test_logs_a_job_as_one_line(watched: WatchedService) -> None:
    """Given a workflow that ended, then each job has a line with its account and its cost."""
    workflow = await watched.chain()
    lines = {line["node_id"]: line for line in watched.lines("job")}
    assert set(lines) == {"text", "voice"}
    for line in lines.values():
        assert line["workflow_id"] == workflow["id"]
        assert line["account_id"].startswith("acc_")
        assert (line["provider"], line["status"], line["attempts"]) == ("minimax", "completed", 1)
        assert line["model"]
        assert line["latency_ms"] >= 0
        assert "error_code" not in line
    cost = sum(line["cost_usd"] for line in lines.values())
    assert cost == pytest.approx(workflow["cost_incurred_usd"])


async def test_logs_the_code_of_a_failed_job(watched: WatchedService) -> None:
    """Given a vendor that rejects a job, then the line has the code, and not the vendor's words."""
    watched.faults.fail("minimax", status=400)
    await watched.chain()
    (line,) = watched.lines("job")
    assert (line["status"], line["error_code"]) == ("failed", "PROVIDER_REJECTED")
    assert line["level"] == "warning"


async def test_logs_no_content_and_no_key(watched: WatchedService) -> None:
    """Given work and requests, then no line has a prompt, an address, a key or a query."""
    await watched.chain(**{"User-Agent": "spoiler/1.0"})
    await watched.send("GET", "/v1/runs", params={"cursor": "spoilers"})
    text = watched.stream.getvalue()
    key = watched.headers["Authorization"].removeprefix("Bearer ")
    # No id has these words by chance, because ids have no i, l, o or u.
    for forbidden in (SECRET_WORDS, "ada@", key, "spoiler", "sandbox-minimax", "a letter"):
        assert forbidden not in text


async def test_logs_an_internal_error_without_its_message(
    watched: WatchedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given an internal error, then its line has the id of the request's line, and no message."""

    def raise_error(_name: str) -> None:
        raise ValueError(SECRET_WORDS)

    monkeypatch.setattr(watched.engine.capabilities, "find", raise_error)
    answer = await watched.send("GET", "/v1/capabilities/llm.generate")
    assert answer.status_code == 500
    line = watched.lines("request")[-1]
    assert (line["status"], line["level"]) == (500, "error")
    (fault,) = watched.lines(f"{line['request_id']} failed")
    assert fault["exception"] == "ValueError"
    assert any(frame.endswith(" raise_error") for frame in fault["frames"])
    assert SECRET_WORDS not in watched.stream.getvalue()


def test_libraries_log_through_the_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given lines of libraries, then they have the same form, without keys."""
    # A server of an earlier test, which `serve` did not start, turned propagation off.
    monkeypatch.setattr(logging.getLogger("uvicorn"), "propagate", True)
    stream = io.StringIO()
    with configure_logging(stream, "json", "info"):
        logging.getLogger("uvicorn.error").warning("Bearer abcdefgh was sent by %s", "a@b.example")
        logging.getLogger("toolkit.engine").info("forged\n\x1b[31mline")
        logging.getLogger("httpx").info("GET https://vendor.example/?key=1")
    # An engine of an earlier test may still write lines.
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert not [line for line in lines if line["logger"] == "httpx"]
    (warning,) = [line for line in lines if line["logger"] == "uvicorn.error"]
    (forged,) = [line for line in lines if "forged" in line["event"]]
    assert (warning["event"], warning["level"]) == ("[redacted] was sent by [redacted]", "warning")
    assert forged["event"] == "forged\\n\\x1b[31mline"


def test_lines_are_coloured_text_on_a_terminal() -> None:
    """Given a terminal, then lines are text in colours; otherwise they are JSON."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, is_json in ((Terminal(), False), (io.StringIO(), True)):
        with configure_logging(stream, "auto", "info"):
            logging.getLogger("toolkit").info("started")
        assert stream.getvalue().startswith("{") is is_json
        assert ("\x1b[" in stream.getvalue()) is not is_json


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("sk-abc123", "[redacted]"),
        ("key=AIzaSyA1234567", "key=[redacted]"),
        ("'Authorization': 'Basic YWRhOng='", "'Authorization': '[redacted]'"),
        ("x" * 40, "[redacted]"),
        ("xi_01m7zbdfb0f6pwzs6wqy6wy62s", "[redacted]"),
        ("job_01m7zbdfb0f6pwzs6wqy6wy62s", "job_01m7zbdfb0f6pwzs6wqy6wy62s"),
        ("toolkit/engine/a.py:120 execute", "toolkit/engine/a.py:120 execute"),
        ("/v1/workflows/{id}/retry", "/v1/workflows/{id}/retry"),
    ],
)
def test_redacts_secrets(text: str, redacted: str) -> None:
    """Given a text, when it is redacted once or twice, then ids and routes stay, keys do not."""
    assert redact_text(text) == redact_text(redacted) == redacted


def test_an_embedded_engine_loads_no_telemetry() -> None:
    """Given an embedded engine, then it adds no log handler and imports no telemetry library."""
    code = """
import logging, sys, tempfile
from toolkit import Client
with Client.local(tempfile.mkdtemp(), sandbox=True) as client:
    client.runs.create("llm.generate", {"objective": "Tea"}).wait(progress=False)
names = ("structlog", "prometheus_client", "opentelemetry.sdk", "toolkit.observability")
print([name for name in names if name in sys.modules], logging.getLogger().handlers)
"""
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert (process.stdout, process.stderr) == ("[] []\n", "")
