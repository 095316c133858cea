"""The examples in docstrings, run."""

import doctest
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import toolkit

NOT_RUN = ("toolkit.store.migrations", "toolkit.__main__", "toolkit.sandbox.__main__")
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(toolkit.__path__, "toolkit.")
    if not module.name.startswith(NOT_RUN)
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a module, then what its docstrings show is what comes out."""
    monkeypatch.chdir(tmp_path)
    failed, _ = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
    assert failed == 0
