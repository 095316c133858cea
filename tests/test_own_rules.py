"""The tests keep their own rules: they wait instead of sleeping, and use the public doors."""

import ast
import re
from collections.abc import Iterator

from tests.support.source_trees import TESTS, parse_folder

# Waiting is done by the helpers of `tests/support/timing.py`. Whoever else sleeps is slow itself.
SLOW = {
    "crash/test_random_kills.py::keep_busy": "a caller's own pace",
    "engine/concurrency/test_pacing.py::note_sleep": "the sleep that is listened to",
    "engine/execution/test_attempts.py::handle_async_request": "a vendor that takes its time",
    "engine/transport/test_network.py::drip_answer": "a vendor that sends byte by byte",
    "support/network_link.py::_pass_on": "a network that is slow",
    "server/http/test_slow_callers.py::dribble": "a caller that sends byte by byte",
    "server/responsiveness/test_large_payloads.py::longest_ms": "the ticks that are measured",
    "store/test_lost_commits.py::test_a_server_that_is_killed_loses_nothing": "when it crashes",
    "store/test_lost_commits.py::test_sessions_that_are_ended_lose_nothing": "the moment of a cut",
    "store/test_store.py::test_renewing_leases_holds_nothing_up": "the ticks that are measured",
}


def find_sleepers(node: ast.AST, function: str) -> Iterator[str]:
    """Find the functions that call something named `sleep`."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Call(func=ast.Attribute(attr="sleep") | ast.Name(id="sleep")):
                yield function
        named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from find_sleepers(child, child.name if named else function)


def test_no_test_sleeps_instead_of_waiting() -> None:
    """Given all tests, then those that sleep are the ones whose subject is slow."""
    found = {
        f"{path.relative_to(TESTS).as_posix()}::{function}"
        for path, tree in parse_folder(TESTS).items()
        for function in find_sleepers(tree, "<module>")
    }
    found = {name for name in found if not name.startswith("support/timing.py::")}
    assert found == set(SLOW), "wait by wait_until of tests/support/timing.py"


# A look behind the doors is for what no door shows: a process that dies, a disk that fails.
BEHIND_DOORS = {
    "support/process_kill.py": "a process that is killed closes nothing",
    "support/embedded.py": "the engine and the loop of an embedded client",
    "engine/execution/test_leases.py": "a process that stands still",
    "engine/execution/test_shared_directory.py": "a process that stands still",
    "support/sqlite.py": "a database that fails, and a disk that does",
    "store/test_store.py": "a disk that fails, and what is not kept in memory",
    "cli/test_login.py": "that no key lies in a client",
    "cli/test_login_keyring.py": "a keyring that does not answer",
    "client/test_client.py": "that the two clients are alike",
}
# What others' packages name so, though it is documented, or there is no other way to ask for it.
OTHERS = {"_request_id", "_actions", "_custom_shell_complete", "_transport", "_current_frames"}
HOOK = re.compile(r"_mime_|_display_|_repr_\w+_|_ipython_\w+_|_render_traceback_")


def find_private_looks(node: ast.AST) -> Iterator[str]:
    """Find the private names that are used of something other than the object itself."""
    for one in ast.walk(node):
        if isinstance(one, ast.Attribute) and one.attr.startswith("_"):
            if ast.unparse(one.value) not in {"self", "cls", "super()", "os"}:
                yield one.attr
        elif isinstance(one, ast.ImportFrom) and (one.module or "").startswith("toolkit"):
            yield from (alias.name for alias in one.names)
        elif isinstance(one, ast.Call) and ast.unparse(one.func).endswith(".setattr"):
            texts = (a.value for a in one.args if isinstance(a, ast.Constant))
            yield from (text.rpartition(".")[2] for text in texts if isinstance(text, str))


def test_tests_use_the_public_doors() -> None:
    """Given all tests, then those that look behind the doors are the ones that have to."""
    found = {
        path.relative_to(TESTS).as_posix()
        for path, tree in parse_folder(TESTS).items()
        for name in find_private_looks(tree)
        if re.match(r"_[^_]", name) and name not in OTHERS and not HOOK.fullmatch(name)
    }
    assert found == set(BEHIND_DOORS), "ask for it as a caller would"
