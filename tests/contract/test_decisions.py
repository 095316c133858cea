"""Decisions where the specification leaves a choice: the envelope of every answer, status codes.

Expectations are written from the decisions' own words, as literals; requests are raw HTTP.
"""

import re
from typing import Any

import httpx
import pytest

from tests.contract.raw_http import POINTER, Json, RawCaller

# 26 characters of a ULID in lower case: Crockford's alphabet has no i, l, o and u.
ULID = r"[0-7][0-9abcdefghjkmnpqrstvwxyz]{25}"
PREFIXES = "prv|run|ep|tpl|sto|tsk|wfl|acc|key|job|cmp|art|pln|agt|evt|req"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
NOBODYS = "01m7xrhddbvq3n2zjx4fe01326"
GATHER = {"target": "capability", "name": "research.gather", "input": {"topic": "Tea"}}
NODE = {"id": "a", "capability": "research.gather", "input": {"topic": "Tea"}}

# A body that each collection takes, and the status that it is answered with.
COLLECTIONS: dict[str, tuple[Json | None, int, str]] = {
    "/v1/account/keys": ({}, 201, "key_"),
    "/v1/providers/connections": (POINTER, 201, "prv_"),
    "/v1/endpoints": ({}, 201, "ep_"),
    "/v1/compute": ({"name": "easel", "gpu_type": "NVIDIA A40"}, 201, "cmp_"),
    "/v1/storage": ({"name": "weights", "size_gb": 20}, 201, "sto_"),
    "/v1/templates": ({"name": "worker", "image": "example/worker:1"}, 201, "tpl_"),
    "/v1/agents": ({"name": "card-maker", "objective": "A card about tea"}, 201, "agt_"),
    "/v1/runs": (GATHER, 202, "run_"),
    "/v1/workflows": ({"name": "w", "nodes": [NODE]}, 202, "wfl_"),
    "/v1/tasks": ({"objective": "A short text about tea"}, 202, "tsk_"),
    "/v1/plans": ({"objective": "A short text about tea"}, 202, "pln_"),
}
OTHERS = [
    "/v1/account",
    "/v1/providers",
    "/v1/capabilities",
    "/v1/capabilities/llm.generate",
    "/v1/jobs",
    "/v1/artifacts",
    "/v1/catalog/gpus",
    "/v1/catalog/models",
    "/v1/usage",
    "/v1/billing",
    "/v1/health",
]


def walk(value: Any, name: str = "") -> list[tuple[str, Any]]:
    """Every scalar of a body, with the name of the member that it is in."""
    if isinstance(value, dict):
        return [one for key, inner in value.items() for one in walk(inner, key)]
    if isinstance(value, list):
        return [one for inner in value for one in walk(inner, name)]
    return [(name, value)]


def check_envelope(answer: httpx.Response) -> Json:
    """The body of an answer, which has to be an envelope as it was decided."""
    request_id = answer.headers["X-Request-Id"]
    assert re.fullmatch(f"req_{ULID}", request_id)
    body = answer.json()
    if answer.status_code >= 400:
        assert set(body) == {"error"}
        error = body["error"]
        assert {"code", "message", "request_id"} <= set(error)
        assert set(error) <= {"code", "message", "request_id", "details"}
        assert error["request_id"] == request_id
        assert error["message"].endswith(".")
        assert "\n" not in error["message"]
        assert all(set(one) == {"path", "message"} for one in error.get("details", []))
        return dict(body)
    assert {"data"} <= set(body) <= {"id", "status", "data", "error"}
    data = body["data"]
    for beside in ("id", "status"):
        assert body.get(beside) == data.get(beside)
    if "items" in data:
        assert set(data) == {"items", "count", "total", "next_cursor"}
        assert data["count"] == len(data["items"])
    for name, value in walk(data):
        if name.endswith("_at") and value is not None:
            assert re.fullmatch(TIME, value), (name, value)
        if name.endswith("_usd") and value is not None:
            assert type(value) in (int, float), (name, value)
        if re.fullmatch(r"id|(?!vendor_).*_id", name):  # the vendors' ids are their own
            ours = isinstance(value, str) and re.match(f"({PREFIXES})_", value)
            assert not ours or re.fullmatch(f"({PREFIXES})_{ULID}", value), (name, value)
    return dict(body)


# --- Envelope, ids, times, money ---


@pytest.mark.parametrize("path", COLLECTIONS)
def test_what_is_made_listed_read_and_missing_has_the_envelope(
    caller: RawCaller, path: str
) -> None:
    """Given a collection, then each answer of it is an envelope, with ids, times and money."""
    given, status, prefix = COLLECTIONS[path]
    answer = caller.send("POST", path, given)
    assert answer.status_code == status, answer.text
    made = check_envelope(answer)
    assert re.fullmatch(prefix + ULID, made["id"])
    listed = check_envelope(caller.send("GET", path))
    assert listed["data"]["items"][0]["id"] == made["id"]  # newest first
    assert check_envelope(caller.send("GET", f"{path}/{made['id']}"))["id"] == made["id"]
    missing = caller.send("GET", f"{path}/{prefix}{NOBODYS}")
    assert missing.status_code == 404
    assert check_envelope(missing)["error"]["code"] == "NOT_FOUND"
    wrong = caller.send("POST", path, {"surprise": 1})
    assert wrong.status_code == 400
    assert "surprise" in [one["path"] for one in check_envelope(wrong)["error"]["details"]]


@pytest.mark.parametrize("path", OTHERS)
def test_what_is_only_read_has_the_envelope(caller: RawCaller, path: str) -> None:
    """Given what can only be read, then it is an envelope too, and has no other method."""
    assert check_envelope(caller.send("GET", path))
    refused = caller.send("PUT", path)
    assert refused.status_code == 405
    assert check_envelope(refused)["error"]["code"] == "METHOD_NOT_ALLOWED"


@pytest.mark.parametrize(
    "path", ["/v1/endpoints", "/v1/storage", "/v1/templates", "/v1/compute", "/v1/agents"]
)
def test_a_delete_answers_with_the_last_state(caller: RawCaller, path: str) -> None:
    """Given what is deleted, then 200 with its last state, `deleted: true` in it."""
    body = dict(COLLECTIONS[path][0] or {}) | {"name": "short-lived"}
    made = caller.create(path, body)
    gone = caller.send("DELETE", f"{path}/{made['id']}")
    assert gone.status_code == 200
    assert check_envelope(gone)["data"]["deleted"] is True


@pytest.mark.parametrize("area", ["runs", "workflows", "tasks"])
def test_a_cancel_of_what_has_ended_changes_nothing(caller: RawCaller, area: str) -> None:
    """Given work that has ended, then a cancel is answered with 200 and the same record."""
    made = caller.create(f"/v1/{area}", COLLECTIONS[f"/v1/{area}"][0])
    ended = caller.poll(f"/v1/{area}/{made['id']}", "completed", "failed")
    answer = caller.send("POST", f"/v1/{area}/{made['id']}/cancel")
    assert answer.status_code == 200
    assert check_envelope(answer) == ended


# --- Status codes, row by row ---
