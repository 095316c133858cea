"""The commands of a first hour, with nothing installed but what the package needs."""

import json
import re
import subprocess
import sys
from collections import deque
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from PIL import Image

# As `toolkit demo`, where nothing is installed but what the package needs.
DEMO = """
import sys
sys.modules.update(dict.fromkeys({blocked}))
from toolkit.cli import main
sys.argv = ["toolkit", "demo", "--topic", "coral reefs", "--out", {out!r}]
main()
"""

SERVE = """
import sys
sys.modules.update(dict.fromkeys({blocked}))
from toolkit.cli import main
sys.argv = ["toolkit", "serve"]
main()
"""


def find_needed(distribution: str) -> set[str]:
    """The distributions that one needs without any extra of its own, and those that they need."""
    needed, todo = set[str](), deque([(distribution, "")])
    while todo:
        name, extra = todo.popleft()
        try:
            lines = [Requirement(line) for line in requires(name) or ()]
        except PackageNotFoundError:
            continue  # for another system, or Python
        for line in lines:
            if line.marker is None or line.marker.evaluate({"extra": extra}):
                one = canonicalize_name(line.name)
                if one not in needed:
                    needed.add(one)
                    todo += [(one, inner) for inner in ("", *line.extras)]
    return needed


def find_other_modules() -> set[str]:
    """The modules installed here that `pip install capability-toolkit` would not bring."""
    base = {"capability-toolkit", *find_needed("capability-toolkit")}
    return {
        module
        for module, owners in packages_distributions().items()
        if re.fullmatch(r"[a-zA-Z]\w*", module)
        and base.isdisjoint(canonicalize_name(owner) for owner in owners)
    }


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Run `toolkit demo`: the lines that it prints, and the folder it leaves."""
    out = tmp_path_factory.mktemp("demo")
    blocked = find_other_modules()
    assert {"fsspec", "prometheus_client", "structlog", "uvicorn"} <= blocked
    done = subprocess.run(
        [sys.executable, "-c", DEMO.format(blocked=sorted(blocked), out=str(out))],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, out


def test_it_leaves_a_card_and_a_narration(demo: tuple[str, Path]) -> None:
    """When the demo has run, then a 1200×630 PNG and an MP3 are there."""
    _, out = demo
    report = json.loads((out / "report.json").read_text())
    paths = [Path(path) for path in report["paths"]]
    assert {path.suffix for path in paths} == {".png", ".mp3"}
    assert report["task"]["final_artifact_id"]
    for path in paths:
        if path.suffix == ".png":
            with Image.open(path) as card:
                assert card.size == (1200, 630)
        else:
            assert path.stat().st_size > 10_000


def test_it_says_what_happened(demo: tuple[str, Path]) -> None:
    """When the demo has run, then progress, nodes, review and paths have been printed."""
    text, out = demo
    report = json.loads((out / "report.json").read_text())
    for word in ("capability", "provider", "retries", "cost", "seconds", "Review: pass", "Made:"):
        assert word in text
    assert all(node["id"] in text for node in report["workflow"]["nodes"])
    assert text.index("completed") < text.index("Nodes")


def test_no_secret_is_left_in_it(demo: tuple[str, Path]) -> None:
    """When the demo has run, then no file in its folder holds a key."""
    _, out = demo
    for path in out.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert b"sandbox-minimax" not in data
            assert b"sk_live_" not in data or path.suffix in (".db", ".db-wal"), path


def test_a_server_says_which_extra_it_needs() -> None:
    """Given no package but what the toolkit needs, then `toolkit serve` says what to install."""
    call = SERVE.format(blocked=sorted(find_other_modules()))
    done = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "Serving needs an extra: pip install 'capability-toolkit[server]'\n"
