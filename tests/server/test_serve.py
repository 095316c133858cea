"""The socket of `toolkit serve`, its output, its metrics and its traces."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import IO, ClassVar

import httpx
import pytest

from tests.server.conftest import serve_engine
from tests.support.timing import PATIENCE_S, Watch
from toolkit.contract.errors import RequestError, ServiceError
from toolkit.observability import ObservabilityOptions, observe_server
from toolkit.server.listening import bind_socket
from toolkit.settings import Settings


def test_serves_on_loopback_by_default() -> None:
    """Given no address, then the API and its metrics are served on loopback only."""
    from typer.main import get_command

    from toolkit.cli import app

    command = get_command(app).commands["serve"]  # type: ignore[attr-defined]
    defaults = {parameter.name: parameter.default for parameter in command.params}
    assert defaults["host"] == defaults["metrics_host"] == "127.0.0.1"


def test_waits_for_an_address_in_use() -> None:
    """Given an address whose user closes it in a moment, then the server waits for it.

    A killed process leaves its sockets to a child that it was starting, until that child runs.
    """
    holder = socket.create_server(("127.0.0.1", 0))
    port = holder.getsockname()[1]
    with pytest.raises(ServiceError, match=r"cannot listen on .* for metrics"):
        bind_socket("127.0.0.1", port, purpose="metrics", patience_s=0)
    timer = threading.Timer(0.05, holder.close)
    timer.start()
    with bind_socket("127.0.0.1", port, patience_s=PATIENCE_S) as listener:
        assert listener.getsockname()[1] == port
    timer.join()


async def test_sends_answers_without_delay(settings: Settings) -> None:
    """Given a kept connection, then no body waits for the caller to acknowledge its head.

    Linux would delay the body by about 40 ms.
    """
    times_s = []
    async with serve_engine(settings) as http:
        for _ in range(15):
            watch = Watch()
            await http.get("/v1/health")
            times_s.append(watch.measure_elapsed_s())
    assert median(times_s) < 0.03


async def test_answers_an_unfinished_upload_at_shutdown(settings: Settings) -> None:
    """Given an unfinished upload, when the server stops, then its answer is our error."""
    async with serve_engine(settings, grace_s=1.0) as http:
        account = await http.post("/v1/account", json={"email": "ada@example.org"})
        reader, writer = await asyncio.open_connection(http.base_url.host, http.base_url.port)
        head = [
            "POST /v1/artifacts HTTP/1.1",
            "Host: service.test",
            f"Authorization: Bearer {account.json()['data']['api_key']}",
            "Content-Type: text/plain",
            "Content-Length: 1000",
            "Expect: 100-continue",
        ]
        writer.write("".join(f"{line}\r\n" for line in [*head, ""]).encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        writer.write(b"a few bytes")
    answer, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    status, *lines = answer.decode().lower().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert status.startswith("http/1.1 503 ")
    error = json.loads(body)["error"]
    assert error["code"] == "UNAVAILABLE"
    assert error["request_id"].lower() == headers["x-request-id"]
    assert int(headers["retry-after"]) >= 1


class Collector(BaseHTTPRequestHandler):
    """Accepts spans, and records the paths of the requests."""

    paths: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        """Accept a request."""
        self.rfile.read(int(self.headers["content-length"]))
        self.paths.append(self.path)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def serve_command(
    data_dir: Path, *options: str
) -> Iterator[tuple["subprocess.Popen[str]", IO[str], IO[str]]]:
    """Start `toolkit serve`; yield the process, its stdout and its stderr, and stop it."""
    command = [sys.executable, "-m", "toolkit", "serve", "--sandbox", "--port", "0", *options]
    with subprocess.Popen(
        [*command, "--data-dir", str(data_dir)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        yield process, process.stdout, process.stderr


def stop_server(process: "subprocess.Popen[str]", stderr: IO[str]) -> list[dict[str, str]]:
    """Stop a server, and return the rest of its log."""
    process.send_signal(signal.SIGTERM)
    return [json.loads(line) for line in stderr]


def test_serve_reports_its_requests(tmp_path: Path) -> None:
    """Given every option of `toolkit serve`, then log, metrics and spans have each request."""
    collector = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    otel_url = f"http://127.0.0.1:{collector.server_port}"
    options = ("--metrics-port", "0", "--otel-endpoint", otel_url)
    with serve_command(tmp_path, *options) as (process, stdout, stderr):
        metrics_line, started = json.loads(stderr.readline()), json.loads(stderr.readline())
        assert stdout.readline().startswith(f"Serving /v1 on {started['url']} ")
        httpx.get(f"{started['url']}/v1/health", trust_env=False)
        metrics = httpx.get(metrics_line["url"], trust_env=False).text
        assert httpx.get(f"{started['url']}/metrics", trust_env=False).status_code == 404
        lines = stop_server(process, stderr)
    collector.shutdown()
    collector.server_close()
    assert process.returncode == 0
    assert [line["event"] for line in (metrics_line, started)] == ["metrics", "started"]
    assert [line["event"] for line in lines] == ["request", "request", "stopped"]
    assert [line.get("route") for line in lines] == ["/v1/health", "unknown", None]
    assert (
        'toolkit_http_requests_total{method="GET",route="/v1/health",status="200"} 1.0' in metrics
    )
    assert set(Collector.paths) == {"/v1/traces"}


def test_serves_without_a_reader_of_its_output(tmp_path: Path) -> None:
    """Given a server whose stdout was closed before it was ready, then it serves."""
    with serve_command(tmp_path) as (process, stdout, stderr):
        stdout.close()
        started = json.loads(stderr.readline())
        health = httpx.get(f"{started['url']}/v1/health", trust_env=False)
        lines = stop_server(process, stderr)
    assert health.status_code == 200
    assert process.returncode == 0
    assert [line["event"] for line in lines] == ["request", "stopped"]


def test_traces_without_the_extra_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given no OpenTelemetry, when traces are requested, then the error names the extra."""
    monkeypatch.setitem(sys.modules, "toolkit.observability.traces", None)

    async def watch() -> None:
        async with observe_server(ObservabilityOptions(otel_endpoint="http://127.0.0.1:1")):
            pass

    with pytest.raises(RequestError, match=r"capability-toolkit\[otel\]"):
        asyncio.run(watch())
