"""Rows of maps by the id of an uploaded table: JSON lines, CSV, Parquet and Arrow, and limits."""

import importlib
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.contract.raw_http import UNKNOWN_ULID, Json, RawCaller
from tests.contract.test_maps import build_map, finish
from tests.support.timing import wait_until

ROWS = [{"topic": "tea", "n": 1}, {"topic": "salt", "n": 2.5}, {"topic": "tea", "n": 1}]
LINES = "\n".join(map(json.dumps, ROWS)).encode()
TEMPLATE = {"objective": "{n} lines on {topic}"}


def build_table_map(artifact_id: str, template: Json = TEMPLATE) -> Json:
    """Build the body of a map whose rows are those of an artifact."""
    return {"capability": "llm.generate", "input": template, "artifact_id": artifact_id}


def read_objectives(caller: RawCaller, map_id: str) -> set[str]:
    """Wait for the end of a map, and return the objectives of its jobs."""
    finish(caller, map_id)
    rows = caller.get(f"/v1/maps/{map_id}/rows")["data"]["rows"]
    jobs = [caller.get(f"/v1/jobs/{row['job_id']}")["data"] for row in rows if row["job_id"]]
    return {job["input"]["objective"] for job in jobs}


def read_message(caller: RawCaller, artifact_id: str) -> str:
    """Add a faulty table to a new map, and return the message of the error."""
    map_id = caller.create("/v1/maps", build_map(input=TEMPLATE))["id"]
    answer = caller.send("POST", f"/v1/maps/{map_id}/rows", {"artifact_id": artifact_id})
    assert answer.status_code == 400
    assert caller.get(f"/v1/maps/{map_id}")["data"]["row_counts"]["total"] == 0
    return str(answer.json()["error"]["message"])


@pytest.mark.parametrize(
    "content",
    [
        LINES,
        b"\n" + LINES.replace(b"\n", b"\r\n\r\n") + b"\n",
        json.dumps(ROWS, indent=1).encode(),
        b"topic,n\ntea,1\nsalt,2.5\ntea,1\n",
        b'\xef\xbb\xbftopic;n;other\r\n"tea";1;\r\nsalt;2.5;"a;b"\r\n"tea";1;c\r\n',
        b"n\ttopic\n1\ttea\n\n2.5\tsalt\n1\ttea",
    ],
)
def test_rows_come_from_a_text(caller: RawCaller, content: bytes) -> None:
    """Given an artifact of JSON or CSV, then its rows run, and equal rows have one number."""
    artifact_id = caller.upload("rows", content)
    map_id = caller.create("/v1/maps", build_map(input=TEMPLATE))["id"]
    added = caller.send("POST", f"/v1/maps/{map_id}/rows", {"artifact_id": artifact_id})

    assert added.json()["data"] == {"numbers": [0, 1, 0], "last_end": 0}
    assert read_objectives(caller, map_id) == {"1 lines on tea", "2.5 lines on salt"}


def test_text_cells_are_sent_as_they_are(caller: RawCaller) -> None:
    """Given CSV, then a number keeps its zeros, and an empty cell is skipped."""
    artifact_id = caller.upload("rows.csv", b'topic,n\nsalt,007\ntea,\n"a ""b"", c",1e3\n')
    created = caller.create("/v1/maps", build_table_map(artifact_id))

    assert read_objectives(caller, created["id"]) == {"007 lines on salt", '1e3 lines on a "b", c'}
    record = finish(caller, created["id"])["data"]
    assert record["row_counts"]["skipped"] == 1


def _write_parquet(table: Any) -> bytes:
    sink = io.BytesIO()
    importlib.import_module("pyarrow.parquet").write_table(table, sink, row_group_size=2)
    return sink.getvalue()


