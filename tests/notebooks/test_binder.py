"""The folder `binder/`, from which Binder builds its image."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from toolkit.cli import app
from toolkit.notebook.proxy import server

ROOT = Path(__file__).parent.parent.parent
BINDER = ROOT / "binder"


def test_repo2docker_plans_the_image() -> None:
    """Given repo2docker, when it plans the image, then it pins Python and finds every script."""
    pytest.importorskip("repo2docker", reason="jupyter-repo2docker is not installed")
    command = [sys.executable, "-m", "repo2docker", "--no-build", "--debug", str(ROOT)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120)
    plan = process.stdout + process.stderr
    assert process.returncode == 0, plan[-2000:]
    for part in ("python=3.12", "binder/requirements.txt", "RUN ./binder/postBuild"):
        assert part in plan
    assert 'R2D_ENTRYPOINT="${REPO_DIR}/binder/start"' in plan


def test_the_start_script_runs_programs_in_the_sandbox(tmp_path: Path) -> None:
    """Given the start script, when it starts a program, then the program is in the sandbox."""
    assert (BINDER / "start").read_text(encoding="utf-8").rstrip().endswith('exec "$@"')
    command = [str(BINDER / "start"), "sh", "-c", 'echo "$TOOLKIT_SANDBOX $1"', "sh", "a b"]
    output = subprocess.check_output(command, cwd=tmp_path, text=True)
    assert output == "true a b\n"


def test_the_proxied_server_is_a_valid_command() -> None:
    """Given the settings for jupyter-server-proxy, then their command exists."""
    command = server()["command"]
    assert command[:3] == [sys.executable, "-m", "toolkit"]
    serve = get_command(app).commands["serve"]  # type: ignore[attr-defined]
    context = serve.make_context("serve", [word.format(port=0) for word in command[4:]])
    assert context.params["port"] == 0


def test_reports_the_size_of_the_environment() -> None:
    """Given an environment, then its size and its largest packages are reported."""
    output = subprocess.check_output([sys.executable, str(BINDER / "size.py")], text=True)
    first, *packages = output.splitlines()
    assert " MB, packages " in first
    assert len(packages) == 8
