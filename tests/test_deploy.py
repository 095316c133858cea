"""The page on several machines: every command is typed on one; what is watched is measured."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from tests._postgres import PostgresCluster
from tests.support.code_blocks import ROOT, find_blocks
from tests.support.ports import free_port
from tests.support.rehearsal import type_commands
from toolkit.cli import app
from toolkit.observability.metrics import MetricsObserver
from toolkit.settings import Settings

PAGE = ROOT / "docs" / "deploy.md"
DEPLOY = ROOT / "docs" / "deploy"
METRIC = re.compile(r"toolkit_[a-z_]+")
PARTS = re.compile(r"_(bucket|sum|count|created)$")


def rehearse(folder: Path) -> str:
    """The page's commands as one script; only paths and ports are others."""
    typed = [block.code for block in find_blocks(PAGE, "bash") if block.reason is None]
    script = "\n".join(typed)
    for said, here in (("/srv/", f"{folder}/srv/"), ("/backup/", f"{folder}/backup/")):
        assert said in script
        script = script.replace(said, here)
    # Engines are programs of their own here, as one of them is killed.
    script = script.replace("toolkit serve", f"{sys.executable} -m toolkit serve")
    for port in ("8001", "8002", "8786", "9000"):
        assert port in script
        script = script.replace(port, str(free_port()))
    return script


def test_a_stranger_puts_up_the_parts(tmp_path: Path, postgres: PostgresCluster) -> None:
    """Given the page's commands, when they are typed in their order, then each does its work."""
    for name in ("srv", "backup", "here"):
        (tmp_path / name).mkdir()
    psql = shutil.which("psql")
    assert psql is not None
    env = {
        "PGHOST": "127.0.0.1", "PGPORT": str(postgres.port), "PGUSER": "toolkit",
        "PGPASSWORD": postgres.password,
    }  # fmt: skip
    done = type_commands(rehearse(tmp_path), tmp_path / "here", tmp_path, env)
    logs = "\n".join(path.read_text()[-2_000:] for path in (tmp_path / "srv").glob("*.log"))
    assert done.exit_code == 0, f"{done.answers}\n{done.errors}\n{logs}"
    assert len(re.findall("^status +✓ completed", done.answers, re.M)) == 3
    engines = "".join((tmp_path / "srv" / f"{name}.log").read_text() for name in ("one", "two"))
    assert "Traceback" not in done.answers + done.errors + engines
    assert "rehearsal" not in logs, "the database's password"


def test_an_image_holds_nothing_else_of_a_clone(tmp_path: Path) -> None:
    """Given what an image is made of, then the package is built of that alone.

    What else lies in a clone is sent to no builder: keys beside the compose file, data, history.
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
    assert {"toolkit/__init__.py", "toolkit/notebook/01_social_card.ipynb"} <= set(
        zipfile.ZipFile(wheel).namelist()
    )


def list_metrics() -> set[str]:
    """The names of all metrics that a server has."""
    observer = MetricsObserver()
    text = {family.name for family in observer.registry.collect()}
    return text | {f"{name}_total" for name in text}


@pytest.mark.parametrize("name", ["dashboard.json", "alerts.yaml"])
def test_what_is_watched_is_measured(name: str) -> None:
    """Given the dashboard and the alerts, then each metric that they name is there."""
    text = (DEPLOY / name).read_text(encoding="utf-8")
    if name.endswith(".json"):
        panels = json.loads(text)["panels"]
        text = "\n".join(target["expr"] for panel in panels for target in panel["targets"])
    named = {PARTS.sub("", each) for each in METRIC.findall(text)}
    assert len(named) >= 6
    assert named <= list_metrics()


LABELLED = re.compile(r"^\| `(toolkit_\w+)` \|([^|]*)\|", re.M)
SCRAPED = {"instance", "job", "le"}  # labels that Prometheus or a histogram adds


def load_yaml(path: Path) -> Any:
    """What a file of YAML says."""
    return yaml.load(path.read_text("utf-8"), Loader=yaml.SafeLoader)


def list_expressions() -> list[str]:
    """The queries of the dashboard and the alerts."""
    panels = json.loads((DEPLOY / "dashboard.json").read_text("utf-8"))["panels"]
    shown = [target["expr"] for panel in panels for target in panel["targets"]]
    groups = load_yaml(DEPLOY / "alerts.yaml")["groups"]
    return shown + [rule["expr"] for group in groups for rule in group["rules"]]


def test_what_is_watched_has_the_labels() -> None:
    """Given a query, then its metrics have the labels that it goes by.

    The page on metrics, which tests/observability holds against those of a busy server, lists them.
    """
    page = (ROOT / "docs" / "observability.md").read_text("utf-8")
    labels = {name: set(re.findall(r"`(\w+)`", row)) for name, row in LABELLED.findall(page)}
    checked = 0
    for query in list_expressions():
        used = {each for by in re.findall(r"by \(([^)]*)\)", query) for each in by.split(", ")}
        used |= set(re.findall(r"[{,]\s*(\w+)\s*(?:=~|!~|!=|=)", query))
        for metric in METRIC.findall(query):
            known = labels[metric] if metric in labels else labels[PARTS.sub("", metric)]
            assert used <= known | SCRAPED, query
            checked += len(used)
    assert checked > 20


def read_compose() -> tuple[str, dict[str, dict[str, object]]]:
    """The compose file: its text, and its services."""
    path = DEPLOY / "compose.yaml"
    return path.read_text("utf-8"), load_yaml(path)["services"]


def test_the_containers_are_set_up_by_what_there_is() -> None:
    """Given the compose file, then its settings, options and variables are known ones."""
    text, services = read_compose()
    settings = {f"TOOLKIT_{name.upper()}" for name in Settings.model_fields}
    assert set(re.findall(r"TOOLKIT_\w+", text)) <= settings
    serve = get_command(app).commands["serve"]  # type: ignore[attr-defined]
    options = {name for param in serve.params for name in (*param.opts, *param.secondary_opts)}
    words = shlex.split(str(services["engine"]["command"]))
    assert words[:2] == ["toolkit", "serve"]
    assert {word for word in words if word.startswith("--")} <= options
    page = PAGE.read_text("utf-8")
    made = re.search(r"for name in ([A-Z_ ]+); do echo \"\$\{name\}_PASSWORD", page)
    assert made is not None
    documented = {f"{name}_PASSWORD" for name in made[1].split()}
    assert set(re.findall(r"(?<!\$)\$\{(\w+)", text)) == documented


def test_containers_that_end_are_started_again() -> None:
    """Given the compose file, then one service builds the image, and all servers restart."""
    _, services = read_compose()
    assert [name for name, each in services.items() if "build" in each] == ["scheduler"]
    lasting = {name for name, each in services.items() if each.get("restart") == "unless-stopped"}
    assert lasting == set(services) - {"bucket"}


def test_each_alert_says_what_to_do() -> None:
    """Given the alerts, then the page has a line for each, and for no other."""
    alerts = set(re.findall(r"alert: (\w+)", (DEPLOY / "alerts.yaml").read_text("utf-8")))
    rows = re.findall(r"^\| (`[A-Z]\w+`(?:, `\w+`)*) \|", PAGE.read_text("utf-8"), re.M)
    assert alerts == {name for row in rows for name in re.findall(r"`(\w+)`", row)}
