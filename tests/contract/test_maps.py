"""`/v1/maps` by raw HTTP: rows, their numbers and results, keys, budgets, errors and events."""

import base64
import hashlib

import pytest

from tests.contract.raw_http import UNKNOWN_ULID, Json, RawCaller
from tests.support.timing import wait_until
from toolkit.sandbox import Fault


def build_map(*rows: object, **changes: object) -> Json:
    """Build the body of a map with a template of one column."""
    body = {"capability": "llm.generate", "input": {"objective": "One line on {topic}"}}
    return {**body, "rows": [{"topic": topic} for topic in rows], **changes}


def finish(caller: RawCaller, map_id: str) -> Json:
    """Wait for the end of a map, and return its record."""
    return caller.poll(f"/v1/maps/{map_id}", "completed", "failed", "cancelled")


def read_rows(caller: RawCaller, map_id: str, after: int = 0) -> list[Json]:
    """Read the rows that ended after a number."""
    page = caller.get(f"/v1/maps/{map_id}/rows?after={after}")["data"]
    return list(page["rows"])


def test_accepts_a_map_and_runs_each_row(caller: RawCaller) -> None:
    """Given rows, then each is a job with an output, and the record counts them and their cost."""
    accepted = caller.send("POST", "/v1/maps", build_map("tea", "salt", "tea"))
    assert accepted.status_code == 202
    body = accepted.json()
    assert body["id"].startswith("map_")
    assert body["data"]["row_counts"]["total"] == 2  # equal rows are one

    record = finish(caller, body["id"])["data"]
    rows = read_rows(caller, body["id"])

    assert record["row_counts"] == {
        "total": 2, "queued": 0, "running": 0, "completed": 2, "failed": 0, "cancelled": 0,
        "skipped": 0,
    }  # fmt: skip
    assert sorted(row["row"] for row in rows) == [0, 1]
    assert [row["n"] for row in rows] == [1, 2]
    assert all(row["output"]["text"] for row in rows)
    assert record["cost_incurred_usd"] == pytest.approx(sum(row["cost_usd"] for row in rows))
    hashed = hashlib.sha256(b'{"topic":"tea"}').digest()[:16]
    digests = {row["row"]: row["digest"] for row in rows}
    assert base64.urlsafe_b64decode(digests[0] + "==") == hashed
    jobs = [caller.get(f"/v1/jobs/{row['job_id']}")["data"] for row in rows]
    assert {job["map_id"] for job in jobs} == {body["id"]}
    assert body["id"] in [item["id"] for item in caller.get("/v1/maps")["data"]["items"]]


def test_added_rows_keep_the_numbers_of_equal_rows(caller: RawCaller) -> None:
    """Given an ended map, when rows are added, then only new rows run, and all have numbers."""
    map_id = caller.create("/v1/maps", build_map("tea"))["id"]
    finish(caller, map_id)
    page = {"rows": [{"topic": "rope", "ignored": 1}, {"topic": "tea"}, {"topic": "rope"}]}
    added = caller.send("POST", f"/v1/maps/{map_id}/rows", page).json()["data"]

    assert added == {"numbers": [1, 0, 1], "last_end": 1}
    assert finish(caller, map_id)["data"]["row_counts"]["completed"] == 2
    assert [row["row"] for row in read_rows(caller, map_id, after=1)] == [1]


def test_key_names_one_map(caller: RawCaller) -> None:
    """Given a key, then a second request has the same map with new limits, or is refused."""
    first = caller.create("/v1/maps", build_map("tea", key="tides"))
    finish(caller, first["id"])
    second = caller.create("/v1/maps", build_map("salt", key="tides", max_cost_usd=1.0))
    record = finish(caller, second["id"])["data"]

    assert second["id"] == first["id"]
    assert record["max_cost_usd"] == 1.0
    assert record["row_counts"]["completed"] == 2
    other = build_map("tea", key="tides", input={"objective": "On {topic}"})
    assert caller.read_error("POST", "/v1/maps", other).code == "CONFLICT"


