"""Our own rules for tests, names, mutants and promises."""

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.support.source_trees import PACKAGE, TESTS, parse_file, parse_folder

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))
from mutants import ROOT, read_mutants

# Tests wait by the helpers of `tests/support/timing.py`. Any other sleep is the subject of its
# test.
SLOW = {
    "crash/test_random_kills.py::keep_busy": "a caller's own pace",
    "engine/concurrency/test_fair_semaphore.py::note_sleep": "the sleep that is recorded",
    "engine/fault_transport.py::handle_async_request": "a slow vendor",
    "engine/transport/test_network.py::drip_answer": "a vendor that sends byte by byte",
    "support/network_link.py::_pass_on": "a network that is slow",
    "server/http/test_hostile.py::dribble": "a caller that sends byte by byte",
    "server/responsiveness/test_large_payloads.py::longest_ms": "the measured ticks",
    "store/test_lost_commits.py::test_loses_no_write_when_the_server_crashes": "the time of a kill",
    "store/test_lost_commits.py::test_loses_no_write_when_sessions_end": "the moment of a cut",
    "store/test_store.py::test_renewing_leases_does_not_block_the_loop": "the measured ticks",
}


def find_sleepers(node: ast.AST, function: str) -> Iterator[str]:
    """Yield the functions that call a function named `sleep`."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Call(func=ast.Attribute(attr="sleep") | ast.Name(id="sleep")):
                yield function
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from find_sleepers(child, child.name if is_function else function)


def test_tests_wait_instead_of_sleeping() -> None:
    """Given all tests, then only tests of slow subjects sleep."""
    sleepers = {
        f"{path.relative_to(TESTS).as_posix()}::{function}"
        for path, tree in parse_folder(TESTS).items()
        for function in find_sleepers(tree, "<module>")
    }
    sleepers = {name for name in sleepers if not name.startswith("support/timing.py::")}
    assert sleepers == set(SLOW), "use wait_until of tests/support/timing.py"


# Private access is for states that no public interface shows: a dying process, a failing disk.
BEHIND_DOORS = {
    "crash/crash_points.py": "a process that is killed between two steps of a write",
    "support/process_kill.py": "a process that is killed closes nothing",
    "support/embedded.py": "the engine and the loop of an embedded client",
    "engine/execution/test_leases.py": "a process that hangs",
    "engine/execution/test_shared_directory.py": "a process that hangs",
    "support/sqlite.py": "a failing database, and a failing disk",
    "store/test_silent_sessions.py": "an engine that hangs just before a commit",
    "store/test_store.py": "a failing disk, and values that are not cached",
    "cli/test_login.py": "that a client stores no key",
    "cli/test_login_keyring.py": "a keyring that does not answer",
}

# Private names of other packages that are documented, or that have no public alternative.
OTHERS = {"_request_id", "_actions", "_custom_shell_complete", "_transport", "_current_frames"}

HOOK = re.compile(r"_mime_|_display_|_repr_\w+_|_ipython_\w+_|_render_traceback_")


def find_private_looks(node: ast.AST) -> Iterator[str]:
    """Yield the private names that are used of other objects than `self`."""
    for child in ast.walk(node):
        if isinstance(child, ast.Attribute) and child.attr.startswith("_"):
            if ast.unparse(child.value) not in {"self", "cls", "super()", "os"}:
                yield child.attr
        elif isinstance(child, ast.ImportFrom) and (child.module or "").startswith("toolkit"):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.Call) and ast.unparse(child.func).endswith(".setattr"):
            texts = (a.value for a in child.args if isinstance(a, ast.Constant))
            yield from (text.rpartition(".")[2] for text in texts if isinstance(text, str))


def test_tests_use_the_public_interface() -> None:
    """Given all tests, then only the listed files use private names."""
    files = {
        path.relative_to(TESTS).as_posix()
        for path, tree in parse_folder(TESTS).items()
        for name in find_private_looks(tree)
        if re.match(r"_[^_]", name) and name not in OTHERS and not HOOK.fullmatch(name)
    }
    assert files == set(BEHIND_DOORS), "use the public interface"


HANDLES = (
    PACKAGE / "client" / "_sync"
)  # generated: callers know handles by the names of their records


def test_class_names_are_unique() -> None:
    """Given the sources, then no two classes have the same name."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, tree in parse_folder(PACKAGE).items():
        if HANDLES in path.parents:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


MUTANTS = read_mutants()


def test_mutants_match_the_code() -> None:
    """Given the list, then each text occurs once and is changed, and its tests exist."""
    assert len(MUTANTS) >= 60
    for mutant in MUTANTS:
        text = (ROOT / mutant.file).read_text(encoding="utf-8")
        assert text.count(mutant.old) == 1, mutant.name
        assert mutant.new != mutant.old, mutant.name
        paths = [test.partition("::")[0] for test in mutant.tests if test.startswith("tests/")]
        assert paths, mutant.name
        assert all((ROOT / path).exists() for path in paths), mutant.name


PAGE = TESTS.parent / "docs" / "security.md"

PROMISES = tomllib.loads((TESTS / "promises.toml").read_text(encoding="utf-8"))


@cache
def read_test_texts(file: str) -> dict[str, str]:
    """Return the docstring of each test of a file, after the docstring of the file."""
    tree = parse_file(TESTS / file)
    about = ast.get_docstring(tree) or ""
    texts = {
        node.name: f"{about} {node.name} {ast.get_docstring(node) or ''}".lower()
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    # hypothesis makes test cases of state machines, which are assigned to names.
    assigned = {target.id for node in tree.body if isinstance(node, ast.Assign)
             for target in node.targets if isinstance(target, ast.Name)}  # fmt: skip
    return texts | {name: f"{about} {name}".lower() for name in assigned}


def test_page_lists_every_promise() -> None:
    """Given the page, then it has each promise of the list once, each with at least one test."""
    rows = re.findall(r"^\| (P\d+) \| .+ \|$", PAGE.read_text(encoding="utf-8"), re.M)
    assert rows == list(PROMISES)
    assert len(rows) >= 53
    assert [name for name, promise in PROMISES.items() if not promise["tests"]] == []


def find_wrong_tests(promise: str) -> Iterator[str]:
    """Yield the tests of a promise that do not exist, or are not about it."""
    for test in PROMISES[promise]["tests"]:
        file, _, name = test.partition("::")
        about = read_test_texts(file).get(name) if name.lower().startswith("test") else None
        if about is None:
            yield f"{promise}: there is no {test}."
        elif not re.search(PROMISES[promise]["about"], about):
            yield f"{promise} is not the subject of {test}."


def test_each_promise_has_tests() -> None:
    """Given the promises, then the tests of each are listed once, exist, and are about it."""
    assert [name for name, promise in PROMISES.items()
            if len(promise["tests"]) != len(set(promise["tests"]))] == []  # fmt: skip
    assert [wrong for promise in PROMISES for wrong in find_wrong_tests(promise)] == []
