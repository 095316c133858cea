"""The page for operators, checked against the settings and a real nginx."""

import re
import sqlite3
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.conftest import Server
from tests.support.code_blocks import ROOT, find_blocks
from tests.support.nginx import NGINX, run_nginx
from tests.support.ports import free_port
from tests.support.rehearsal import type_commands
from tests.support.timing import PATIENCE_S
from toolkit.settings import Settings
from toolkit.store.schema import HEAD_REVISION, read_schema_version

PAGE_FILE = ROOT / "docs" / "self-hosting.md"
PAGE = PAGE_FILE.read_text(encoding="utf-8")
EVERY_PROGRAM = {"--help", "--upgrade"}  # not options of ours
CALLERS = {"api_key", "base_url"}  # variables of the callers of a server
CARD = {"target": "capability", "name": "composition.layout", "input": {"title": "Tea"}}


def test_page_names_existing_settings() -> None:
    """Given a name that the page calls a setting, then it is a setting, and each option exists."""
    from typer.main import get_command

    from toolkit.cli import app

    names = set(re.findall(r"setting\s+`(\w+)`", PAGE)) | set(
        re.findall(r"TOOLKIT_([A-Z_]+)=", PAGE)
    )
    assert len(names) >= 3
    assert {name.lower() for name in names} - CALLERS <= set(Settings.model_fields)
    commands = list(get_command(app).commands.values())  # type: ignore[attr-defined]
    commands += [child for group in commands for child in getattr(group, "commands", {}).values()]
    options = {
        option
        for command in commands
        for param in command.params
        for option in (*param.opts, *param.secondary_opts)
    }
    assert set(re.findall(r"(--[a-z][a-z-]*)", PAGE)) - EVERY_PROGRAM <= options


def rehearsal(folder: Path) -> str:
    """Return the page's commands as one script, with paths and a port of the test."""
    typed = [block.code for block in find_blocks(PAGE_FILE, "bash") if block.reason is None]
    script = "\n".join(typed)
    for text, test_text in (
        ("/srv/", f"{folder}/srv/"),
        ("/backup/", f"{folder}/backup/"),
        ("8000", str(free_port())),
    ):
        assert text in script
        script = script.replace(text, test_text)
    return script


def test_commands_of_the_guide_work(tmp_path: Path, tell: Callable[[str], None]) -> None:
    """Given the page's commands, when they are typed in their order, then each succeeds."""
    for name in ("srv", "backup", "here"):
        (tmp_path / name).mkdir()
    session = type_commands(rehearsal(tmp_path), tmp_path / "here", tmp_path)
    errors, answers = session.errors, session.answers
    assert session.exit_code == 0, (
        f"{answers}\n{errors}\n{(tmp_path / 'srv' / 'toolkit.log').read_text()}"
    )
    tell(f"the guide of docs/self-hosting.md: {session.cpu_s:.1f} s of CPU")
    for line in (
        "The analyst is refused.",
        "The guest is refused.",
        "guest@example.org is enabled",
    ):
        assert line in answers
    ended_well = re.findall("^status +✓ completed", answers, re.M)
    assert len(ended_well) == 2, "the task went through a restart and a restore"
    with closing(sqlite3.connect(tmp_path / "srv" / "toolkit" / "state.db")) as upgraded:
        version = read_schema_version(upgraded)
        assert version is not None
        assert version.revision == HEAD_REVISION
    assert "The account of this key is disabled" in errors
    assert "Traceback" not in errors + answers
    keys = [file.read_text().strip() for file in (tmp_path / "here").glob("*.key")]
    assert len(keys) == 4
    assert not any(key in answers for key in keys)


@pytest.fixture
def proxied(settings: Settings, tmp_path: Path) -> Iterator[httpx.Client]:
    """A caller of a server behind nginx, configured as the page says."""
    server = Server(settings)
    port = free_port()
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += [
        "-nodes",
        "-days",
        "1",
        "-subj",
        "/CN=toolkit",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
    ]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    (block,) = re.findall(r"^```nginx\n(.*?)^```", PAGE, re.M | re.S)
    for text, test_text in (
        ("127.0.0.1:8000", server.url.removeprefix("http://")),
        ("listen 443", f"listen 127.0.0.1:{port}"),
        ("/etc/ssl/toolkit.pem", str(certificate)),
        ("/etc/ssl/toolkit.key", str(key)),
    ):
        assert block.count(text) == 1
        block = block.replace(text, test_text)
    trusted = ssl.create_default_context(cafile=str(certificate))
    base = f"https://127.0.0.1:{port}"
    with (
        httpx.Client(base_url=base, verify=trusted, trust_env=False, timeout=PATIENCE_S) as http,
        run_nginx(block, tmp_path, http),
    ):
        yield http
    server.close()


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
def test_works_behind_nginx(proxied: httpx.Client) -> None:
    """Given the page's nginx, then requests, uploads, long polls and streams pass through it."""
    signed_up = proxied.post("/v1/account", json={"email": "ada@example.org"})
    proxied.headers["Authorization"] = f"Bearer {signed_up.json()['data']['api_key']}"
    waited = proxied.post("/v1/runs", json=CARD, headers={"Prefer": "wait=10"})
    assert waited.json()["status"] == "completed"
    events = f"/v1/runs/{waited.json()['id']}/events"
    assert proxied.get(f"{events}?after=0&wait=5").json()["data"]["count"] >= 3
    large = {"file": ("large.bin", b"\x00\x01" * (5 * 1024 * 1024))}
    assert proxied.post("/v1/artifacts", files=large, timeout=30).status_code == 201
    with proxied.stream("GET", events, headers={"Accept": "text/event-stream"}) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert "run.completed" in "".join(stream.iter_text())
