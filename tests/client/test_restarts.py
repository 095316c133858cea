"""A server that is started again: whoever waits goes on, and ends as the work does."""

import json
import logging
import ssl
import threading
from collections.abc import Callable, Iterator
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
    """A server that is away from when a vendor is asked until a client has noticed."""

    def __init__(self, settings: Settings, notices: pytest.LogCaptureFixture) -> None:
        # The call that hangs is to be the work's.
        self.settings = settings.model_copy(update={"connection_test_s": 0.0})
        self.faults = Faults()
        self.faults.add(Fault("minimax", mangle="hang", times=1))
        self.server: Server | None = Server(self.settings, self.faults)
        self.url, self.port = self.server.url, self.server.port
        self._notices = notices
        with Client(self.url) as client:
            self.key = client.account.create("ada@example.org").api_key
        with self.client() as client:
            client.connections.connect("minimax")

    def client(self, **options: float) -> Client:
        """A client of it."""
        return Client(self.url, self.key, **options)

    def stop(self) -> None:
        """Have it gone."""
        if self.server is not None:
            self.server.close()
            self.server = None

    def start(self) -> None:
        """Have it back."""
        self.server = Server(self.settings, self.faults, port=self.port)

    def restart(self) -> None:
        """Stop once the vendor is asked, and start once a client tries again."""
        wait_until(lambda: self.faults.calls)
        self.stop()
        wait_until(lambda: "Retrying for up to" in self._notices.text)
        self.start()


@pytest.fixture
def restarts(settings: Settings, caplog: pytest.LogCaptureFixture) -> Iterator[Restarts]:
    """A server with an account, whose vendor does not answer its first call."""
    caplog.set_level(logging.WARNING, "toolkit.client")
    made = Restarts(settings, caplog)
    yield made
    made.stop()


def beside(restarts: Restarts, work: Callable[[], object]) -> None:
    """Restart the server while something waits on another thread."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    restarts.restart()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert raised == []


def toolkit(restarts: Restarts, *line: str) -> Result:
    """Run a command as a client of the server, and return its output."""
    environment = {"TOOLKIT_API_KEY": restarts.key, "TOOLKIT_BASE_URL": restarts.url}
    return CliRunner().invoke(app, list(line), env=environment)


@pytest.mark.parametrize("how", ["run", "runs wait", "runs events", "wait"])
def test_whoever_waits_sits_out_a_restart(restarts: Restarts, how: str) -> None:
    """Given a server that is started again, then each client that waits ends as the work does."""
    told: list[Result] = []

    def wait() -> None:
        if how == "run":
            told.append(toolkit(restarts, "run", "llm.generate", *_words(ASK)))
            return
        with restarts.client() as client:
            run = client.runs.create("llm.generate", ASK)
            if how == "wait":
                assert run.wait(progress=False).output["text"]
                return
        told.append(toolkit(restarts, *how.split(), run.id, *_follow(how)))

    beside(restarts, wait)
    with restarts.client() as client:
        (run,) = client.runs.list()
    assert run.status == "completed"
    for shown in told:
        assert shown.exit_code == 0, shown.output
        if how == "runs events":
            numbers = [int(line.split()[0]) for line in shown.stdout.splitlines()]
            assert numbers == list(range(1, len(numbers) + 1))
            assert "completed" in shown.stdout
        elif how == "run":
            assert json.loads(shown.stdout) == run.output
            assert shown.stderr.splitlines()[0] == run.id
    assert [attempt.status for attempt in run.attempts] == ["interrupted", "completed"]


def _words(fields: dict[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in fields.items()]


def _follow(how: str) -> list[str]:
    return ["--follow"] if how == "runs events" else []


def test_new_work_waits_for_a_server_that_is_away(
    restarts: Restarts, caplog: pytest.LogCaptureFixture
) -> None:
    """Given a server that is away, when work is asked for, then it is done once it is back."""
    restarts.stop()
    restarts.faults.clear()
    made: list[str] = []

    def ask() -> None:
        with restarts.client() as client:
            made.append(client.runs.create("llm.generate", ASK).wait(progress=False).status)

    thread = threading.Thread(target=ask)
    thread.start()
    wait_until(lambda: "Retrying for up to" in caplog.text)
    restarts.start()
    thread.join(PATIENCE_S)
    assert made == ["completed"]


def test_a_server_that_stays_away(restarts: Restarts) -> None:
    """Given a server that does not come back, then the id is told, and whose fault it is."""
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
            same.wait(0.1, progress=False)  # its own limit is kept
    shown = toolkit(restarts, "runs", "show", run.id, "--max-wait", "0")
    assert isinstance(shown.exception, ServiceError)


@contextmanager
def serve_https(folder: Path) -> Iterator[tuple[str, Path]]:
    """Health and account behind TLS, by a certificate nobody vouches for; its URL and that."""
    certificate, key = make_certificate(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            account = {
                "id": "acc_x",
                "email": "ada@example.org",
                "created_at": "2026-11-20T08:00Z",
                "key": {"id": "key_x", "scopes": ["admin"]},
            }
            told = {**Health(version="1").model_dump(mode="json"), **account}
            body = json.dumps({"data": told}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"https://127.0.0.1:{server.server_port}", certificate
        server.shutdown()


@pytest.mark.parametrize("how", ["cacert", "--cacert", "SSL_CERT_FILE"])
def test_a_certificate_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Given a certificate that nobody vouches for, then the error says how to, and it works."""
    with serve_https(tmp_path) as (url, cacert):
        with pytest.raises(ServiceError, match="--cacert") as refused, Client(url, "k") as client:
            client.health()
        assert "\n" not in str(refused.value)
        if how == "--cacert":
            shown = CliRunner().invoke(app, ["health", "--base-url", url, how, str(cacert)])
            assert shown.exit_code == 0, shown.output
            return
        if how == "SSL_CERT_FILE":
            monkeypatch.setenv(how, str(cacert))
        with Client(url, "k", cacert=cacert if how == "cacert" else None) as client:
            assert client.health().status == "ok"


def test_a_profile_keeps_its_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a login with `--cacert`, then commands and clients use it, wherever they are."""
    monkeypatch.setenv("TOOLKIT_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    with serve_https(tmp_path) as (url, cacert):
        line = ["login", url, "--key-store", "file"]
        key = "sk_live_x\n"
        done = CliRunner().invoke(app, [*line, "--cacert", cacert.name], input=key)
        assert done.exit_code == 0, done.output
        monkeypatch.chdir("config")
        assert CliRunner().invoke(app, line, input=key).exit_code == 0  # a new key alone
        assert CliRunner().invoke(app, ["health"], catch_exceptions=False).exit_code == 0
        with Client(profile="default") as client:
            assert client.health().status == "ok"


@pytest.mark.parametrize("how", ["cacert", "SSL_CERT_FILE"])
def test_certificates_that_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Given a file that is not there or holds no certificate, then it is named."""
    (tmp_path / "key.pem").write_text("sk_live_", encoding="utf-8")
    for name in ("key.pem", "no.pem"):
        path = tmp_path / name
        if how == "SSL_CERT_FILE":
            monkeypatch.setenv(how, str(path))
        with pytest.raises(RequestError, match=name):
            Client("https://service.test", "k", cacert=path if how == "cacert" else None)
