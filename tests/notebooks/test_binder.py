"""The folder that Binder starts from, `binder/`, read as repo2docker reads it."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from toolkit.cli import app
from toolkit.notebook.proxy import server

ROOT = Path(__file__).parent.parent.parent
BINDER = ROOT / "binder"


def test_repo2docker_takes_it() -> None:
    """Given repo2docker, when it plans the image, then it pins Python and finds every script."""
    pytest.importorskip("repo2docker", reason="jupyter-repo2docker is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "repo2docker", "--no-build", "--debug", str(ROOT)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    planned = done.stdout + done.stderr
    assert done.returncode == 0, planned[-2000:]
    for said in ("python=3.12", "binder/requirements.txt", "RUN ./binder/postBuild"):
        assert said in planned
    assert 'R2D_ENTRYPOINT="${REPO_DIR}/binder/start"' in planned


def test_the_start_script_hands_over_in_the_sandbox(tmp_path: Path) -> None:
    """Given the start script, when it starts a program, then that is in the sandbox."""
    assert (BINDER / "start").read_text(encoding="utf-8").rstrip().endswith('exec "$@"')
    done = subprocess.run(
        [str(BINDER / "start"), "sh", "-c", 'echo "$TOOLKIT_SANDBOX $1"', "sh", "a b"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "true a b\n"


def test_the_server_beside_it_is_ours() -> None:
    """Given what jupyter-server-proxy is told, then it is a command that there is."""
    told = server()
    assert told["command"][:3] == [sys.executable, "-m", "toolkit"]
    serve = get_command(app).commands["serve"]  # type: ignore[attr-defined]
    given = serve.make_context("serve", [w.format(port=0) for w in told["command"][4:]])
    assert given.params["port"] == 0


def test_the_size_is_told() -> None:
    """Given an environment, then its size is told with the packages that make it."""
    done = subprocess.run(
        [sys.executable, str(BINDER / "size.py")], capture_output=True, text=True, check=True
    )
    first, *packages = done.stdout.splitlines()
    assert " MB, packages " in first
    assert len(packages) == 8
