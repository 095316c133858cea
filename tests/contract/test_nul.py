"""A NUL is in no text: it is refused where it is sent, and nothing has an id with one."""

import pytest

from tests.contract.raw_http import RawCaller

PATHS = [
    "runs", "workflows", "tasks", "plans", "artifacts", "agents", "jobs", "templates", "compute",
    "storage", "endpoints", "providers/connections", "account/keys",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_nothing_has_an_id_with_a_nul(caller: RawCaller, path: str) -> None:
    """Given an id with a NUL, then it is one of nothing, and no fault of the database."""
    for name in ("%00", "run_%00", "a%00b"):
        answer = caller.send("GET", f"/v1/{path}/{name}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "NOT_FOUND")


def test_no_text_with_a_nul_is_taken(caller: RawCaller) -> None:
    """Given a NUL in a body or a filter, then 400."""
    asked = {"target": "capability", "name": "llm.generate", "version": "1"}
    run = {**asked, "input": {"objective": "Salt"}}
    answers = [
        caller.send("POST", "/v1/runs", {**run, "input": {"objective": "a\0b"}}),
        caller.send("POST", "/v1/runs", {**run, "tags": ["a\0"]}),
        caller.send("POST", "/v1/account", {"email": "a\0@example.org"}),
        caller.send("GET", "/v1/runs?tag=a%00"),
        caller.send("GET", "/v1/runs?q=a%00"),
    ]
    for answer in answers:
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["code"] == "INVALID_REQUEST"