def test_budget_leaves_rows_that_a_higher_limit_runs(caller: RawCaller) -> None:
    """Given a budget for some rows, then the map fails with the reason until it is raised."""
    topics = [f"topic {n}" for n in range(6)]
    body = build_map(*topics, key="budget", options={"provider": "openai"}, concurrency=1)
    route = {
        "name": "llm.generate",
        "input": {"objective": "One line on topic 0"},
        "options": {"provider": "openai"},
    }
    bound = caller.send("POST", "/v1/route", {"target": "capability", **route}).json()["data"]
    limit = bound["reservation_usd"] * 1.0001
    ended = finish(caller, caller.create("/v1/maps", {**body, "max_cost_usd": limit})["id"])["data"]

    assert ended["status"] == "failed"
    assert ended["error"]["code"] == "BUDGET_EXCEEDED"
    assert 0 < ended["row_counts"]["completed"] < 6
    assert ended["row_counts"]["queued"] == 6 - ended["row_counts"]["completed"]
    assert ended["cost_incurred_usd"] <= limit
    mean = ended["cost_incurred_usd"] / ended["row_counts"]["completed"]
    assert ended["estimated_cost_usd"] == pytest.approx(6 * mean, rel=1e-6)
    again = caller.create("/v1/maps", {**body, "max_cost_usd": 1.0})
    assert finish(caller, again["id"])["data"]["row_counts"]["completed"] == 6


def test_empty_cells_need_no_job(caller: RawCaller) -> None:
    """Given a null in a column of the template, then its row is skipped with the reason."""
    map_id = caller.create("/v1/maps", build_map("tea", None))["id"]
    record = finish(caller, map_id)["data"]

    assert record["row_counts"]["skipped"] == 1
    assert record["reasons"] == {"INVALID_REQUEST": 1}
    (skipped,) = [row for row in read_rows(caller, map_id) if row["status"] == "skipped"]
    assert skipped["error"]["message"] == "`topic` is empty in this row."
    assert skipped["job_id"] is None


def test_failed_rows_stop_a_map_and_run_again_when_added(caller: RawCaller) -> None:
    """Given rows that fail, then the map stops at the limit, and added failed rows run again."""
    caller.faults.fail("openai", status=400, times=2)
    body = build_map("a", "b", "c", on_error=2, concurrency=1, options={"provider": "openai"})
    map_id = caller.create("/v1/maps", body)["id"]
    stopped = finish(caller, map_id)["data"]
    assert stopped["status"] == "failed"
    assert stopped["error"]["code"] == "PROVIDER_REJECTED"
    assert (stopped["row_counts"]["failed"], stopped["row_counts"]["queued"]) == (2, 1)

    caller.send("POST", f"/v1/maps/{map_id}/rows", {"rows": body["rows"]})
    assert finish(caller, map_id)["data"]["row_counts"]["completed"] == 3


def test_cancel_ends_rows_in_progress(caller: RawCaller) -> None:
    """Given rows whose vendor does not answer, then a cancel ends them, and begins no other."""
    caller.faults.add(Fault("minimax", mangle="hang"))
    map_id = caller.create("/v1/maps", build_map("a", "b", "c", "d", "e"))["id"]
    wait_until(lambda: caller.get(f"/v1/maps/{map_id}")["data"]["row_counts"]["running"] == 3)
    record = caller.send("POST", f"/v1/maps/{map_id}/cancel").json()["data"]
    caller.faults.clear()

    assert record["status"] == "cancelled"
    assert (record["row_counts"]["cancelled"], record["row_counts"]["queued"]) == (3, 2)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"input": {"objective": "One line on {colour}"}}, "INVALID_REQUEST"),
        ({"input": {"objective": "One line on {topic"}}, "INVALID_REQUEST"),
        ({"input": {"objectiv": "One line on {topic}"}}, "INVALID_REQUEST"),
        ({"on_error": 0}, "INVALID_REQUEST"),
        ({"capability": "tea.brew"}, "NOT_FOUND"),
        ({"options": {"provider": "mistral"}}, "CREDENTIALS_MISSING"),
    ],
)
def test_refuses_a_map_that_cannot_run(caller: RawCaller, changes: Json, code: str) -> None:
    """Given a fault that concerns every row, then nothing is accepted."""
    before = len(caller.get("/v1/maps")["data"]["items"])
    assert caller.read_error("POST", "/v1/maps", build_map("tea", **changes)).code == code
    assert len(caller.get("/v1/maps")["data"]["items"]) == before


