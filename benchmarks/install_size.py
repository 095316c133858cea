"""The size of the base install: the files of the package and of all distributions that it needs.

Run `python -m benchmarks.install_size` in an environment that has the package. No installer runs:
the sizes are those of the files that each distribution lists. Python's compiled files are left
out, because installers differ in whether they write them. The floor is the same for the libraries
that a client of the service needs, httpx and pydantic.
"""

import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import toolkit
from benchmarks._process import MB
from benchmarks._report import report

PACKAGE = "capability-toolkit"
CLIENT_LIBRARIES = ("httpx", "pydantic")
COMPILED = ".pyc"


def find_distributions(names: Iterable[str]) -> dict[str, Distribution]:
    """Find distributions and all distributions that these require here, by normal name."""
    distributions: dict[str, Distribution] = {}
    pending = [(name, "") for name in names]
    checked = set(pending)
    while pending:
        name, extra = pending.pop()
        package = distribution(name)
        distributions[canonicalize_name(package.name)] = package
        for requirement in map(Requirement, package.requires or ()):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                required = {(requirement.name, each) for each in ("", *requirement.extras)}
                pending += required - checked
                checked |= required
    return distributions


def measure_distribution(package: Distribution) -> int:
    """Measure the files of a distribution, in bytes."""
    paths = [Path(str(file.locate())) for file in package.files or () if file.suffix != COMPILED]
    return sum(path.stat().st_size for path in paths if path.is_file())


def measure_folder(folder: Path) -> int:
    """Measure the files of a folder, in bytes."""
    paths = [path for path in folder.rglob("*") if path.suffix != COMPILED]
    return sum(path.stat().st_size for path in paths if path.is_file())


def main() -> int:
    """Measure and report the sizes; the exit code is always 0, because there is no limit."""
    needed = find_distributions([PACKAGE])
    del needed[PACKAGE]  # an editable install lists no files
    size = measure_folder(Path(toolkit.__file__).parent)
    size += sum(map(measure_distribution, needed.values()))
    floor = sum(map(measure_distribution, find_distributions(CLIENT_LIBRARIES).values()))
    report(
        "install_size.base", size / MB, "MB", floor=floor / MB, limit=None,
        distributions=len(needed),
    )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
