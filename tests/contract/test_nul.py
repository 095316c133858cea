"""NUL characters: rejected in every text, and in no id."""

import pytest

from tests.contract.raw_http import RawCaller, build_run_body

PATHS = [
    "runs", "workflows", "tasks", "plans", "artifacts", "agents", "jobs", "templates", "compute",
    "storage", "endpoints", "providers/connections", "account/keys",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_an_id_with_a_nul_is_not_found(caller: RawCaller, path: str) -> None:
    """Given an id with a NUL, then `NOT_FOUND`, and no error of the database."""
    for name in ("%00", "run_%00", "a%00b"):
        assert caller.read_error("GET", f"/v1/{path}/{name}") == (404, "NOT_FOUND", [])


def test_rejects_a_text_with_a_nul(caller: RawCaller) -> None:
    """Given a NUL in a body or a filter, then 400."""
    for method, path, body in (
        ("POST", "/v1/runs", build_run_body("llm.generate", {"objective": "a\0b"})),
        ("POST", "/v1/runs", build_run_body("llm.generate", {"objective": "Salt"}, tags=["a\0"])),
        ("POST", "/v1/account", {"email": "a\0@example.org"}),
        ("GET", "/v1/runs?tag=a%00", None),
        ("GET", "/v1/runs?q=a%00", None),
    ):
        assert caller.read_error(method, path, body)[:2] == (400, "INVALID_REQUEST")
