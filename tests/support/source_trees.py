"""The sources of the package and of the tests, each parsed once for all readers."""

import ast
from functools import cache
from pathlib import Path

import toolkit

PACKAGE = Path(toolkit.__file__).parent
TESTS = Path(__file__).parents[1]


@cache
def parse_file(path: Path) -> ast.Module:
    """Parse a file; callers must not change the tree."""
    return ast.parse(path.read_text(encoding="utf-8"))


def parse_folder(folder: Path) -> dict[Path, ast.Module]:
    """Parse all modules in a folder and below."""
    return {path: parse_file(path) for path in sorted(folder.rglob("*.py"))}
