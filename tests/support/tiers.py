"""Which tests run when: a first tier that proves the product in minutes, and the rest.

`pytest` without a path, `-m` or `-k` runs the first tier. `pytest tests` runs everything.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

# What a stranger has to see work: the specification, vendors, capabilities, routing, money, access,
# secrets, the first notebooks, and a server that is killed. A row is how the name of a test begins:
# a new test in one of the folders joins by itself. Together they take less than four minutes on two
# cores; what takes longer there, or proves the same again, is left to the rest.
FIRST_TIER = (
    "tests/contract/specification/", "tests/contract/test_specification.py",
    "tests/contract/money/", "tests/engine/money/test_budget.py", "tests/engine/routing/",
    "tests/vendors/test_on_sandbox.py", "tests/vendors/test_wires.py",
    "tests/capabilities/", "tests/secrets/", "tests/engine/transport/test_redaction.py",
    "tests/server/access/",
    "tests/crash/test_kill.py::test_a_stopped_server_loses_nothing_and_repeats_nothing[kill -9]",
    "tests/notebooks/test_scenarios.py::test_nbval_takes_them_by_hand[00_start]",
    "tests/notebooks/test_scenarios.py::test_a_notebook_does_what_it_shows[01_",
    "tests/notebooks/test_scenarios.py::test_a_notebook_does_what_it_shows[02_",
    "tests/notebooks/test_scenarios.py::test_a_notebook_does_what_it_shows[03_",
    "tests/test_docstrings.py", "tests/test_readme.py",
)  # fmt: skip
# What is read off our own texts: `scripts/check` runs these, in one process that parses each once.
STYLE = (
    "tests/test_circles.py", "tests/test_class_names.py", "tests/test_code_safety.py",
    "tests/test_docstring_names.py", "tests/test_mutants.py", "tests/test_own_rules.py",
    "tests/test_promises.py",
)  # fmt: skip
# What takes long: processes killed, notebooks run, a browser, requests made up by the thousand, and
# guides followed command by command. The tests of every day (`scripts/test`) are without it.
SLOW = (
    "tests/browser/", "tests/crash/", "tests/notebooks/", "tests/server/openapi/test_conformance",
    "tests/test_benchmarks", "tests/test_figure_guards", "tests/batch/",
    "tests/engine/money/test_budget_state_machine",
    "tests/engine/execution/test_clock_changes",
    "tests/engine/execution/test_task_state_machine", "tests/server/responsiveness/",
    "tests/test_deploy", "tests/test_self_hosting", "tests/test_exit", "tests/test_typing",
    "tests/test_change_costs", "tests/client/test_map_budget",
)  # fmt: skip
# Tests that need a package outside `.[test]`, and skip without it. The gate's environment has all.
NEEDS_DEV = (
    "tests/browser/", "tests/sdk/", "tests/cli/test_login_keyring", "tests/notebooks/test_binder",
    "tests/test_dependency_lock", "tests/test_typing",
)  # fmt: skip
# Its tests share a JupyterLab and a chromium.
BROWSER = "tests/browser/"
# Of two workers, one would else be busy with these at the end.
EARLY = (*SLOW, "tests/engine/", "tests/planning/")
OTHER_TIERS = (
    "This was the first tier. The others: `scripts/test` (what is not slow), `pytest --tier=rest`"
    " (all but the first), `scripts/check` (linters and style), `pytest tests` (all), `.ci/run`."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the caller choose a tier."""
    parser.addoption(
        "--tier",
        choices=["first", "rest", "style", "all"],
        help="which tests: `first` unless a path, -m or -k is given, then `all`",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Choose for a caller who has not; the workers of xdist are told by their controller."""
    if config.option.tier is None:
        has_path = config.args_source is pytest.Config.ArgsSource.ARGS
        is_chosen = has_path or config.option.markexpr or config.option.keyword
        config.option.tier = "all" if is_chosen else "first"


def pytest_xdist_auto_num_workers() -> int:
    """Start one worker more than there are cores, as much of the suite waits."""
    return (os.cpu_count() or 1) + 1


class FileScheduling(LoadFileScheduling):
    """Has all tests in one worker that share what takes long to start."""

    def _split_scope(self, nodeid: str) -> str:
        return BROWSER if nodeid.startswith(BROWSER) else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileScheduling | None:
    """Have one worker run each file of tests, and one all of the browser's."""
    return FileScheduling(config, log) if config.option.dist == "loadfile" else None


def is_of_tier(name: str, tier: str) -> bool:
    """Tell whether a tier has a test, or a whole file."""
    if name.startswith(FIRST_TIER):
        return tier in ("first", "all")
    return tier in ("style" if name.startswith(STYLE) else "rest", "all")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files that the tier has nothing of, as importing all of them takes long."""
    tier = config.option.tier
    if tier == "all":
        return None
    name = collection_path.relative_to(config.rootpath).as_posix()
    rows = {"first": FIRST_TIER, "style": STYLE}.get(tier, ())
    if collection_path.is_dir():
        folder = f"{name}/"
        has_some = not rows or any(row.startswith(folder) or folder.startswith(row) for row in rows)
        return None if has_some or collection_path == config.rootpath else True
    in_part = tier == "first" and any(row.startswith(f"{name}::") for row in rows)
    return None if in_part or is_of_tier(name, tier) else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the tier, mark what takes long, and begin with it."""
    others = [item for item in items if not is_of_tier(item.nodeid, config.option.tier)]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if is_of_tier(item.nodeid, config.option.tier)]
    for item in items:
        if item.nodeid.startswith(SLOW):
            item.add_marker("slow")
        if item.nodeid.startswith(NEEDS_DEV):
            item.add_marker("needs_dev")
    items.sort(key=lambda item: not item.nodeid.startswith(EARLY))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """Name the other tiers in the last line."""
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and session.config.option.tier == "first":
        reporter.write_line(OTHER_TIERS)
