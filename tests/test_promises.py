"""The promises of the security page, each with tests that exist and speak of it."""

import ast
import re
from collections.abc import Iterator
from functools import cache

from tests.support.source_trees import TESTS, parse_file

PAGE = TESTS.parent / "docs" / "security.md"
ROW = re.compile(r"^\| P(\d+) \| (.+?) \| (.*) \|$", re.M)
TABLE = {int(n): (promise, re.findall(r"`(\S+)`", named)) for n, promise, named in ROW.findall(
    PAGE.read_text(encoding="utf-8")
)}  # fmt: skip
# One of these words is in what a test or its module says of itself, if it speaks of the promise.
WORDS = {
    1: "kill|acknowledged", 2: "kill", 3: "kill|crash|resumed", 4: "bytes", 5: "kill|conflict",
    6: "acknowledge", 7: "stop", 8: "lease|fence", 9: "full|locked|space", 10: "clock",
    11: "idempotency", 12: "key", 13: "envelope|refus|internal", 14: "retr|fail|missing|page",
    15: "key", 16: "secret|key", 17: "name|variable", 18: "address", 19: "account|foreign",
    20: "id", 21: "ours|owner", 22: "key|sign-up|loopback|account", 23: "body|json",
    24: "graph|nodes|cycle|faulty body", 25: "name|umask|private", 26: "code", 27: "budget|spend",
    28: "network|larger",
    29: "again|retry|retries|refus", 30: "call|limit|twice|breaker", 31: "answer",
    32: "link|address|host", 33: "plan", 34: "fence|data|pass", 35: "text|browser|terminal",
    36: "holds|held|stood", 37: "runaway|refused|process|worker", 38: "turns",
    39: "allowance|charged", 40: "fits|process", 41: "locked|reading|work", 42: "retry|wait",
    43: "upload|download", 44: "records", 45: "condition|collector", 46: "profile",
    47: "share", 48: "function",
    49: "worker", 53: "function|value", 54: "worker|cluster", 56: "socket|signature|server",
    58: "compressed",
}  # fmt: skip


@cache
def read_test_texts(file: str) -> dict[str, str]:
    """Read the docstring of each test of a file, after the docstring of the file."""
    tree = parse_file(TESTS / file)
    about = ast.get_docstring(tree) or ""
    found = {
        node.name: f"{about} {node.name} {ast.get_docstring(node) or ''}".lower()
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    # hypothesis makes test cases of state machines, under names of their own.
    named = {target.id for node in tree.body if isinstance(node, ast.Assign)
             for target in node.targets if isinstance(target, ast.Name)}  # fmt: skip
    return found | {name: f"{about} {name}".lower() for name in named}


def test_every_promise_is_there() -> None:
    """Given the page, then it has each promise once, with at least one test."""
    assert list(TABLE) == sorted(TABLE)
    assert set(TABLE) >= set(range(1, 49))
    assert [n for n, (_, tests) in TABLE.items() if not tests] == []
    assert set(WORDS) == set(TABLE)


def find_wrong_tests(number: int) -> Iterator[str]:
    """Find the tests beside a promise that are not there, or not about it."""
    for one in TABLE[number][1]:
        file, _, name = one.partition("::")
        about = read_test_texts(file).get(name) if name.lower().startswith("test") else None
        if about is None:
            yield f"P{number}: there is no {one}."
        elif not re.search(WORDS[number], about):
            yield f"P{number} is not what {one} is about."


def test_each_promise_has_tests_that_speak_of_it() -> None:
    """Given the promises, then the tests beside each are there once, and are about it."""
    assert [n for n, (_, named) in TABLE.items() if len(named) != len(set(named))] == []
    assert [wrong for number in TABLE for wrong in find_wrong_tests(number)] == []
