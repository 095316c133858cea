"""Canary secrets: put in every place that takes a secret, and searched for in every output."""

import json
import logging
import threading
import traceback
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support.views import render_views
from toolkit import Client, ToolkitError
from toolkit.settings import Settings, VendorSettings

TAIL = "c0ffee5d41402abc4b2a76b9719d911017c592"
VARIABLES = {
    "openai": ("OPENAI_API_KEY", f"sk-proj-{TAIL}1"),
    "anthropic": ("ANTHROPIC_API_KEY", f"sk-ant-{TAIL}2"),
    "google": ("GEMINI_API_KEY", f"AIza{TAIL}3"),
    "minimax": ("MINIMAX_API_KEY", f"eyJhbGciOi{TAIL}4"),
    "elevenlabs": ("ELEVENLABS_API_KEY", f"xi-{TAIL}5"),
    "runpod": ("RUNPOD_API_KEY", f"rpa_{TAIL}6"),
    "aws": (
        "AWS_BEARER_TOKEN_BEDROCK",
        json.dumps({"access_key_id": f"AKIA{TAIL}7", "secret_access_key": f"{TAIL}8"}),
    ),
}
INPUTS = {
    "openai": ("llm.generate", {"objective": "Tea"}),
    "anthropic": ("llm.generate", {"objective": "Tea"}),
    "google": ("llm.generate", {"objective": "Tea"}),
    "minimax": ("speech.generate", {"text": "Tea is served."}),
    "elevenlabs": ("speech.generate", {"text": "Tea is served."}),
    "runpod": ("image.generate", {"prompt": "Tea"}),
    "aws": ("llm.generate", {"objective": "Tea"}),
}


class Echo(BaseHTTPRequestHandler):
    """A vendor that quotes the whole request, headers and body, in its error response."""

    def _answer(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        keys = [value for value in self.headers.values() if TAIL in value]
        quote = f"{' '.join(keys)} {dict(self.headers)} {self.rfile.read(length)!r} {self.path}"
        body = {"error": {"message": quote}, "detail": quote, "message": quote, "title": quote}
        content = json.dumps(body).encode()
        self.send_response(int(self.server.status))  # type: ignore[attr-defined]
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.send_header("x-request-id", quote.encode("ascii", "replace").decode()[:400])
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = _answer  # noqa: N815 - the standard library's names

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def vendor() -> Iterator[ThreadingHTTPServer]:
    """The quoting vendor, on a real socket."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    server.status = 400  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def settings(vendor: ThreadingHTTPServer, tmp_path: Path) -> Settings:
    """Settings with that vendor in place of every vendor."""
    url = f"http://127.0.0.1:{vendor.server_port}"
    reached = VendorSettings(base_urls={"api": url, "jobs": url})
    vendors = dict.fromkeys(VARIABLES, reached)
    return Settings(data_dir=tmp_path / "data", vendors=vendors, retries=0, max_cooldown_wait_s=0)


@pytest.fixture(autouse=True)
def _plant_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, secret in VARIABLES.values():
        monkeypatch.setenv(name, secret)


def read_stored_text(folder: Path) -> str:
    """Return all stored bytes as a text."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return "".join(path.read_bytes().decode("latin-1") for path in files)


@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_leaks_no_secret_anywhere(
    settings: Settings,
    vendor: ThreadingHTTPServer,
    status: int,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Given vendors that quote the key in every error, then no output contains the secret."""
    caplog.set_level(logging.DEBUG)
    vendor.status = status  # type: ignore[attr-defined]
    seen: list[str] = []
    with Client.local(settings=settings) as client:
        seen += [repr(client), str(vars(client))]
        for provider, (name, _) in VARIABLES.items():
            connection = client.connections.create(provider, "environment", name)
            tested = client.connections.test(connection.id)
            seen += [repr(connection), repr(tested), str(tested.to_dict())]
            seen.append(render_views(connection) + render_views(tested))
            capability, fields = INPUTS[provider]
            run = client.runs.create(capability, fields, provider=provider)
            try:
                run.wait(progress="lines")
            except ToolkitError as error:
                seen += traceback.format_exception(error)
            seen += [repr(run), str(run.refresh().to_dict()), render_views(run)]
            seen += [event.model_dump_json() for event in run.events()]
            assert run.status == "failed"
        seen.append(client.connections.discover().to_frame().to_string())
    captured = capsys.readouterr()
    seen += [captured.out, captured.err, caplog.text, read_stored_text(settings.data_dir)]
    assert TAIL not in "".join(seen)


@pytest.mark.parametrize("secret", [value for _, value in VARIABLES.values()])
def test_rejects_a_key_in_place_of_its_name(
    settings: Settings, secret: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Given a key in place of its name, then it is rejected, and neither echoed nor stored."""
    caplog.set_level(logging.DEBUG)
    with Client.local(settings=settings) as client:
        with pytest.raises(ToolkitError) as refused:
            client.connections.create("openai", "environment", secret)
        with pytest.raises(ToolkitError) as unknown:
            client.connections.create("openai", "aws_secrets_manager", secret)
    texts = [str(refused.value), repr(refused.value.details)]
    texts += [str(unknown.value), repr(unknown.value.details)]
    assert TAIL not in "".join([*texts, caplog.text, read_stored_text(settings.data_dir)])


def test_leaks_no_secret_in_a_notebook(settings: Settings, tmp_path: Path) -> None:
    """Given a notebook that connects, runs and fails, then the file contains no secret."""
    url = settings.vendors["openai"].base_urls["api"]
    cells = [
        "from toolkit import Client\n"
        "from toolkit.settings import Settings, VendorSettings\n"
        f"vendors = {{'openai': VendorSettings(base_urls={{'api': {url!r}}})}}\n"
        f"settings = Settings(data_dir={str(tmp_path / 'nb')!r}, vendors=vendors, retries=0)\n"
        "client = Client.local(settings=settings)\nclient",
        "client.connections.connect('openai')",
        "client.connections.test(client.connections.list()[0].id)",
        "run = client.runs.create('llm.generate', {'objective': 'Tea'}, provider='openai')\nrun",
        "run.wait()",
        "run.refresh()",
        "client.close()",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    NotebookClient(notebook, allow_errors=True, timeout=60).execute()
    text = nbformat.writes(notebook)
    assert "PROVIDER_REJECTED" in text
    assert TAIL not in text + read_stored_text(tmp_path / "nb")
