"""Two servers or kernels on one directory."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.crash.callers import FINAL
from tests.crash.processes import (
    CloudProcess,
    ForkServerClient,
    Process,
    Record,
    name_database,
    open_cloud,
    open_http,
    serve,
    sign_up,
)
from tests.crash.test_kill import chain
from tests.crash.trials.equal_rows import ROWS
from tests.support.database_pool import BOTH_DATABASES, DatabasePool, open_rows
from tests.support.timing import wait_until

RUNS = int(os.environ.get("TOOLKIT_TRIAL_RUNS", "24"))

LEASE_S = 1.0


@dataclass
class Pair:
    """Two servers, their cloud, and a caller's account that has connected a vendor."""

    cloud: CloudProcess
    data_dir: Path
    database: str | None
    urls: Sequence[str]
    children: Sequence[Process]
    headers: dict[str, str]
    http: httpx.Client

    def states(self, number: int, workflow_id: str) -> set[str]:
        """Return the statuses of a workflow's nodes, read from a server."""
        place = f"{self.urls[number]}/v1/workflows/{workflow_id}"
        data = self.http.get(place, headers=self.headers).json()["data"]
        return {node["status"] for node in data["nodes"]}

    def stop_between_writes(self) -> None:
        """Freeze the first server at a moment when it does not lock the database.

        A server that is frozen during a write to SQLite blocks all other writers, so no other
        server can take over (`docs/reliability.md`). It continues and is frozen again.
        """
        place, files = f"{self.urls[1]}/v1/artifacts", {"file": ("note.txt", b"Tides")}
        for _ in range(50):
            self.children[0].send_signal(signal.SIGSTOP)
            answer = self.http.post(place, files=files, headers=self.headers)
            if answer.status_code == 201:
                return
            self.children[0].send_signal(signal.SIGCONT)
        raise AssertionError(f"the first server always locks the database: {answer.text}")


@pytest.fixture(scope="module")
def pair(
    tmp_path_factory: pytest.TempPathFactory,
    fork_server: ForkServerClient,
    database_pool: DatabasePool | None,
) -> Iterator[Pair]:
    """Two servers with short leases, on a directory of their own."""
    data_dir = tmp_path_factory.mktemp("pair") / "data"
    with ExitStack() as stack:
        cloud = stack.enter_context(open_cloud(start=fork_server.start))
        database = None if database_pool is None else database_pool.find_url(data_dir)
        env = {"TOOLKIT_LEASE_S": str(LEASE_S), "TOOLKIT_SIGNUPS_PER_HOUR": "1000"}
        serving = (serve(cloud, data_dir, database, fork_server.start, **env) for _ in range(2))
        urls, children = zip(*map(stack.enter_context, serving), strict=True)
        http = stack.enter_context(open_http())
        yield Pair(cloud, data_dir, database, urls, children, sign_up(urls[0]), http)


def test_frozen_server_repeats_no_completed_call(pair: Pair) -> None:
    """Given a server that is frozen past its lease, when it continues, then it pays nothing twice.

    The other server has done the work by then. Only the call under way at the freeze may be
    repeated, as after a crash: if the freeze is between the check of the lease and the request,
    the frozen server sends the request late.
    """
    first = pair.urls[0]
    posted = pair.http.post(f"{first}/v1/workflows", json=chain(), headers=pair.headers)
    workflow_id = posted.json()["id"]
    wait_until(lambda: "completed" in pair.states(0, workflow_id), "it begins")
    pair.stop_between_writes()
    try:
        before = pair.states(1, workflow_id)
        wait_until(lambda: pair.states(1, workflow_id) == {"completed"}, "the other takes over")
    finally:
        pair.children[0].send_signal(signal.SIGCONT)
    assert "pending" in before
    # Its renewals, a few in each lease, report that the other server has its work.
    with open_rows(pair.data_dir, pair.database) as database:
        wait_until(
            lambda: not database.execute("SELECT 1 FROM roots WHERE open").fetchall(), "it ends"
        )
    alone = {"name": "llm.generate", "target": "capability", "input": {"objective": "And now?"}}
    headers = {**pair.headers, "Prefer": "wait=30"}
    response = pair.http.post(f"{first}/v1/runs", json=alone, headers=headers)
    assert response.json()["status"] == "completed"
    seen = [call["digest"] for call in pair.cloud.wait_until_quiet() if call["billed"]]
    nodes = chain()["nodes"]
    assert len(set(seen)) == len(nodes) + 1
    assert len(seen) - len(set(seen)) <= 1


