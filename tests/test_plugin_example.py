"""An installed third-party package: listed, routed to, planned with; and its guide is current."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from toolkit.vendors import load_vendors

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "tests" / "plugin_example"
GUIDE = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
LINES = ["Steam above the cup", "morning folds its quiet hands", "leaves remember rain"]

SCRIPT = """
import json, sys
from toolkit import Client
from toolkit.settings import Settings, VendorSettings
vendors = {"verse_club": VendorSettings(base_urls={"api": sys.argv[2]})}
settings = Settings(data_dir=sys.argv[1], vendors=vendors, encyclopedia_url=sys.argv[2])
client = Client.local(settings=settings)
client.connections.create("verse_club", "environment", "VERSE_CLUB_KEY")
haiku = client.capabilities.get("haiku.write").record
llm = client.capabilities.get("llm.generate").record
run = client.runs.create("haiku.write", {"topic": "tea"}).wait(progress=False)
pinned = client.runs.create("llm.generate", {"objective": "Tea"}, provider="verse_club")
print(json.dumps({
    "allowed": haiku.source.routing.allowed_connections,
    "of_llm": llm.source.routing.allowed_connections,
    "yields": haiku.yields,
    "run": [run.provider, run.model, run.output, run.cost_usd],
    "pinned": pinned.wait(progress=False).output["text"],
    "planned": [n.capability for n in client.plans.create("A haiku about tea").record.nodes],
    "chosen": client.route("haiku.write", {"topic": "tea"}).provider,
}))
client.close()
"""


class Club(BaseHTTPRequestHandler):
    """The Verse Club, a vendor."""

    def do_POST(self) -> None:
        """Answer with a haiku if the request has the key."""
        self.rfile.read(int(self.headers["content-length"]))
        is_authorized = self.headers["X-Club-Key"] == "club-secret"
        content = json.dumps({"id": "v1", "text": "\n".join(LINES), "words": 11}).encode()
        self.send_response(200 if is_authorized else 401)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def club_url() -> Iterator[str]:
    """The club, on a real socket."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Club)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the package, installed as a user installs it."""
    target = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [*pip, "--no-index", "--target", str(target), str(EXAMPLE)],
        check=True,
        capture_output=True,
        timeout=120,
    )
    return target


def python(script: str, *args: str, path: Path) -> subprocess.CompletedProcess[str]:
    """Run a script with the package installed."""
    env = {**os.environ, "PYTHONPATH": str(path), "VERSE_CLUB_KEY": "club-secret"}
    return subprocess.run(
        [sys.executable, "-c", script, *args],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_installed_plugin_works_like_a_built_in(
    installed: Path, club_url: str, tmp_path: Path
) -> None:
    """Given the package, then its capability and vendor are listed, routed to and planned with."""
    process = python(SCRIPT, str(tmp_path), club_url, path=installed)
    assert process.returncode == 0, process.stderr
    report = json.loads(process.stdout.splitlines()[-1])
    assert "verse_club" in report["allowed"]
    assert "verse_club" in report["of_llm"]
    assert (report["yields"], report["chosen"]) == ("text/plain", "verse_club")
    provider, model, output, cost = report["run"]
    assert (provider, model, output["lines"]) == ("verse_club", "bard-1", LINES)
    assert cost == pytest.approx(0.00011)
    assert report["pinned"] == "\n".join(LINES)
    assert report["planned"][-1] == "haiku.write"


@pytest.mark.parametrize(
    ("group", "target"),
    [
        ("toolkit.vendors", "toolkit_haiku.nothing_like_it:VENDOR"),
        ("toolkit.vendors", "json:loads"),
        ("toolkit.capabilities", "toolkit_haiku.capability:request"),
        ("toolkit.capabilities", "json:nothing"),
    ],
)
def test_skips_a_broken_plugin(installed: Path, tmp_path: Path, group: str, target: str) -> None:
    """Given an entry point that cannot be loaded, then it is logged in one line and skipped."""
    folder = tmp_path / "broken-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Name: broken\nVersion: 1.0\n", encoding="utf-8")
    (folder / "entry_points.txt").write_text(f"[{group}]\nbroken = {target}\n", encoding="utf-8")
    script = (
        "import sys, logging; sys.path.append(sys.argv[1]); logging.basicConfig()\n"
        "from toolkit.engine import Registry\n"
        "registry = Registry.load()\n"
        "print(len(registry.vendors), registry.require('haiku.write').name)"
    )
    process = python(script, str(tmp_path), path=installed)
    assert process.stdout.split() == [str(len(load_vendors()) + 1), "haiku.write@1"], process.stderr
    assert process.stderr.count("\n") == 1
    assert "broken" in process.stderr


def blocks(language: str) -> list[str]:
    """Return the guide's fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.M | re.S)


def test_guide_matches_the_package() -> None:
    """Given the guide, then its files equal the files of the package."""
    modules = [f"toolkit_haiku/{name}.py" for name in ("vendor", "capability", "lines")]
    names = ["pyproject.toml", *modules]
    files = blocks("toml")[:1] + blocks("python")[:3]
    for name, block in zip(names, files, strict=True):
        assert block == (EXAMPLE / name).read_text(encoding="utf-8"), name


def test_code_of_the_guide_works(installed: Path, club_url: str, tmp_path: Path) -> None:
    """Given the guide's own code, when it is run with the package installed, then it works."""
    *_, use, test = blocks("python")
    env = f"import os; os.environ['TOOLKIT_VENDORS__VERSE_CLUB__BASE_URLS__API'] = {club_url!r}\n"
    env += f"os.chdir({str(tmp_path)!r})\n"
    for block in (env + use, test):
        process = python(block, path=installed)
        assert process.returncode == 0, process.stderr
