"""A vendor or a capability costs one file: the steps of CONTRIBUTING.md are executed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
# A file that the page says to write, and the block of code that uses it.
STEP = re.compile(
    r"`(toolkit/[a-z/_]+\.py)`:\n\n```python\n(.*?)^```\n(?:.*?)^```python\n(.*?)^```", re.M | re.S
)
STEPS = {Path(name).stem: (name, file, use) for name, file, use in STEP.findall(PAGE)}
MAX_VENDOR_LINES = 8
VENDOR = next(stem for stem, (name, _, _) in STEPS.items() if "/vendors/" in name)
# The tests that iterate over all vendors or all capabilities.
DERIVED = (
    "tests/vendors/test_catalogue.py",
    "tests/capabilities/test_registry_table.py",
    "tests/contract/test_catalog.py::test_models",
    "tests/contract/test_specification.py::test_a_registered_capability_matches_its_row",
    "tests/contract/test_specification.py::test_lists_the_registered_capabilities_first",
    f"tests/sdk/test_sockets.py::test_adapter_and_sdk_send_the_same_request[{VENDOR}-text]",
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package and its tests, with the page's files added and no file edited."""
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
    """Run Python with the copy as the imported package."""
    return subprocess.run(
        [sys.executable, *args],
        env={**os.environ, "PYTHONPATH": str(copy)},
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_page_shows_a_vendor_and_a_capability() -> None:
    """Given the page, then it has a short file for a vendor, and a file for a capability."""
    assert [Path(name).parent.name for name, _, _ in STEPS.values()] == ["vendors", "capabilities"]
    ((_, file, _),) = [step for step in STEPS.values() if "/vendors/" in step[0]]
    assert file.count("\n") <= MAX_VENDOR_LINES


def test_new_files_work_without_other_changes(copy: Path) -> None:
    """Given only the new files, when the page's examples are run, then they work as described."""
    uses = ["import toolkit; print(toolkit.__file__)", *(use for _, _, use in STEPS.values())]
    process = run_python(copy, "-c", "\n".join(uses))
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith(str(copy))


def test_new_files_pass_the_tests_of_all(copy: Path) -> None:
    """Given both files, when the tests that iterate over all are run, then they pass."""
    process = run_python(copy, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *DERIVED)
    assert process.returncode == 0, process.stdout[-3000:]
