"""Notebooks of a batch are isolated from each other."""

import contextlib
import os
import tomllib
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.batch.conftest import Write, run_batch, write_notebook
from toolkit.batch.kernel.sources import can_fork

IMPORTS = """
import asyncio, builtins, colorsys, logging, os, random
import signal, subprocess, sys, threading, types, warnings
import matplotlib, numpy
import matplotlib.pyplot as plt
from toolkit.batch import record
"""
# By name: code with a side effect, and an expression that shows the effect.
LEAKS = tomllib.loads(Path(__file__).with_name("leaks.toml").read_text("utf-8"))
SHOW = f"""
shell = get_ipython()
def leaked_hook(*_): pass
LEAKS = {LEAKS!r}
def show():
    return {{name: eval(leak["probe"], globals()) for name, leak in LEAKS.items()}}
record("before", show())
record("drawn", [random.random(), float(numpy.random.rand())])
"""
LEAK = """
if leaks:
    child = subprocess.Popen(["sleep", "60"])
    record("child", child.pid)
    for leak in LEAKS.values():
        exec(leak["code"], globals())
    after = show()
    os.chdir(before_folder)
    record("after", after)
"""


@pytest.fixture(scope="module", params=[True, False], ids=["forked", "spare"])
def rows(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """The rows of a notebook with all side effects, and of the notebook that runs after it."""
    folder = tmp_path_factory.mktemp("isolation")
    (folder / "own.py").write_text("COUNT = 0\n")
    path = write_notebook(
        folder / "leaky.ipynb",
        "leaks: bool = False\nturn: int = 0",
        IMPORTS,
        "before_folder = os.getcwd()",
        SHOW,
        LEAK,
    )
    grid = [{"leaks": True, "turn": 0}, {"leaks": False, "turn": 1}]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        table = run_batch(path, grid, workers=1, fork=request.param)
    assert list(table["error"]) == [None] * 2
    return table.to_dict("records")  # type: ignore[misc]


@pytest.mark.parametrize("leak", LEAKS)
def test_a_side_effect_ends_with_its_notebook(rows: list[dict[str, Any]], leak: str) -> None:
    """Given a notebook with a side effect, then the next notebook does not see the effect."""
    first, later = rows
    assert first["after"][leak] != first["before"][leak]
    assert later["before"][leak] == first["before"][leak]


def test_each_notebook_draws_its_own_random_numbers(rows: list[dict[str, Any]]) -> None:
    """Given random generators without a seed, then no two notebooks draw the same numbers."""
    assert len({number for row in rows for number in row["drawn"]}) == 4


def test_ends_the_child_processes_of_a_notebook(rows: list[dict[str, Any]]) -> None:
    """Given a notebook that started a process, when the notebook ends, then the process ends."""
    with contextlib.suppress(psutil.NoSuchProcess):
        child = psutil.Process(int(rows[0]["child"]))
        assert child.name() != "sleep" or child.status() == psutil.STATUS_ZOMBIE


# This module is preloaded by a zygote: it reports a fork only after the kernel listens.
QUICK_KERNEL = """
import os
import __main__
reader, writer = os.pipe()
send = __main__.Zygote.send_message
def send_late(self, message):
    if "forked" in message:
        os.read(reader, 1)
    send(self, message)
    if "listens" in message:
        os.write(writer, b"x")
__main__.Zygote.send_message = send_late
"""


@pytest.mark.skipif(not can_fork(), reason="kernels are not forked here")
def test_accepts_a_kernel_that_listens_before_its_fork_is_reported(
    notebook: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given kernels that listen before their fork is reported, then each runs its notebook."""
    (tmp_path / "quick_kernel.py").write_text(QUICK_KERNEL)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    path = notebook("x: int = 1", "import sys; assert 'quick_kernel' in sys.modules")
    table = run_batch(path, {"x": [1, 2]}, preload=["quick_kernel"], workers=1)
    assert list(table["status"]) == ["completed", "completed"]
