"""The demo command, as a person runs it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What `toolkit demo` prints, and the folder it leaves."""
    out = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [sys.executable, "-m", "toolkit", "demo", "--topic", "coral reefs", "--out", str(out)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, out


def test_it_leaves_a_card_and_a_narration(shown: tuple[str, Path]) -> None:
    """When the demo has run, then a 1200×630 PNG and an MP3 are there."""
    _, out = shown
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


def test_it_says_what_happened(shown: tuple[str, Path]) -> None:
    """When the demo has run, then progress, nodes, review and paths have been printed."""
    text, out = shown
    report = json.loads((out / "report.json").read_text())
    for word in ("capability", "provider", "retries", "cost", "seconds", "Review: pass", "Made:"):
        assert word in text
    assert all(node["id"] in text for node in report["workflow"]["nodes"])
    assert text.index("completed") < text.index("Nodes")


def test_no_secret_is_left_in_it(shown: tuple[str, Path]) -> None:
    """When the demo has run, then no file in its folder holds a key."""
    _, out = shown
    for path in out.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert b"sandbox-minimax" not in data
            assert b"sk_live_" not in data or path.suffix in (".db", ".db-wal"), path
