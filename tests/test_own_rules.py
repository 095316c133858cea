"""The tests keep their own rules: they sleep nowhere but where time is what they try."""

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
# Waiting is done by the helpers of `tests/support/timing.py`. Whoever else sleeps is slow itself.
SLOW = {
    "crash/test_random_kills.py::keep_busy": "a caller's own pace",
    "engine/concurrency/test_pacing.py::note_sleep": "the sleep that is listened to",
    "engine/execution/test_attempts.py::handle_async_request": "a vendor that takes its time",
    "engine/transport/test_network.py::drip_answer": "a vendor that sends byte by byte",
    "server/http/test_slow_callers.py::dribble": "a caller that sends byte by byte",
    "server/responsiveness/test_large_payloads.py::longest_ms": "the ticks that are measured",
    "store/test_store.py::test_renewing_leases_holds_nothing_up": "the ticks that are measured",
}


def find_sleepers(node: ast.AST, function: str) -> Iterator[str]:
    """Find the functions that call something named `sleep`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call) and ast.unparse(child.func).split(".")[-1] == "sleep":
            yield function
        named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from find_sleepers(child, child.name if named else function)


def test_no_test_sleeps_instead_of_waiting() -> None:
    """Given all tests, then those that sleep are the ones whose subject is slow."""
    found = {
        f"{path.relative_to(TESTS).as_posix()}::{function}"
        for path in TESTS.rglob("*.py")
        for function in find_sleepers(ast.parse(path.read_text("utf-8")), "<module>")
    }
    found = {name for name in found if not name.startswith("support/timing.py::")}
    assert found == set(SLOW), "wait by wait_until of tests/support/timing.py"
