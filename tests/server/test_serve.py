"""The socket that `toolkit serve` listens on, and what it shows."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import ClassVar

import httpx
import pytest

from tests.server.conftest import serve_engine
from tests.support.timing import PATIENCE_S, Watch
from toolkit.contract.errors import RequestError, ServiceError
from toolkit.observability import ObservabilityOptions, observe_server
from toolkit.server.listening import bind_socket
from toolkit.settings import Settings


def test_it_listens_on_loopback_unless_told() -> None:
    """Given no address, then the API and its metrics are served on loopback alone."""
    from typer.main import get_command

    from toolkit.cli import app

    command = get_command(app).commands["serve"]  # type: ignore[attr-defined]
    defaults = {parameter.name: parameter.default for parameter in command.params}
    assert defaults["host"] == defaults["metrics_host"] == "127.0.0.1"


def test_an_address_of_one_who_has_just_gone_is_had() -> None:
    """Given an address whose holder lets go in a moment, then it is waited for.

    A killed process leaves its sockets to a child that it was starting, until that child runs.
    """
    holder = socket.create_server(("127.0.0.1", 0))
    port = holder.getsockname()[1]
    with pytest.raises(ServiceError, match=r"cannot listen on .* for metrics"):
        bind_socket("127.0.0.1", port, purpose="metrics", patience_s=0)
    leaving = threading.Timer(0.05, holder.close)
    leaving.start()
    with bind_socket("127.0.0.1", port, patience_s=PATIENCE_S) as listener:
        assert listener.getsockname()[1] == port
    leaving.join()


async def test_answers_are_sent_at_once(settings: Settings) -> None:
    """Given a connection that is kept, then no answer waits for the caller to acknowledge its head.

    Linux would hold the body back for some 40 ms.
    """
    took = []
    async with serve_engine(settings) as http:
        for _ in range(15):
            watch = Watch()
            await http.get("/v1/health")
            took.append(watch.measure_elapsed_s())
    assert median(took) < 0.03


async def test_a_request_that_is_cut_off_at_the_end_is_told_so(settings: Settings) -> None:
    """Given an upload that is not there in time, when the server ends, then its answer is ours."""
    async with serve_engine(settings, grace_s=1.0) as http:
        made = await http.post("/v1/account", json={"email": "ada@example.org"})
        reader, writer = await asyncio.open_connection(http.base_url.host, http.base_url.port)
        await begin_upload(reader, writer, made.json()["data"]["api_key"])
    answer, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    status, *lines = answer.decode().lower().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert status.startswith("http/1.1 503 ")
    error = json.loads(body)["error"]
    assert error["code"] == "UNAVAILABLE"
    assert error["request_id"].lower() == headers["x-request-id"]
    assert int(headers["retry-after"]) >= 1


async def begin_upload(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: str
) -> None:
    """Send an upload but for most of its body, once the server has begun to read it."""
    head = [
        "POST /v1/artifacts HTTP/1.1",
        "Host: service.test",
        f"Authorization: Bearer {key}",
        "Content-Type: text/plain",
        "Content-Length: 1000",
        "Expect: 100-continue",
    ]
    writer.write("".join(f"{line}\r\n" for line in [*head, ""]).encode())
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
    writer.write(b"a few bytes")


class Collector(BaseHTTPRequestHandler):
    """Takes spans, and remembers where they were sent."""

    paths: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        """Take what is sent."""
        self.rfile.read(int(self.headers["content-length"]))
        self.paths.append(self.path)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_the_command_shows_what_it_is_asked_to(tmp_path: Path) -> None:
    """Given every option of `toolkit serve`, then lines, metrics and spans tell of a request."""
    collector = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    command = [
        *(sys.executable, "-m", "toolkit", "serve", "--sandbox", "--port", "0"),
        *("--data-dir", str(tmp_path), "--metrics-port", "0"),
        *("--otel-endpoint", f"http://127.0.0.1:{collector.server_port}"),
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as served:
        assert served.stdout is not None
        assert served.stderr is not None
        shown = json.loads(served.stderr.readline())
        started = json.loads(served.stderr.readline())
        assert served.stdout.readline().startswith(f"Serving /v1 on {started['url']} ")
        httpx.get(f"{started['url']}/v1/health", trust_env=False)
        metrics = httpx.get(shown["url"], trust_env=False).text
        assert httpx.get(f"{started['url']}/metrics", trust_env=False).status_code == 404
        served.send_signal(signal.SIGTERM)
        lines = [json.loads(line) for line in served.stderr]
    collector.shutdown()
    collector.server_close()
    assert served.returncode == 0
    assert [line["event"] for line in (shown, started)] == ["metrics", "started"]
    assert [line["event"] for line in lines] == ["request", "request", "stopped"]
    assert [line.get("route") for line in lines] == ["/v1/health", "unknown", None]
    assert (
        'toolkit_http_requests_total{method="GET",route="/v1/health",status="200"} 1.0' in metrics
    )
    assert set(Collector.paths) == {"/v1/traces"}


def test_a_server_whose_lines_nobody_reads_goes_on(tmp_path: Path) -> None:
    """Given a server whose output was closed before it was ready, then it serves all the same."""
    command = [sys.executable, "-m", "toolkit", "serve", "--sandbox", "--port", "0"]
    with subprocess.Popen(
        [*command, "--data-dir", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as served:
        assert served.stdout is not None
        assert served.stderr is not None
        served.stdout.close()
        started = json.loads(served.stderr.readline())
        health = httpx.get(f"{started['url']}/v1/health", trust_env=False)
        served.send_signal(signal.SIGTERM)
        lines = [json.loads(line) for line in served.stderr]
    assert health.status_code == 200
    assert served.returncode == 0
    assert [line["event"] for line in lines] == ["request", "stopped"]


def test_traces_without_the_extra_are_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given no OpenTelemetry, when traces are asked for, then the answer says what to install."""
    monkeypatch.setitem(sys.modules, "toolkit.observability.traces", None)

    async def watch() -> None:
        async with observe_server(ObservabilityOptions(otel_endpoint="http://127.0.0.1:1")):
            pass

    with pytest.raises(RequestError, match=r"capability-toolkit\[otel\]"):
        asyncio.run(watch())
