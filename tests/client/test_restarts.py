"""A server that restarts while clients wait, and certificates of its own."""

import json
import logging
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.conftest import Server
from tests.support.socket_server import make_certificate
from tests.support.timing import PATIENCE_S, wait_until
from toolkit import Client
from toolkit.cli import app
from toolkit.cli.errors import find_exit_code
from toolkit.contract.errors import RequestError, ServiceError
from toolkit.contract.health import Health
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings

ASK = {"objective": "One line on tides"}


class Restarts:
    """A server that stops during a vendor's call, and starts after a client has noticed."""

    def __init__(self, settings: Settings, notices: pytest.LogCaptureFixture) -> None:
        self.settings = settings
        self.faults = Faults()
        self.faults.add(Fault("minimax", mangle="hang", times=1))
        self.server: Server | None = Server(self.settings, self.faults)
        self.url, self.port = self.server.url, self.server.port
        self.key = self.server.sign_up("minimax")
        self._notices = notices

    def client(self, **options: float) -> Client:
        """Open a client of the server."""
        return Client(self.url, self.key, **options)

    def stop(self) -> None:
        """Stop the server if it runs."""
        if self.server is not None:
            self.server.close()
            self.server = None

    def start(self) -> None:
        """Start the server after a client has noticed that it is away."""
        wait_until(lambda: "Retrying for up to" in self._notices.text)
        self.server = Server(self.settings, self.faults, port=self.port)


@pytest.fixture
def restarts(settings: Settings, caplog: pytest.LogCaptureFixture) -> Iterator[Restarts]:
    """A server with an account, whose vendor does not answer the first call."""
    caplog.set_level(logging.WARNING, "toolkit.client")
    restarts = Restarts(settings, caplog)
    yield restarts
    restarts.stop()


def toolkit(restarts: Restarts, *line: str) -> Result:
    """Run a command as a client of the server, and return its result."""
    environment = {"TOOLKIT_API_KEY": restarts.key, "TOOLKIT_BASE_URL": restarts.url}
    return CliRunner().invoke(app, list(line), env=environment)


@pytest.mark.parametrize("how", ["run", "runs wait", "runs events", "wait"])
def test_waiting_clients_survive_a_restart(restarts: Restarts, how: str) -> None:
    """Given a server that restarts, then each waiting client or command ends with its run."""

    def wait() -> Result | None:
        if how == "run":
            return toolkit(restarts, "run", "llm.generate", f"objective={ASK['objective']}")
        with restarts.client() as client:
            run = client.runs.create("llm.generate", ASK)
            if how == "wait":
                assert run.wait(progress=False).output["text"]
                return None
        follow = ["--follow"] if how == "runs events" else []
        return toolkit(restarts, *how.split(), run.id, *follow)

    with ThreadPoolExecutor(1) as executor:
        waiting = executor.submit(wait)
        wait_until(lambda: restarts.faults.calls)
        restarts.stop()
        restarts.start()
        result = waiting.result(PATIENCE_S)
    with restarts.client() as client:
        (run,) = client.runs.list()
    assert [attempt.status for attempt in run.attempts] == ["interrupted", "completed"]
    assert run.status == "completed"
    if result is not None:
        assert result.exit_code == 0, result.output
        if how == "runs events":
            numbers = [int(line.split()[0]) for line in result.stdout.splitlines()]
            assert numbers == list(range(1, len(numbers) + 1))
            assert "completed" in result.stdout
        elif how == "run":
            assert json.loads(result.stdout) == run.output
            assert result.stderr.splitlines()[0] == run.id


def test_new_run_waits_for_a_server_that_is_away(restarts: Restarts) -> None:
    """Given a server that is away, when a run is created, then it completes after the start."""
    restarts.stop()
    restarts.faults.clear()
    with restarts.client() as client, ThreadPoolExecutor(1) as executor:
        creation = executor.submit(client.runs.create, "llm.generate", ASK)
        restarts.start()
        assert creation.result(PATIENCE_S).wait(progress=False).status == "completed"


def test_raises_if_a_server_stays_away(restarts: Restarts) -> None:
    """Given a server that stays away, then clients and commands raise in time."""
    with restarts.client(max_wait_s=0.0) as client, restarts.client() as patient:
        run = client.runs.create("llm.generate", ASK)
        same = patient.runs.get(run.id)
        restarts.stop()
        with pytest.raises(ServiceError) as away:
            run.wait(progress=False)
        assert (away.value.is_away, find_exit_code(away.value)) == (True, 4)
        with pytest.raises(ServiceError):
            patient.health()  # at once
        with pytest.raises(ServiceError):
            same.wait(0.1, progress=False)
    result = toolkit(restarts, "runs", "show", run.id, "--max-wait", "0")
    assert isinstance(result.exception, ServiceError)


@contextmanager
def serve_https(folder: Path) -> Iterator[tuple[str, Path]]:
    """Serve health and account with a self-signed certificate; yield the URL and certificate."""
    certificate, key = make_certificate(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            account = {
                "id": "acc_x",
                "email": "ada@example.org",
                "created_at": "2026-11-20T08:00Z",
                "key": {"id": "key_x", "scopes": ["admin"]},
            }
            data = {**Health(version="1").model_dump(mode="json"), **account}
            body = json.dumps({"data": data}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"https://127.0.0.1:{server.server_port}", certificate
        server.shutdown()


@pytest.mark.parametrize("how", ["cacert", "--cacert", "SSL_CERT_FILE"])
def test_accepts_a_self_signed_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Given a self-signed certificate, then the error names `--cacert`, and each option works."""
    with serve_https(tmp_path) as (url, cacert):
        with pytest.raises(ServiceError, match="--cacert") as refused, Client(url, "k") as client:
            client.health()
        assert "\n" not in str(refused.value)
        if how == "--cacert":
            result = CliRunner().invoke(app, ["health", "--base-url", url, how, str(cacert)])
            assert result.exit_code == 0, result.output
            return
        if how == "SSL_CERT_FILE":
            monkeypatch.setenv(how, str(cacert))
        with Client(url, "k", cacert=cacert if how == "cacert" else None) as client:
            assert client.health().status == "ok"


def test_profile_keeps_its_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a login with `--cacert`, then commands and clients use it, in any folder."""
    monkeypatch.setenv("TOOLKIT_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    with serve_https(tmp_path) as (url, cacert):
        line = ["login", url, "--key-store", "file"]
        key = "sk_live_x\n"
        result = CliRunner().invoke(app, [*line, "--cacert", cacert.name], input=key)
        assert result.exit_code == 0, result.output
        monkeypatch.chdir("config")
        assert CliRunner().invoke(app, line, input=key).exit_code == 0  # a new key alone
        assert CliRunner().invoke(app, ["health"], catch_exceptions=False).exit_code == 0
        with Client(profile="default") as client:
            assert client.health().status == "ok"


@pytest.mark.parametrize("how", ["cacert", "SSL_CERT_FILE"])
def test_rejects_invalid_certificates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Given a missing file or one without a certificate, then the error names it."""
    (tmp_path / "key.pem").write_text("sk_live_", encoding="utf-8")
    for name in ("key.pem", "no.pem"):
        path = tmp_path / name
        if how == "SSL_CERT_FILE":
            monkeypatch.setenv(how, str(path))
        with pytest.raises(RequestError, match=name):
            Client("https://service.test", "k", cacert=path if how == "cacert" else None)
