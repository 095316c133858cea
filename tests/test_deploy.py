"""The deployment page: every command is typed on one machine, and each alert has its line."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tests._postgres import PostgresCluster
from tests.support.code_blocks import ROOT, find_blocks
from tests.support.ports import free_port
from tests.support.rehearsal import type_commands

PAGE = ROOT / "docs" / "deploy.md"
DEPLOY = ROOT / "docs" / "deploy"


def rehearse(folder: Path) -> str:
    """Return the page's commands as one script, with paths and ports of the test."""
    typed = [block.code for block in find_blocks(PAGE, "bash") if block.reason is None]
    script = "\n".join(typed)
    for path, test_path in (("/srv/", f"{folder}/srv/"), ("/backup/", f"{folder}/backup/")):
        assert path in script
        script = script.replace(path, test_path)
    for port in ("8001", "8002", "8786", "9000"):
        assert port in script
        script = script.replace(port, str(free_port()))
    return script


def test_page_deploys_all_parts(tmp_path: Path, postgres: PostgresCluster) -> None:
    """Given the page's commands, when they are typed in their order, then each succeeds."""
    for name in ("srv", "backup", "here"):
        (tmp_path / name).mkdir()
    psql = shutil.which("psql")
    assert psql is not None
    env = {
        "PGHOST": "127.0.0.1", "PGPORT": str(postgres.port), "PGUSER": "toolkit",
        "PGPASSWORD": postgres.password, "TOOLKIT_LEASE_S": "2",
    }  # fmt: skip
    modules = "s3fs", "distributed"
    session = type_commands(rehearse(tmp_path), tmp_path / "here", tmp_path, env, *modules)
    logs = "\n".join(path.read_text()[-2_000:] for path in (tmp_path / "srv").glob("*.log"))
    assert session.exit_code == 0, f"{session.answers}\n{session.errors}\n{logs}"
    assert len(re.findall("^status +✓ completed", session.answers, re.M)) == 3
    engines = "".join((tmp_path / "srv" / f"{name}.log").read_text() for name in ("one", "two"))
    assert "Traceback" not in session.answers + session.errors + engines
    assert "rehearsal" not in logs, "the database's password"


def test_image_contains_only_listed_files(tmp_path: Path) -> None:
    """Given the files of an image, then the package can be built from them alone.

    Other files of a clone are not sent to a builder: keys next to the compose file, data, history.
    """
    built = (DEPLOY / "Containerfile").read_text("utf-8")
    copied = [name for line in re.findall(r"^COPY (.+) \S+$", built, re.M) for name in line.split()]
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    rules = [line for line in lines if not line.startswith("#")]
    assert rules[0] == "*"
    assert sorted(rule[1:] for rule in rules if rule.startswith("!")) == sorted(copied)
    for name in copied:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, tmp_path / name)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert "toolkit/__init__.py" in zipfile.ZipFile(wheel).namelist()


def test_page_documents_each_alert() -> None:
    """Given the alerts, then the page has a line for each, and for no other."""
    alerts = set(re.findall(r"alert: (\w+)", (DEPLOY / "alerts.yaml").read_text("utf-8")))
    rows = re.findall(r"^\| (`[A-Z]\w+`(?:, `\w+`)*) \|", PAGE.read_text("utf-8"), re.M)
    assert alerts == {name for row in rows for name in re.findall(r"`(\w+)`", row)}
