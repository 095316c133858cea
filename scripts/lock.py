"""Keep `requirements.lock`: what the package and its engines need, each with its hashes.

`python scripts/lock.py` writes it with `uv`, in the versions of constraints.txt, for every system
and Python that we support. `--check` needs no network; it says what does not go together in
pyproject.toml, constraints.txt, the lock and what is installed here, and exits with 1.
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
# What the package and its engines need, on every system: python scripts/lock.py
# pip install --require-hashes -r requirements.lock
# pip install --no-deps --no-build-isolation .
"""
# The package's own needs ("") and those of engines, on one machine or on several (docs/deploy.md).
LOCKED_EXTRAS = ("", "dask", "postgres", "remote", "s3", "server")
# A name, a version, where it is for, and hashes; no address, no path, no option.
PIN = re.compile(
    r"^(?P<name>[a-z0-9-]+)==(?P<version>[^\s;]+)(?: ; (?P<marker>[^\\\n]+?))?"
    r"(?: \\\n    --hash=sha256:[0-9a-f]{64})+$",
    re.M,
)
Pins = dict[str, tuple[str, Marker | None]]


def read_needs() -> dict[str, list[Requirement]]:
    """Read pyproject.toml: the requirements of the package with what builds it, and of extras."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = told["project"]
    written = {"": [*project["dependencies"], *told["build-system"]["requires"]]}
    written |= project["optional-dependencies"]
    return {
        extra: [r for r in map(Requirement, lines) if r.name != project["name"]]
        for extra, lines in written.items()
    }


def read_constraints() -> dict[str, str]:
    """Read constraints.txt: versions by name."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pairs}


def read_pins(text: str) -> Pins:
    """Read a lock: versions and markers by name."""
    return {
        found["name"]: (found["version"], Marker(found["marker"]) if found["marker"] else None)
        for found in PIN.finditer(text)
    }


def find_unfit_lines(text: str) -> Iterator[str]:
    """Say which lines of a lock are more or less than a pin with its hashes."""
    if not text.startswith(HEAD):
        yield "begins otherwise than it is written"
    rest = PIN.sub("", text.removeprefix(HEAD))
    yield from (
        f"has a line that is no pin with hashes: {line}" for line in rest.split("\n") if line
    )


def find_unmet(
    wanted: list[Requirement], versions: dict[str, str], where: str, environment: dict[str, str]
) -> Iterator[str]:
    """Say which requirements that apply here have no version that fits, or none at all."""
    for each in wanted:
        if each.marker is not None and not each.marker.evaluate(environment):
            continue
        version = versions.get(canonicalize_name(each.name))
        if version is None:
            yield f"{each.name} is not in {where}"
        elif not each.specifier.contains(version, prereleases=True):
            yield f"{where} has {each.name} {version}, which is not {each.specifier}"


def follow_installed(wanted: list[Requirement], versions: dict[str, str]) -> Iterator[str]:
    """Follow what is installed here, and say what of it the lock does not have."""
    todo = [(each, extra) for each in wanted for extra in ("", *each.extras)]
    seen = set()
    while todo:
        each, extra = todo.pop()
        key = (canonicalize_name(each.name), extra)
        if key in seen:
            continue
        seen.add(key)
        try:
            inner = [Requirement(line) for line in requires(each.name) or ()]
        except PackageNotFoundError:
            yield f"{each.name} is not installed here: pip install -c constraints.txt -e '.[dev]'"
            continue
        needed = [r for r in inner if r.marker is None or r.marker.evaluate({"extra": extra})]
        yield from find_unmet(needed, versions, LOCK.name, {"extra": extra})
        todo += [(r, inside) for r in needed for inside in ("", *r.extras)]


def find_disagreements() -> Iterator[str]:
    """Say all that does not go together."""
    text = LOCK.read_text(encoding="utf-8") if LOCK.exists() else ""
    yield from (f"{LOCK.name} {fault}" for fault in find_unfit_lines(text))
    wanted, tested, locked = read_needs(), read_constraints(), read_pins(text)
    for extra, lines in wanted.items():
        yield from find_unmet(lines, tested, "constraints.txt", {"extra": extra})
    # What only other systems need is installed here by nobody, so no constraint names it.
    for name, (version, marker) in locked.items():
        if tested.get(name, version if marker is not None else None) != version:
            yield f"{LOCK.name} has {name} {version}, constraints.txt {tested.get(name, 'none')}"
    versions = {n: v for n, (v, marker) in locked.items() if marker is None or marker.evaluate()}
    locked_needs = [each for extra in LOCKED_EXTRAS for each in wanted[extra]]
    yield from find_unmet(locked_needs, versions, LOCK.name, {"extra": ""})
    yield from follow_installed(locked_needs, versions)


def write() -> None:
    """Have uv resolve and hash; nothing of this machine or its index gets into the file."""
    uv = shutil.which("uv")
    if uv is None:
        sys.exit("uv is needed to write the lock: pip install uv")
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    oldest = told["project"]["requires-python"].removeprefix(">=")
    command = [
        *(uv, "pip", "compile", "--quiet", "--universal", "--python-version", oldest),
        *("--generate-hashes", "--no-header", "--no-annotate", "--constraints", "constraints.txt"),
        *(f"--extra={extra}" for extra in LOCKED_EXTRAS if extra),
        *("pyproject.toml", "-"),
    ]
    done = subprocess.run(  # noqa: S603 - our own arguments
        command,
        input="\n".join(told["build-system"]["requires"]),
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    LOCK.write_text(HEAD + done.stdout, encoding="utf-8")


def main() -> int:
    """Write the lock, or check it."""
    if "--check" not in sys.argv:
        write()
    found = list(find_disagreements())
    for line in dict.fromkeys(found):
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
