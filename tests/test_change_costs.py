"""One file is what a vendor or a capability costs: CONTRIBUTING.md, read, and done as it says."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
# A file that the page tells to write, and the block of what to try with it.
STEP = re.compile(
    r"`(toolkit/[a-z/_]+\.py)`:\n\n```python\n(.*?)^```\n(?:.*?)^```python\n(.*?)^```", re.M | re.S
)
STEPS = {Path(name).stem: (name, file, use) for name, file, use in STEP.findall(PAGE)}
MAX_VENDOR_LINES = 8
VENDOR = next(stem for stem, (name, _, _) in STEPS.items() if "/vendors/" in name)
# The tests that go through every vendor or every capability there is.
DERIVED = (
    "tests/vendors/test_catalogue.py",
    "tests/capabilities/test_registry_table.py",
    "tests/contract/test_catalog.py::test_models",
    "tests/contract/test_specification.py::test_a_registered_capability_is_as_its_row",
    "tests/contract/test_specification.py::test_the_seven_come_first",
    "tests/sdk/test_sockets.py::test_an_adapter_does_its_work_over_a_socket_as_the_sdk_does"
    f"[{VENDOR}-text]",
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package and its tests, with the page's files added and nothing edited."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("toolkit", "tests", "pyproject.toml", "docs"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name)
        else:
            shutil.copy2(source, folder / name)
    for name, file, _ in STEPS.values():
        (folder / name).write_text(file, encoding="utf-8")
    return folder


def run_python(copy: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run Python where the copy is what is imported."""
    return subprocess.run(
        [sys.executable, *args],
        env={**os.environ, "PYTHONPATH": str(copy)},
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_the_page_shows_a_vendor_and_a_capability() -> None:
    """Given the page, then it has one file for each, and the vendor's is short."""
    assert [Path(name).parent.name for name, _, _ in STEPS.values()] == ["vendors", "capabilities"]
    ((_, file, _),) = [step for step in STEPS.values() if "/vendors/" in step[0]]
    assert file.count("\n") <= MAX_VENDOR_LINES


def test_the_new_files_are_all_it_takes(copy: Path) -> None:
    """Given the files alone, when the page's uses of them are run, then they work as it says."""
    uses = ["import toolkit; print(toolkit.__file__)", *(use for _, _, use in STEPS.values())]
    done = run_python(copy, "-c", "\n".join(uses))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(copy))


def test_no_test_has_to_be_edited(copy: Path) -> None:
    """Given both files, when the tests that go through all of them are run, then they pass."""
    done = run_python(copy, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *DERIVED)
    assert done.returncode == 0, done.stdout[-3000:]