def _write_ipc(name: str) -> Callable[[Any], bytes]:
    def write(table: Any) -> bytes:
        sink = io.BytesIO()
        open_writer = getattr(importlib.import_module("pyarrow.ipc"), name)
        with open_writer(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
        return sink.getvalue()

    return write


@pytest.mark.parametrize(
    "write", [_write_parquet, _write_ipc("new_file"), _write_ipc("new_stream")]
)
def test_rows_come_from_typed_columns(caller: RawCaller, write: Callable[[Any], bytes]) -> None:
    """Given Parquet or Arrow with types that JSON lacks, then the cells are texts or numbers."""
    pa = pytest.importorskip("pyarrow", reason="needs the extra `tables`")
    columns = {
        "topic": pa.array(["tea", "salt", None, "rope"]).dictionary_encode(),
        "n": pa.array([1, 2, 3, None], pa.int8()),
        "at": [datetime(2026, 11, 30, 8, tzinfo=UTC)] * 4,
        "unused": pa.array([b"\xff"] * 4),
    }
    artifact_id = caller.upload("rows", write(pa.table(columns)))
    template = {"objective": "{n} on {topic} at {at}"}
    created = caller.create("/v1/maps", build_table_map(artifact_id, template))

    moment = "2026-11-30 08:00:00+00:00"
    assert read_objectives(caller, created["id"]) == {
        f"1 on tea at {moment}",
        f"2 on salt at {moment}",
    }
    assert finish(caller, created["id"])["data"]["row_counts"]["skipped"] == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"topic,n\ntea\n", "has 1 cells on line 2, and 2 columns"),
        (b"topic,n,n\ntea,1,2\n", "two columns of the same name"),
        (b'topic,n\n"tea,1\n', "is no CSV on line"),
        (b'{"topic": "tea", "n": 1}\n{"topic":\n', "has no JSON on line 2"),
        (b'{"topic": "tea", "n": NaN}\n', "has no JSON on line 1"),
        (b'[{"topic": "tea", "n": 1}, 5]', "whose item 1 is no object"),
        (b'{"topic": "tea", "n": 1}\n7\n', "has no object on line 2"),
        (b"topic,n\n", "has no rows"),
        (b"\x00\xff\x00", "is no JSON lines, CSV, Parquet or Arrow"),
        (b"topic,count\ntea,1\n", 'no column `n`; there are topic, count'),
        (b"n,topic\n" + b"".join(b"%d,a\n" % n for n in range(100_001)), "more than 100,000 rows"),
        (b"n,topic\n" + b"".join(b"%d,%s\n" % (n, b"\1" * 2**20) for n in range(6)), "than 32 MiB"),
    ],
)  # fmt: skip
def test_refuses_a_faulty_table(caller: RawCaller, content: bytes, words: str) -> None:
    """Given a table that cannot be read whole, then it adds no row, and the error says why."""
    assert words in read_message(caller, caller.upload("rows", content))


@pytest.mark.parametrize("content", [b"PAR1 tea PAR1", b"ARROW1\0\0 tea", b"\xff\xff\xff\xff tea"])
def test_refuses_a_damaged_binary_table(caller: RawCaller, content: bytes) -> None:
    """Given damaged Parquet or Arrow, then the error says so, or names the missing extra."""
    try:
        importlib.import_module("pyarrow")
        words = "cannot be read as"
    except ModuleNotFoundError:
        words = "pip install 'capability-toolkit[tables]'"
    assert words in read_message(caller, caller.upload("rows", content))


def test_large_table_is_added_once(caller: RawCaller) -> None:
    """Given more rows than a page, when the request is repeated, then all have their numbers."""
    lines = [f"{n},{'tea' if n in (3, 2_400) else ''}" for n in range(2_500)]
    artifact_id = caller.upload("rows.csv", "\n".join(["n,topic", *lines, "3,tea"]).encode())
    body = build_table_map(artifact_id)
    answers = [caller.send("POST", "/v1/maps", body, Idempotency_Key="large") for _ in range(2)]
    first, second = (answer.json() for answer in answers)
    record = finish(caller, first["id"])["data"]
    again = caller.send("POST", f"/v1/maps/{first['id']}/rows", {"artifact_id": artifact_id})

    assert second["id"] == first["id"]
    assert first["data"]["row_counts"]["total"] == 2_500
    assert record["row_counts"]["completed"] == 2
    assert record["row_counts"]["skipped"] == 2_498
    assert again.json()["data"] == {"numbers": [*range(2_500), 3], "last_end": 2_500}


@pytest.mark.parametrize(
    "source",
    [{}, {"rows": [], "artifact_id": f"art_{UNKNOWN_ULID}"}, {"artifact_id": "tea"}],
)
def test_rows_have_one_source(caller: RawCaller, source: Json) -> None:
    """Given rows and an artifact, neither, or a wrong id, then the request is refused."""
    map_id = caller.create("/v1/maps", build_map())["id"]
    assert caller.read_error("POST", f"/v1/maps/{map_id}/rows", source).code == "INVALID_REQUEST"
    if source:
        body = {"capability": "llm.generate", "input": TEMPLATE, **source}
        assert caller.read_error("POST", "/v1/maps", body).code == "INVALID_REQUEST"


def test_artifact_of_another_account_is_unknown(caller: RawCaller) -> None:
    """Given the artifact of another account, then it is not found, and no map is made."""
    stranger = caller.sign_up("openai")
    artifact_id = caller.upload("rows.csv", b"topic\ntea\n")
    body = build_table_map(artifact_id)

    assert stranger.read_error("POST", "/v1/maps", body).code == "NOT_FOUND"
    assert stranger.get("/v1/maps")["data"]["items"] == []


def test_table_adds_rows_to_a_map_that_runs(caller: RawCaller) -> None:
    """Given a map with a row in progress, when a table is added, then its new rows run."""
    caller.faults.latency("*", mean_ms=100, spread_ms=0)
    map_id = caller.create("/v1/maps", build_map("tea"))["id"]
    artifact_id = caller.upload("rows.jsonl", b'{"topic": "tea"}\n{"topic": "salt"}\n')
    added = caller.send("POST", f"/v1/maps/{map_id}/rows", {"artifact_id": artifact_id})

    assert added.json()["data"]["numbers"] == [0, 1]
    wait_until(lambda: finish(caller, map_id)["data"]["row_counts"]["completed"] == 2)
