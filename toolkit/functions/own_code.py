"""Distinguish the caller's own code from Python's, installed packages' and the toolkit's."""

import site
import sys
import sysconfig
from pathlib import Path

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
