"""The lock, the constraints and the project file agree: the tested versions are installed."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = ("pyproject.toml", "constraints.txt", "requirements.lock", "scripts/lock.py")
pytest.importorskip("packaging", reason="packaging is not installed: pip install -e '.[dev]'")


def find_other_versions() -> list[str]:
    """List the locked packages that are installed here in other versions than the lock's."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    differences = []
    for name, locked in re.findall(r"^([a-z0-9-]+)==([^\s;]+)", lock, re.M):
        try:
            if version(name) != locked:
                differences.append(f"{name} {version(name)} instead of {locked}")
        except PackageNotFoundError:  # for other systems or Pythons
            continue
    return differences


# The script follows the requirements of installed packages, so it can only check the lock if they
# have the locked versions. `scripts/check` runs it too, and fails if the versions differ.
if differences := find_other_versions():
    pytest.skip(f"needs the locked versions: {', '.join(differences[:3])}", allow_module_level=True)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files that must agree, in their own folder."""
    (tmp_path / "scripts").mkdir()
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def check(folder: Path) -> tuple[int, str]:
    """Run the script's check on a folder, without a network and without uv."""
    process = subprocess.run(
        [sys.executable, str(folder / "scripts" / "lock.py"), "--check"],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PATH": "", "PYTHONPATH": ""},
    )
    assert process.stderr == ""
    return process.returncode, process.stdout


def change(name: str, pattern: str, to: str) -> Callable[[Path], None]:
    """Return a function that replaces the first match in a file."""

    def apply(folder: Path) -> None:
        text = (folder / name).read_text(encoding="utf-8")
        changed = re.sub(pattern, to, text, count=1, flags=re.M)
        assert changed != text
        (folder / name).write_text(changed, encoding="utf-8")

    return apply


def test_committed_files_agree(copy: Path) -> None:
    """Given the files as committed, then the check reports nothing."""
    assert check(copy) == (0, "")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (change("pyproject.toml", '"httpx>=[^"]+"', '"httpx>=99"'), "httpx"),
        (
            change("pyproject.toml", '    "httpx>=', '    "teapot>=1",\n    "httpx>='),
            "teapot is not",
        ),
        (change("pyproject.toml", '"nbval>=[^"]+"', '"nbval>=99"'), "not >=99"),
        (change("constraints.txt", "^httpx==.*", "httpx==0.27.0"), "constraints.txt 0.27.0"),
        (change("constraints.txt", "^nbval==.*\n", ""), "nbval is not in constraints.txt"),
        (change("requirements.lock", "^httpcore==.*", "teapot==1.0 \\\\"), "httpcore is not in"),
        (change("requirements.lock", "^(# The)", r"--index-url x\n\1"), "has another header"),
        (change("requirements.lock", "^httpx==", "--find-links x\nhttpx=="), "not a pin"),
        (change("requirements.lock", r"^(httpx==[^ ]+)( \\\n.*)+\n(?=\w)", r"\1\n"), "httpx=="),
    ],
)
def test_reports_differences(copy: Path, damage: Callable[[Path], None], message: str) -> None:
    """Given a change of one file alone, when it is checked, then a line reports the difference."""
    damage(copy)
    status, output = check(copy)
    assert status == 1
    assert message in output
