"""The caller's own code: how it is recognized, and which names its functions read.

The attributes show which part of a module a function depends on: `rates.scale(n)` depends on
`scale`. A module that is passed on as a value counts as a whole.
"""

import dis
import site
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import resolve_name as make_absolute  # of names: it imports nothing
from pathlib import Path
from types import CodeType

_PACKAGE = __name__.partition(".")[0]
_PACKAGE_FOLDER = str(Path(__file__).resolve().parent.parent)
_INSTALLED_FOLDERS = tuple(
    {
        *(
            str(Path(sysconfig.get_path(name)).resolve())
            for name in ("stdlib", "platstdlib", "purelib", "platlib")
        ),
        *(str(Path(folder).resolve()) for folder in site.getsitepackages()),
        str(Path(site.getusersitepackages()).resolve()),
        _PACKAGE_FOLDER,
    }
)
_INSTALLED_FOLDER_NAMES = frozenset({"site-packages", "dist-packages"})
Chain = tuple[str, ...]  # attributes that are read one after the other: `a.b.c` is ("b", "c")
_GLOBAL_READS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_FREE_READS = frozenset({"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
_ATTRIBUTE_READS = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_IGNORED_STEPS = frozenset({"EXTENDED_ARG", "CACHE", "NOP", "PUSH_NULL"})
MAX_CACHED_CODES = 1_024


def is_own_module(name: str | None) -> bool:
    """Check whether a module is the caller's own: not Python's, installed or the toolkit's.

    A module without a file, such as a module that a program made, is the caller's own.

    >>> is_own_module("__main__"), is_own_module("json"), is_own_module("sys")
    (True, False, False)
    """
    if name in (None, "__main__"):
        return True
    top = str(name).partition(".")[0]
    if top == _PACKAGE or top in sys.builtin_module_names:
        return False
    file = getattr(sys.modules.get(str(name)), "__file__", None)
    if file is None:
        return top not in sys.stdlib_module_names
    return is_own_file(file)


def is_own_file(file: str) -> bool:
    """Check whether a file of code is the caller's own; a notebook's cell is."""
    path = Path(file).resolve()
    if not _INSTALLED_FOLDER_NAMES.isdisjoint(path.parts):
        return False
    return not any(path.is_relative_to(folder) for folder in _INSTALLED_FOLDERS)


@dataclass(frozen=True, slots=True)
class Import:
    """An import statement within a function.

    Attributes:
        name: the module as the statement names it; empty for `from . import name`.
        level: the number of leading dots.
        members: the names that are imported from the module; empty for `import module`.
    """

    name: str
    level: int
    members: tuple[str, ...]

    def resolve(self, package: str | None) -> str:
        """Return the absolute name of the module.

        Raises:
            ImportError: a relative import without a package.
        """
        return make_absolute("." * self.level + self.name, package) if self.level else self.name


@dataclass(frozen=True, slots=True)
class CodeReads:
    """The names that code reads, with the code of functions within it.

    Attributes:
        globals: attribute chains by global name.
        free: attribute chains by the name of a closed-over variable.
    """

    globals: Mapping[str, frozenset[Chain]]
    free: Mapping[str, frozenset[Chain]]
    imports: tuple[Import, ...]


@lru_cache(maxsize=MAX_CACHED_CODES)
def list_reads(code: CodeType) -> CodeReads:
    """List the names that code reads and does not bind itself.

    >>> sorted(list_reads((lambda: json.loads(text)).__code__).globals.items())
    [('json', frozenset({('loads',)})), ('text', frozenset({()}))]
    """
    found_globals: defaultdict[str, set[Chain]] = defaultdict(set)
    found_free: defaultdict[str, set[Chain]] = defaultdict(set)
    imports: list[Import] = []
    for inner in _walk_code(code):
        steps = [step for step in dis.get_instructions(inner) if step.opname not in _IGNORED_STEPS]
        for position, step in enumerate(steps):
            if step.opname in _GLOBAL_READS:
                found_globals[str(step.argval)].add(_read_chain(steps, position + 1))
            elif step.opname in _FREE_READS:
                found_free[str(step.argval)].add(_read_chain(steps, position + 1))
            elif step.opname == "IMPORT_NAME":
                level, members = (
                    instruction.argval for instruction in steps[position - 2 : position]
                )
                imports.append(Import(str(step.argval), level, tuple(members or ())))
    return CodeReads(
        {name: frozenset(chains) for name, chains in sorted(found_globals.items())},
        {name: frozenset(chains) for name, chains in sorted(found_free.items())},
        tuple(imports),
    )


def _walk_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _walk_code(constant)


def _read_chain(steps: list[dis.Instruction], position: int) -> Chain:
    """Read the attributes that follow the load of a name."""
    names: list[str] = []
    while position < len(steps) and steps[position].opname in _ATTRIBUTE_READS:
        names.append(str(steps[position].argval))
        position += 1
    return tuple(names)