def test_two_servers_share_an_allowance(pair: Pair, tell: Callable[[str], None]) -> None:
    """Given an allowance equal to the cost of some runs, then two servers reject none of them.

    A reservation is higher than the cost, so runs wait until others are paid. The sum of costs and
    reservations never exceeds the allowance.
    """

    def send(
        method: str, n: int, path: str, headers: dict[str, str], body: Record | None
    ) -> Record:
        url = f"{pair.urls[n % 2]}/v1{path}"
        answer = pair.http.request(method, url, json=body, headers=headers)
        assert answer.status_code < 300, answer.text
        data: Record = answer.json()["data"]
        return data

    def body(n: int) -> Record:
        fields = {"objective": f"Line {n:03} on tides", "max_tokens": 64}
        return {"name": "llm.generate", "target": "capability", "input": fields}

    def complete_runs(
        headers: dict[str, str], look: Callable[[], None] = lambda: None
    ) -> list[Record]:
        pending = [(n, send("POST", n, "/runs", headers, body(n))["id"]) for n in range(RUNS)]
        runs: list[Record] = []

        def is_over() -> bool:
            look()
            while pending:
                n, run_id = pending[0]
                run = send("GET", n, f"/runs/{run_id}", headers, None)
                if run["status"] not in FINAL:
                    return False
                runs.append(run)
                pending.pop(0)
            return True

        wait_until(is_over, "all runs end")
        return runs

    free = complete_runs(pair.headers)
    cost = sum(run["cost_usd"] for run in free)
    bounds = [run["reservation_usd"] - run["cost_usd"] for run in free]
    limit = round(cost + max(bounds), 9)
    assert limit < sum(run["reservation_usd"] for run in free)
    key = send("POST", 0, "/account/keys", pair.headers, {"max_cost_usd_per_day": limit})
    amounts: list[int] = []
    with open_rows(pair.data_dir, pair.database) as database:

        def look() -> None:
            rows = database.execute("SELECT key_id, nano FROM spending").fetchall()
            amounts.extend(nano for key_id, nano in rows if key_id == key["id"])

        paid = complete_runs({"Authorization": f"Bearer {key['api_key']}"}, look)
        look()
    assert [run["error"] for run in paid if run["status"] != "completed"] == []
    assert max(amounts) / 1e9 <= limit
    assert round(sum(run["cost_incurred_usd"] for run in paid), 9) <= amounts[-1] / 1e9
    tell(f"{RUNS} runs of ${cost:.6f} on two servers with ${limit:.6f}: none refused")


@pytest.mark.parametrize("database", BOTH_DATABASES)
def test_two_kernels_with_equal_rows_pay_each_row_once(
    database: str, fork_server: ForkServerClient, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Given two kernels that map the same rows at once, then no input is billed twice."""
    url = request.getfixturevalue("postgres_url") if database == "postgresql" else None
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    command = ["tests.crash.trials.equal_rows", str(tmp_path / "data"), str(meeting)]
    with open_cloud(latency_ms=200, start=fork_server.start) as cloud:
        env = {**cloud.environment(), **name_database(url)}
        kernels = [fork_server.start(command, env) for _ in range(2)]
        wait_until(lambda: len(list(meeting.iterdir())) == len(kernels), "both are ready")
        (meeting / "go").touch()
        assert [kernel.wait() for kernel in kernels] == [0, 0], fork_server.log.read_text()
        billed = Counter(call["digest"] for call in cloud.calls() if call["billed"])
    assert len(billed) == ROWS
    assert set(billed.values()) == {1}