def test_events_report_rows_and_the_end(caller: RawCaller) -> None:
    """Given a map, then its events are its states and the end of each row, in order."""
    map_id = caller.create("/v1/maps", build_map("tea", "salt"))["id"]
    finish(caller, map_id)
    events = caller.get(f"/v1/maps/{map_id}/events")["data"]["items"]

    assert [event["type"] for event in events] == [
        "map.queued", "map.running", "row.completed", "row.completed", "map.completed",
    ]  # fmt: skip
    assert sorted(e["data"]["row"] for e in events if e["type"] == "row.completed") == [0, 1]
    unknown = f"/v1/maps/map_{UNKNOWN_ULID}"
    assert caller.read_error("GET", f"{unknown}/rows").code == "NOT_FOUND"


def test_lists_maps_by_a_filter(caller: RawCaller) -> None:
    """Given maps that differ, then each filter finds some, each with the state of its rows."""
    caller = caller.sign_up("openai", "minimax")
    pinned = {"options": {"provider": "openai"}}
    tea = caller.create("/v1/maps", build_map("tea", "salt", tags=["spring", "a"], **pinned))["id"]
    finish(caller, tea)
    empty = caller.create("/v1/maps", build_map(None, note="Nothing to do"))["id"]
    finish(caller, empty)
    waiting = caller.create("/v1/maps", build_map(tags=["spring"]))["id"]
    facts = {
        "capability": "research.gather", "input": {"topic": "{topic}"},
        "rows": [{"topic": "Tidal power"}],
    }  # fmt: skip
    gather = caller.create("/v1/maps", facts)["id"]
    created_at = finish(caller, gather)["data"]["created_at"]
    ids = [gather, waiting, empty, tea]
    costs = {id: caller.get(f"/v1/maps/{id}")["data"]["cost_incurred_usd"] for id in ids}
    most = max(costs.values())
    by_openai = "openai" in {row["provider"] for row in read_rows(caller, gather)}

    for query, expected in {
        "": ids,
        "status=completed": [gather, empty, tea],
        "status=queued": [waiting],
        "tag=spring": [waiting, tea],
        "tag=spring,a": [tea],
        "capability=llm.generate": [waiting, empty, tea],
        "capability=research.gather@1": [gather],
        "provider=openai": [gather, tea] if by_openai else [tea],
        "provider=mistral": [],
        f"min_cost_usd={most}": [id for id in ids if costs[id] == most],
        f"min_cost_usd={most * 1.01}": [],
        f"max_cost_usd={most * 0.99}": [id for id in ids if costs[id] < most],
        "max_cost_usd=0": [waiting, empty],
        "q=one%20LINE": [waiting, empty, tea],
        f"since={created_at}": [gather],
        f"until={created_at}&tag=spring": [waiting, tea],
    }.items():
        listed = caller.get(f"/v1/maps?{query}")["data"]
        assert [item["id"] for item in listed["items"]] == expected, query
        assert listed["total"] == len(expected), query
        for item in listed["items"]:
            assert item == caller.get(f"/v1/maps/{item['id']}")["data"]
    assert caller.get(f"/v1/maps/{waiting}")["data"]["estimated_cost_usd"] is None
    assert caller.read_error("GET", "/v1/maps?status=done").code == "INVALID_REQUEST"
