"""`toolkit demo` and `toolkit serve` with only the packages that the toolkit requires."""

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

# Runs the command without the packages that `pip install capability-toolkit` does not install.
PROGRAM = """
import sys
sys.modules.update(dict.fromkeys({blocked}))
from toolkit.cli import main
sys.argv = {line}
main()
"""


def find_needed(distribution: str) -> set[str]:
    """Return the distributions that a distribution requires without extras, recursively."""
    needed, todo = set[str](), deque([(distribution, "")])
    while todo:
        name, extra = todo.popleft()
        try:
            lines = [Requirement(line) for line in requires(name) or ()]
        except PackageNotFoundError:
            continue  # a requirement of another system
        for line in lines:
            if line.marker is None or line.marker.evaluate({"extra": extra}):
                name = canonicalize_name(line.name)
                if name not in needed:
                    needed.add(name)
                    todo += [(name, inner) for inner in ("", *line.extras)]
    return needed


def find_other_modules() -> set[str]:
    """Return the installed modules that `pip install capability-toolkit` does not install."""
    base = {"capability-toolkit", *find_needed("capability-toolkit")}
    return {
        module
        for module, owners in packages_distributions().items()
        if re.fullmatch(r"[a-zA-Z]\w*", module)
        and base.isdisjoint(canonicalize_name(owner) for owner in owners)
    }


def run_without_extras(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in a process that has only the required packages."""
    blocked = find_other_modules()
    assert {"fsspec", "prometheus_client", "structlog", "uvicorn"} <= blocked
    program = PROGRAM.format(blocked=sorted(blocked), line=["toolkit", *words])
    line = [sys.executable, "-c", program]
    return subprocess.run(line, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, Path]:
    """Run `toolkit demo`, and return its results, its progress and its folder."""
    out = tmp_path_factory.mktemp("demo")
    process = run_without_extras("demo", "--topic", "coral reefs", "--out", str(out))
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout, process.stderr, out


def test_demo_makes_a_card_and_a_narration(demo: tuple[str, str, Path]) -> None:
    """Given the demo, then a PNG of 1200×630 pixels and an MP3 exist."""
    _, _, out = demo
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


def test_demo_prints_progress_and_results(demo: tuple[str, str, Path]) -> None:
    """Given the demo, then it prints progress, nodes, review and paths."""
    results, progress, out = demo
    report = json.loads((out / "report.json").read_text())
    assert re.search(r"^review decision +pass$", results, re.M)
    for node in report["workflow"]["nodes"]:
        assert re.search(rf"^{node['id']} .*completed", results, re.M)
        assert re.search(rf"^✓ {node['id']} +completed", progress, re.M)
    assert all(path in results for path in report["paths"])


def test_demo_leaves_no_secret(demo: tuple[str, str, Path]) -> None:
    """Given the demo, then no file in its folder holds a key."""
    _, _, out = demo
    for path in out.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert b"sandbox-minimax" not in data
            assert b"sk_live_" not in data or path.suffix in (".db", ".db-wal"), path


def test_serve_names_the_missing_extra() -> None:
    """Given only the required packages, then `toolkit serve` names the extra to install."""
    process = run_without_extras("serve")
    assert (process.returncode, process.stdout) == (3, "")
    message = "Serving needs an extra: pip install 'capability-toolkit[server]'\n"
    assert process.stderr == message
