"""Whose code is whose: the caller's own, or installed."""

import sys
import sysconfig
from pathlib import Path

_INSTALLED = tuple(
    str(Path(sysconfig.get_path(name)).resolve())
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
_PACKAGE = __name__.partition(".")[0]
_PACKAGE_FOLDER = str(Path(__file__).resolve().parent.parent)


def is_own_module(name: str | None) -> bool:
    """Tell whether a module is the caller's own: neither Python's nor installed, nor of this.

    >>> is_own_module("__main__"), is_own_module("json"), is_own_module("sys")
    (True, False, False)
    """
    if name in (None, "__main__"):
        return True
    if str(name).partition(".")[0] == _PACKAGE:
        return False
    found = sys.modules.get(str(name))
    file = getattr(found, "__file__", None)
    if found is not None and file is None:
        return False
    return file is None or is_own_file(file)


def is_own_file(file: str) -> bool:
    """Tell whether a file of code is the caller's own; a cell of a notebook is."""
    return not str(Path(file).resolve()).startswith((*_INSTALLED, _PACKAGE_FOLDER))
