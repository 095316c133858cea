"""The examples in docstrings, run."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import toolkit

ROOT = Path(toolkit.__file__).parent
NOT_RUN = ("toolkit.store.migrations", "toolkit.__main__", "toolkit.sandbox.__main__")


def name_module(path: Path) -> str:
    """Name the module that a file is."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


FILES = {
    name: path
    for path in sorted(ROOT.rglob("*.py"))
    if not (name := name_module(path)).startswith(NOT_RUN)
}


def test_each_module_can_be_imported() -> None:
    """Given what the README's command installs, then no module needs more to be imported."""
    for name in FILES:
        import_module(name)


def test_the_examples_show_what_comes_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given the modules with examples, then what they show is what comes out."""
    monkeypatch.chdir(tmp_path)
    results = {
        name: doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
        for name, path in FILES.items()
        if ">>> " in path.read_text(encoding="utf-8")
    }
    assert len(results) > 100
    assert [name for name, result in results.items() if result.failed or not result.attempted] == []
