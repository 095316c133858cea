"""Which tests run when: a first tier that proves the product in minutes, and the rest.

`pytest` without a path, `-m` or `-k` runs the first tier. `pytest tests` runs everything.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

# Tests that prove the product to a new user: the specification, vendors, capabilities, routing,
# money, access, secrets, the first notebooks, and a server that is killed. A row is a prefix of the
# ids of tests, so a new test in one of the folders joins automatically. Together they take less
# than four minutes on two cores; tests that take longer, or prove the same again, are in the rest.
FIRST_TIER = (
    "tests/contract/specification/", "tests/contract/test_specification.py",
    "tests/contract/money/", "tests/engine/money/test_budget.py", "tests/engine/routing/",
    "tests/vendors/test_on_sandbox.py", "tests/vendors/test_wires.py",
    "tests/capabilities/", "tests/client/test_agreement.py", "tests/secrets/",
    "tests/engine/transport/test_redaction.py", "tests/server/access/",
    "tests/crash/test_kill.py::test_stopped_server_loses_and_repeats_nothing[kill -9]",
    "tests/notebooks/test_scenarios.py::test_nbval_passes_a_notebook[00_start]",
    "tests/notebooks/test_scenarios.py::test_a_notebook_reproduces_its_outputs[01_",
    "tests/notebooks/test_scenarios.py::test_a_notebook_reproduces_its_outputs[02_",
    "tests/notebooks/test_scenarios.py::test_a_notebook_reproduces_its_outputs[03_",
    "tests/test_docstrings.py", "tests/test_readme.py",
)  # fmt: skip
# Tests that only read our own texts: `scripts/check` runs these in one process, which parses each
# file once.
STYLE = (
    "tests/test_circles.py", "tests/test_own_rules.py", "tests/test_code_safety.py",
    "tests/test_docstring_names.py", "tests/test_own_rules.py", "tests/test_own_rules.py",
    "tests/test_own_rules.py",
)  # fmt: skip
# Slow tests: killed processes, notebooks, a browser, thousands of generated requests, and guides
# followed command by command. The daily tests (`scripts/test`) leave them out.
SLOW = (
    "tests/browser/", "tests/crash/", "tests/notebooks/", "tests/server/openapi/test_conformance",
    "tests/test_benchmarks", "tests/test_figure_guards", "tests/batch/",
    "tests/engine/money/test_budget_state_machine",
    "tests/engine/execution/test_clock_changes",
    "tests/engine/execution/test_task_state_machine", "tests/server/responsiveness/",
    "tests/test_deploy", "tests/test_self_hosting", "tests/test_exit", "tests/test_typing",
    "tests/test_change_costs", "tests/client/test_map_budget",
    "tests/vendors/test_own_model_server",
)  # fmt: skip
# Tests that need a package outside `.[test]`, and are skipped without it. The gate's environment
# has all of these packages.
NEEDS_DEV = (
    "tests/browser/", "tests/sdk/", "tests/cli/test_login_keyring", "tests/notebooks/test_binder",
    "tests/test_dependency_lock", "tests/test_typing", "tests/vendors/test_own_model_server",
)  # fmt: skip
# The tests of each row share what takes long to start: a JupyterLab and a Chromium, a Dask cluster.
TOGETHER = (
    ("tests/browser/",),
    ("tests/batch/test_remote", "tests/batch/test_grid", "tests/notebooks/test_same_everywhere",
     "tests/engine/transport/test_dask_executor"),
)  # fmt: skip
# Run early, because otherwise one of two workers would still be busy with these at the end.
EARLY = (*SLOW, "tests/engine/", "tests/planning/")
OTHER_TIERS = (
    "This was the first tier. The others: `scripts/test` (what is not slow), `pytest --tier=rest`"
    " (all but the first), `scripts/check` (linters and style), `pytest tests` (all), `.ci/run`."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that selects a tier."""
    parser.addoption(
        "--tier",
        choices=["first", "rest", "style", "all"],
        help="which tests: `first` unless a path, -m or -k is given, then `all`",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Select a tier if the caller named none; the controller of xdist sends it to its workers."""
    if config.option.tier is None:
        has_path = config.args_source is pytest.Config.ArgsSource.ARGS
        is_chosen = has_path or config.option.markexpr or config.option.keyword
        config.option.tier = "all" if is_chosen else "first"


def pytest_xdist_auto_num_workers() -> int:
    """Start one worker more than there are cores, because many tests wait."""
    return (os.cpu_count() or 1) + 1


class FileScheduling(LoadFileScheduling):
    """Runs all tests that share a slow start in the same worker."""

    def _split_scope(self, nodeid: str) -> str:
        scopes = [names[0] for names in TOGETHER if nodeid.startswith(names)]
        return scopes[0] if scopes else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileScheduling | None:
    """Run each test file, and the files that share a slow start, in one worker."""
    return FileScheduling(config, log) if config.option.dist == "loadfile" else None


def is_of_tier(name: str, tier: str) -> bool:
    """Return whether a tier contains a test or a whole file."""
    if name.startswith(FIRST_TIER):
        return tier in ("first", "all")
    return tier in ("style" if name.startswith(STYLE) else "rest", "all")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the files without tests of the tier, because importing all files takes long."""
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
    """Keep the tests of the tier, mark the slow tests, and run them first."""
    deselected = [item for item in items if not is_of_tier(item.nodeid, config.option.tier)]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
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
