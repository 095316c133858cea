"""Two real servers on one directory: one that stands still loses its work, and money is shared."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.crash.processes import (
    CloudProcess,
    ForkServerClient,
    Process,
    open_cloud,
    open_http,
    serve,
    sign_up,
)
from tests.crash.test_kill import chain
from tests.support.database_pool import DatabasePool, open_rows
from tests.support.timing import wait_until

RUNS = int(os.environ.get("TOOLKIT_TRIAL_RUNS", "24"))
LEASE_S = 1.0
FINAL = {"completed", "failed", "cancelled"}


@dataclass
class Pair:
    """Two servers, the cloud that both call, and a caller who has connected a vendor."""

    cloud: CloudProcess
    data_dir: Path
    database: str | None
    urls: Sequence[str]
    children: Sequence[Process]
    headers: dict[str, str]
    http: httpx.Client

    def states(self, number: int, workflow_id: str) -> set[str]:
        """The states of the nodes of a workflow, as one of the servers tells them."""
        place = f"{self.urls[number]}/v1/workflows/{workflow_id}"
        data = self.http.get(place, headers=self.headers).json()["data"]
        return {node["status"] for node in data["nodes"]}

    def stop_between_writes(self) -> None:
        """Stop the first server where it does not hold the database.

        One that is stopped in the middle of a write to SQLite keeps everyone from writing, and
        nobody can take over (`docs/reliability.md`): it is sent on and stopped again.
        """
        place, files = f"{self.urls[1]}/v1/artifacts", {"file": ("note.txt", b"Tides")}
        for _ in range(50):
            self.children[0].send_signal(signal.SIGSTOP)
            answer = self.http.post(place, files=files, headers=self.headers)
            if answer.status_code == 201:
                return
            self.children[0].send_signal(signal.SIGCONT)
        raise AssertionError(f"the first server always holds the database: {answer.text}")


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
        told = {"TOOLKIT_LEASE_S": str(LEASE_S), "TOOLKIT_SIGNUPS_PER_HOUR": "1000"}
        serving = (serve(cloud, data_dir, database, fork_server.start, **told) for _ in range(2))
        urls, children = zip(*map(stack.enter_context, serving), strict=True)
        http = stack.enter_context(open_http())
        yield Pair(cloud, data_dir, database, urls, children, sign_up(urls[0]), http)


def test_who_stood_still_pays_nothing_twice(pair: Pair) -> None:
    """Given a server that is stopped past its lease, when it goes on, then it pays nothing twice.

    The other one has done the work by then. What was under way as the first was stopped may have
    been asked for once more, as after a crash, and nothing else was: where it was stopped between
    its last look at the lease and the write of the request, it sends that one late.
    """
    first = pair.urls[0]
    posted = pair.http.post(f"{first}/v1/workflows", json=chain(), headers=pair.headers)
    workflow_id = posted.json()["id"]
    wait_until(lambda: "completed" in pair.states(0, workflow_id), "it begins")
    pair.stop_between_writes()
    try:
        before = pair.states(1, workflow_id)
        wait_until(lambda: pair.states(1, workflow_id) == {"completed"}, "the other one takes over")
    finally:
        pair.children[0].send_signal(signal.SIGCONT)
    assert "pending" in before
    # Its own renewals find out that others have its work, a few times in each lease.
    with open_rows(pair.data_dir, pair.database) as database:
        wait_until(
            lambda: not database.execute("SELECT 1 FROM roots WHERE open").fetchall(), "it ends"
        )
    alone = {"name": "llm.generate", "target": "capability", "input": {"objective": "And now?"}}
    headers = {**pair.headers, "Prefer": "wait=30"}
    asked = pair.http.post(f"{first}/v1/runs", json=alone, headers=headers)
    assert asked.json()["status"] == "completed"
    seen = [call["digest"] for call in pair.cloud.wait_until_quiet() if call["billed"]]
    nodes = chain()["nodes"]
    assert len(set(seen)) == len(nodes) + 1  # type: ignore[arg-type]
    assert len(seen) - len(set(seen)) <= 1


def test_what_fits_an_allowance_is_not_refused(pair: Pair, tell: Callable[[str], None]) -> None:
    """Given a key whose allowance is what its runs cost, then two servers refuse none of them.

    What one run may come to is more than it costs, so they wait for each other to be paid; and what
    is spent and reserved is never more than is allowed.
    """

    def post(n: int, path: str, body: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
        answer = pair.http.post(f"{pair.urls[n % 2]}/v1{path}", json=body, headers=headers)
        assert answer.status_code < 300, answer.text
        data: dict[str, Any] = answer.json()["data"]
        return data

    def body(n: int) -> dict[str, Any]:
        given = {"objective": f"Line {n:03} on tides", "max_tokens": 64}
        return {"name": "llm.generate", "target": "capability", "input": given}

    def all_done(
        headers: dict[str, str], look: Callable[[], None] = lambda: None
    ) -> list[dict[str, Any]]:
        made = [post(n, "/runs", body(n), headers)["id"] for n in range(RUNS)]
        done: dict[str, dict[str, Any]] = {}

        def over() -> bool:
            look()
            for n, run_id in enumerate(made):
                if run_id not in done:
                    place = f"{pair.urls[n % 2]}/v1/runs/{run_id}"
                    run = pair.http.get(place, headers=headers).json()["data"]
                    if run["status"] not in FINAL:
                        return False
                    done[run_id] = run
            return True

        wait_until(over, "all runs end")
        return list(done.values())

    free = all_done(pair.headers)
    cost = sum(run["cost_usd"] for run in free)
    bounds = [run["reservation_usd"] - run["cost_usd"] for run in free]
    limit = round(cost + max(bounds), 9)
    assert limit < sum(run["reservation_usd"] for run in free)  # they do not fit at once
    made = post(0, "/account/keys", {"max_cost_usd_per_day": limit}, pair.headers)
    held: list[int] = []
    with open_rows(pair.data_dir, pair.database) as database:

        def look() -> None:
            rows = database.execute("SELECT key_id, nano FROM spending").fetchall()
            held.extend(nano for key_id, nano in rows if key_id == made["id"])

        paid = all_done({"Authorization": f"Bearer {made['api_key']}"}, look)
        look()
    assert [run["error"] for run in paid if run["status"] != "completed"] == []
    assert max(held) / 1e9 <= limit
    assert round(sum(run["cost_incurred_usd"] for run in paid), 9) <= held[-1] / 1e9
    tell(f"{RUNS} runs of ${cost:.6f} on two servers with ${limit:.6f}: none refused")
