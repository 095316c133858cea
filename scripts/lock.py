"""Maintain `requirements.lock`: the requirements of the package and its engines, with hashes.

`python scripts/lock.py` writes it with `uv`, in the versions of constraints.txt, for every
supported system and Python version. `--check` needs no network; it reports differences between
pyproject.toml, constraints.txt, the lock and the installed packages, and exits with 1.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements.lock"
HEAD = """\
# The requirements of the package and its engines, on every system: python scripts/lock.py
# pip install --require-hashes -r requirements.lock
# pip install --no-deps --no-build-isolation .
"""
# The package's own requirements ("") and the extras of engines on one or more machines
# (docs/deploy.md).
LOCKED_EXTRAS = ("", "dask", "postgres", "remote", "s3", "server")
# A name, a version, a marker and hashes; no address, path or option.
PIN = re.compile(
    r"^(?P<name>[a-z0-9-]+)==(?P<version>[^\s;]+)(?: ; (?P<marker>[^\\\n]+?))?"
    r"(?: \\\n    --hash=sha256:[0-9a-f]{64})+$",
    re.M,
)
Pins = dict[str, tuple[str, Marker | None]]


def read_needs() -> dict[str, list[Requirement]]:
    """Read pyproject.toml: the requirements of the package and its build, and of its extras."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = pyproject["project"]
    lines_by_extra = {"": [*project["dependencies"], *pyproject["build-system"]["requires"]]}
    lines_by_extra |= project["optional-dependencies"]
    return {
        extra: [r for r in map(Requirement, lines) if r.name != project["name"]]
        for extra, lines in lines_by_extra.items()
    }


def read_constraints() -> dict[str, str]:
    """Read constraints.txt: versions by name."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pairs}


def read_pins(text: str) -> Pins:
    """Read a lock: versions and markers by name."""
    return {
        pin["name"]: (pin["version"], Marker(pin["marker"]) if pin["marker"] else None)
        for pin in PIN.finditer(text)
    }


def find_unfit_lines(text: str) -> Iterator[str]:
    """Yield the lines of a lock that are not a pin with its hashes."""
    if not text.startswith(HEAD):
        yield "has another header"
    unmatched = PIN.sub("", text.removeprefix(HEAD))
    yield from (
        f"has a line that is not a pin with hashes: {line}"
        for line in unmatched.split("\n")
        if line
    )


def find_unmet(
    requirements: list[Requirement],
    versions: dict[str, str],
    source: str,
    environment: dict[str, str],
) -> Iterator[str]:
    """Yield the requirements that apply here and have no suitable version, or no version at all."""
    for requirement in requirements:
        if requirement.marker is not None and not requirement.marker.evaluate(environment):
            continue
        version = versions.get(canonicalize_name(requirement.name))
        if version is None:
            yield f"{requirement.name} is not in {source}"
        elif not requirement.specifier.contains(version, prereleases=True):
            yield f"{source} has {requirement.name} {version}, which is not {requirement.specifier}"


def follow_installed(requirements: list[Requirement], versions: dict[str, str]) -> Iterator[str]:
    """Follow the requirements of installed packages, and yield those that the lock lacks."""
    todo = [
        (requirement, extra) for requirement in requirements for extra in ("", *requirement.extras)
    ]
    seen = set()
    while todo:
        requirement, extra = todo.pop()
        key = (canonicalize_name(requirement.name), extra)
        if key in seen:
            continue
        seen.add(key)
        try:
            inner = [Requirement(line) for line in requires(requirement.name) or ()]
        except PackageNotFoundError:
            command = "pip install -c constraints.txt -e '.[dev]'"
            yield f"{requirement.name} is not installed here: {command}"
            continue
        needed = [r for r in inner if r.marker is None or r.marker.evaluate({"extra": extra})]
        yield from find_unmet(needed, versions, LOCK.name, {"extra": extra})
        todo += [(r, inside) for r in needed for inside in ("", *r.extras)]


def find_disagreements() -> Iterator[str]:
    """Yield all differences."""
    text = LOCK.read_text(encoding="utf-8") if LOCK.exists() else ""
    yield from (f"{LOCK.name} {fault}" for fault in find_unfit_lines(text))
    needs, tested, locked = read_needs(), read_constraints(), read_pins(text)
    for extra, lines in needs.items():
        yield from find_unmet(lines, tested, "constraints.txt", {"extra": extra})
    # A requirement of other systems only is not installed here, so no constraint names it.
    for name, (version, marker) in locked.items():
        if tested.get(name, version if marker is not None else None) != version:
            yield f"{LOCK.name} has {name} {version}, constraints.txt {tested.get(name, 'none')}"
    versions = {n: v for n, (v, marker) in locked.items() if marker is None or marker.evaluate()}
    locked_needs = [requirement for extra in LOCKED_EXTRAS for requirement in needs[extra]]
    yield from find_unmet(locked_needs, versions, LOCK.name, {"extra": ""})
    yield from follow_installed(locked_needs, versions)


def write() -> None:
    """Resolve and hash with uv, without paths of this machine and addresses of its index."""
    uv = shutil.which("uv")
    if uv is None:
        sys.exit("uv is needed to write the lock: pip install uv")
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    oldest = pyproject["project"]["requires-python"].removeprefix(">=")
    command = [
        *(uv, "pip", "compile", "--quiet", "--universal", "--python-version", oldest),
        *("--generate-hashes", "--no-header", "--no-annotate", "--constraints", "constraints.txt"),
        *(f"--extra={extra}" for extra in LOCKED_EXTRAS if extra),
        *("pyproject.toml", "-"),
    ]
    process = subprocess.run(  # noqa: S603 - our own arguments
        command,
        input="\n".join(pyproject["build-system"]["requires"]),
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    LOCK.write_text(HEAD + process.stdout, encoding="utf-8")


def main() -> int:
    """Write the lock, or check it."""
    if "--check" not in sys.argv:
        write()
    differences = list(find_disagreements())
    for line in dict.fromkeys(differences):
        print(line)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
