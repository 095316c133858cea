"""The examples in docstrings, run."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import toolkit

ROOT = Path(toolkit.__file__).parent
NOT_RUN = ("toolkit.store.migrations", "toolkit.__main__", "toolkit.sandbox.__main__")


def name_module(path: Path) -> str:
    """Return the module name of a file."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


FILES = {
    name: path
    for path in sorted(ROOT.rglob("*.py"))
    if not (name := name_module(path)).startswith(NOT_RUN)
}


def test_imports_every_module() -> None:
    """Given the packages of the README's command, then every module can be imported."""
    for name in FILES:
        import_module(name)


def test_examples_show_real_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given the modules with examples, then the examples show the real output."""
    monkeypatch.chdir(tmp_path)
    results = {
        name: doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
        for name, path in FILES.items()
        if ">>> " in path.read_text(encoding="utf-8")
    }
    assert len(results) > 100
    assert [name for name, result in results.items() if result.failed or not result.attempted] == []
