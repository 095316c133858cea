"""Plant bugs one at a time, and report which of them the nearest tests catch.

`python scripts/mutants.py` runs all of `scripts/mutants.toml`; names of mutants run those. Each is
a copy of the project with one text replaced, in which the tests named next to it run. A mutant is
caught if they fail, has survived if they pass, and hangs if they take longer than `--timeout`
seconds. Exits with 1 unless at least `--caught` percent are caught and none hangs. Run it by hand:
all mutants together take half an hour.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIST = ROOT / "scripts" / "mutants.toml"
COPIED = ("toolkit", "tests", "benchmarks", "notebooks", "docs", "pyproject.toml", "README.md")
# The exit status of pytest if a test failed; others mean that it could not run them.
FAILED = 1


@dataclass(frozen=True)
class Mutant:
    """A planted bug.

    Attributes:
        name: its name in the list.
        file: the file that it changes, relative to the root.
        old: a text that occurs once in the file.
        new: the text that replaces it.
        tests: arguments of pytest that select the nearest tests.
    """

    name: str
    file: str
    old: str
    new: str
    tests: list[str]


def read_mutants() -> list[Mutant]:
    """Read the list, in its order."""
    listed = tomllib.loads(LIST.read_text(encoding="utf-8"))["mutants"]
    return [Mutant(name, **fields) for name, fields in listed.items()]


def plant(mutant: Mutant, folder: Path) -> None:
    """Change the file of a mutant in a copy of the project.

    Raises:
        ValueError: the text to replace does not occur exactly once.
    """
    path = folder / mutant.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.name}: {text.count(mutant.old)} places in {mutant.file}")
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")


def copy_project(folder: Path) -> None:
    """Copy the parts of the project that tests read."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name)
        else:
            shutil.copy(source, folder / name)


def try_mutant(mutant: Mutant, timeout_s: float) -> str:
    """Run the nearest tests on a mutant and return `caught`, `survived`, `hung` or `broken`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_project(folder)
        plant(mutant, folder)
        command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-x", *mutant.tests]
        command += ["-p", "no:cacheprovider", "--timeout", str(timeout_s / 2)]
        command += ["--hypothesis-profile", "unshrunk"]
        began = time.monotonic()
        try:
            process = subprocess.run(  # noqa: S603 - our own arguments
                command,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": name},
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return report(mutant, "hung", began, "")
    failed = [line for line in process.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    outcome = {0: "survived", FAILED: "caught"}.get(process.returncode, "broken")
    if outcome == "caught" and not any("::" in line for line in failed):
        outcome = "broken"  # a file could not be imported
    if "from pytest-timeout" in process.stdout:
        outcome = "hung"
    detail = process.stdout[-2000:] if outcome == "broken" else "".join(failed[:1])
    return report(mutant, outcome, began, detail)


def report(mutant: Mutant, outcome: str, began: float, detail: str) -> str:
    """Print a line on a mutant, and return its outcome."""
    took_s = time.monotonic() - began
    print(f"{outcome:8} {took_s:6.1f} s  {mutant.name}  {detail}", flush=True)
    return outcome


def main() -> int:
    """Try the mutants that are named, or all."""
    parser = argparse.ArgumentParser(
        description="Plant bugs, and report which of them the tests catch."
    )
    parser.add_argument("names", nargs="*", help="names of mutants; all by default")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for each mutant")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at once")
    parser.add_argument("--caught", type=float, default=91.0, help="percent that must be caught")
    options = parser.parse_args()
    mutants = [m for m in read_mutants() if not options.names or m.name in options.names]
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(partial(try_mutant, timeout_s=options.timeout), mutants))
    counts = {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))}
    print(f"{len(mutants)} mutants: {counts}")
    caught = 100 * outcomes.count("caught") / max(1, len(outcomes))
    return 0 if caught >= options.caught and "hung" not in outcomes else 1


if __name__ == "__main__":
    sys.exit(main())
