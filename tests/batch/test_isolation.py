"""Nothing that one notebook does reaches the next."""

import contextlib
import os
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.batch.conftest import Write, run_batch, write_notebook
from toolkit.batch.kernel.sources import can_fork

IMPORTS = """
import asyncio, atexit, builtins, colorsys, decimal, gc, locale, logging, math, os, random
import signal, socket, subprocess, sys, threading, types, warnings
import matplotlib, numpy
import matplotlib.pyplot as plt
from toolkit.batch import record
"""
# What is done, and what shows it: shown before and after, and in the notebook that follows.
LEAKS = {
    "a variable": ("leaked = 1", "'leaked' in globals()"),
    "a new module": (
        "sys.modules['leaked'] = types.ModuleType('leaked')",
        "'leaked' in sys.modules",
    ),
    "a module replaced": (
        "sys.modules['colorsys'] = types.ModuleType('fake')",
        "sys.modules['colorsys'].__name__",
    ),
    "state of the author's module": ("import own; own.COUNT += 1", "__import__('own').COUNT"),
    "a library changed": ("math.tau = 3", "math.tau"),
    "a class of a library changed": (
        "matplotlib.figure.Figure.leaked = 1",
        "hasattr(matplotlib.figure.Figure, 'leaked')",
    ),
    "sys.path": ("sys.path.insert(0, '/leaked')", "'/leaked' in sys.path"),
    "the folder": ("os.chdir('/')", "os.getcwd()"),
    "the environment": ("os.environ['LEAKED'] = '1'", "os.environ.get('LEAKED')"),
    "a variable taken away": ("os.environ.pop('STAYS')", "os.environ.get('STAYS')"),
    "warning filters": (
        "warnings.filterwarnings('ignore', 'leaked')",
        "[str(f[1]) for f in warnings.filters if 'leaked' in str(f[1])]",
    ),
    "rcParams": ("plt.rcParams['lines.linewidth'] = 9", "plt.rcParams['lines.linewidth']"),
    "open figures": ("plt.figure()", "plt.get_fignums()"),
    "the seed of random": ("random.seed(1)", "random.Random(1).random() == random.random()"),
    "the seed of NumPy": (
        "numpy.random.seed(1)",
        "float(numpy.random.RandomState(1).rand() - numpy.random.rand()) == 0.0",
    ),
    "the locale": (
        "locale.setlocale(locale.LC_TIME, 'C.UTF-8')",
        "locale.setlocale(locale.LC_TIME)",
    ),
    "a signal handler": (
        "signal.signal(signal.SIGUSR1, signal.SIG_IGN)",
        "str(signal.getsignal(signal.SIGUSR1))",
    ),
    "a logging handler": (
        "logging.getLogger().addHandler(logging.NullHandler())",
        "len([h for h in logging.getLogger().handlers if type(h) is logging.NullHandler])",
    ),
    "a logging level": ("logging.getLogger().setLevel(7)", "logging.getLogger().level"),
    "a display formatter": (
        "shell.display_formatter.formatters['text/plain'].for_type(complex, lambda *_: None)",
        "complex in shell.display_formatter.formatters['text/plain'].type_printers",
    ),
    "an extension": (
        "shell.run_line_magic('load_ext', 'autoreload')",
        "'IPython.extensions.autoreload' in shell.extension_manager.loaded",
    ),
    "history": (
        "shell.history_manager.store_inputs(99, 'leaked')",
        "'leaked' in shell.history_manager.input_hist_raw",
    ),
    "a magic": (
        "shell.register_magic_function(print, magic_name='leaked')",
        "shell.find_line_magic('leaked') is not None",
    ),
    "an alias": (
        "shell.alias_manager.define_alias('leaked_alias', 'true')",
        "shell.alias_manager.is_alias('leaked_alias')",
    ),
    "a hook of cells": (
        "shell.events.register('pre_run_cell', leaked_hook)",
        "'leaked_hook' in [f.__name__ for f in shell.events.callbacks['pre_run_cell']]",
    ),
    "an open task": (
        "task = asyncio.get_event_loop().create_task(asyncio.sleep(60), name='leaked')",
        "'leaked' in [task.get_name() for task in asyncio.all_tasks(asyncio.get_event_loop())]",
    ),
    "a thread": (
        "threading.Thread(target=threading.Event().wait, name='leaked', daemon=True).start()",
        "'leaked' in [thread.name for thread in threading.enumerate()]",
    ),
    "a new builtin": ("builtins.leaked_builtin = 1", "hasattr(builtins, 'leaked_builtin')"),
    "a builtin changed": ("builtins.oct = hex", "builtins.oct(8)"),
    "the limit of recursion": ("sys.setrecursionlimit(2345)", "sys.getrecursionlimit()"),
    "the excepthook": ("sys.excepthook = print", "sys.excepthook is print"),
    "the precision of decimals": ("decimal.getcontext().prec = 5", "decimal.getcontext().prec"),
    "the timeout of sockets": ("socket.setdefaulttimeout(5)", "socket.getdefaulttimeout()"),
    "the mask of new files": ("os.umask(0o077)", "[os.umask(mask := os.umask(0)), mask][1]"),
    "the collector of garbage": ("gc.disable()", "gc.isenabled()"),
}
SHOW = f"""
shell = get_ipython()
def leaked_hook(*_): pass
LEAKS = {LEAKS!r}
def show():
    return {{name: eval(probe, globals()) for name, (_, probe) in LEAKS.items()}}
record("before", show())
record("drawn", [random.random(), float(numpy.random.rand())])
"""
LEAK = """
if leaks:
    child = subprocess.Popen(["sleep", "60"])
    record("child", child.pid)
    for name, (code, _) in LEAKS.items():
        exec(code, globals())
    after = show()
    os.chdir(before_folder)
    record("after", after)
"""


@pytest.fixture(scope="module", params=[True, False], ids=["forked", "spare"])
def rows(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """Given a notebook that leaks all it can, and one that runs after it, what each saw."""
    folder = tmp_path_factory.mktemp("isolation")
    (folder / "own.py").write_text("COUNT = 0\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("STAYS", "here")
        path = write_notebook(
            folder / "leaky.ipynb",
            "leaks: bool = False\nturn: int = 0",
            IMPORTS,
            "before_folder = os.getcwd()",
            SHOW,
            LEAK,
        )
        grid = [{"leaks": turn == 0, "turn": turn} for turn in range(2)]
        table = run_batch(path, grid, workers=1, fork=request.param)
    assert list(table["error"]) == [None] * 2
    return table.to_dict("records")  # type: ignore[misc]


@pytest.mark.parametrize("leak", LEAKS)
def test_what_a_notebook_does_ends_with_it(rows: list[dict[str, Any]], leak: str) -> None:
    """Given a notebook that changed it, then it was changed there, and the next sees it new."""
    first, later = rows
    assert first["after"][leak] != first["before"][leak]
    assert later["before"][leak] == first["before"][leak]


def test_each_draws_its_own_random_numbers(rows: list[dict[str, Any]]) -> None:
    """Given generators nobody seeded, then no two notebooks draw the same."""
    assert len({drawn for row in rows for drawn in row["drawn"]}) == 4


def test_a_process_it_left_running_is_ended(rows: list[dict[str, Any]]) -> None:
    """Given a notebook that started a process, when it has ended, then the process has, too."""
    with contextlib.suppress(psutil.NoSuchProcess):
        left = psutil.Process(int(rows[0]["child"]))
        assert left.name() != "sleep" or left.status() == psutil.STATUS_ZOMBIE


# A module that a zygote preloads: it tells of a fork only when the kernel has said that it listens.
QUICK_KERNEL = """
import os
import __main__
has_said, says = os.pipe()
send = __main__.Zygote.send_message
def send_late(self, what):
    if "forked" in what:
        os.read(has_said, 1)
    send(self, what)
    if "listens" in what:
        os.write(says, b"x")
__main__.Zygote.send_message = send_late
"""


@pytest.mark.skipif(not can_fork(), reason="kernels are not forked here")
def test_a_kernel_may_be_quicker_than_what_it_was_forked_from(
    notebook: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given kernels that listen before their fork is told, then each runs its notebook."""
    (tmp_path / "quick_kernel.py").write_text(QUICK_KERNEL)
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("PYTHONPATH", path)
    table = run_batch(
        notebook("x: int = 1", "import sys; assert 'quick_kernel' in sys.modules"),
        {"x": [1, 2]},
        preload=["quick_kernel"],
        workers=1,
    )
    assert list(table["status"]) == ["completed", "completed"]
