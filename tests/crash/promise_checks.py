"""Compares the promises of servers with their records after a restart.

The vendor cloud is a process of its own, which survives. Its log has all calls and bills,
independently of the server's records. The ledger has the server's acknowledgements and completed
jobs. `check_promises` compares both with the records of a restarted server.
"""

import hashlib
import sqlite3
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg

from tests.crash.callers import FINAL, Caller, Ledger, Person
from tests.crash.processes import CloudProcess, Record
from tests.support.timing import wait_until
from toolkit.sandbox.state import SandboxState

_LIST_TRANSACTIONS_SQL = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
    " AND xact_start IS NOT NULL AND pid <> pg_backend_pid()"
)
# States of attempts without a recorded answer, whose calls may be billed.
CUT_OFF = frozenset({"interrupted", "cancelled"})


@dataclass
class PromiseIssues:
    """The broken promises, and the number of checked records of each kind."""

    wrong: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def check_promises(
    caller: Caller,
    cloud: CloudProcess,
    ledger: Ledger,
    cancelled: frozenset[str] = frozenset(),
) -> PromiseIssues:
    """Check all promises after all work has ended.

    Args:
        caller: reads the records.
        cloud: has the log of calls.
        ledger: acknowledgements and completed jobs.
        cancelled: paths that a caller has cancelled.
    """
    issues = PromiseIssues()
    calls = [call for call in cloud.wait_until_quiet() if call["n"] > ledger.first_call]
    jobs: dict[str, Record] = {}
    _check_acknowledged(caller, ledger, issues)
    for person in ledger.people:
        mine = {job["id"]: job for job in caller.list_all("/v1/jobs", person)}
        jobs |= mine
        workflows = caller.list_all("/v1/workflows", person)
        _check_workflows(caller, person, workflows, mine, issues)
        _check_final_states(caller, person, cancelled, issues)
        _check_artifacts(caller, person, mine.values(), issues)
    _check_shown(caller, ledger, jobs, issues)
    _check_attempts(jobs.values(), ledger, issues)
    _check_calls(calls, jobs.values(), ledger, issues)
    issues.counts.update(
        kills=len(ledger.kills),
        acknowledged=len(ledger.acknowledged),
        jobs=len(jobs),
        shown_before_a_kill=sum(
            kill < len(ledger.kills) for _, _, kill in ledger.completed.values()
        ),
    )
    return issues


def _check_acknowledged(caller: Caller, ledger: Ledger, issues: PromiseIssues) -> None:
    """Check that every acknowledged resource exists (promise P1)."""
    for path, person in ledger.acknowledged.items():
        status = caller.get(path.partition("?")[0], person).status_code
        if status != 200:
            issues.wrong.append(f"{path} was acknowledged, and now answers {status}")


def _check_final_states(
    caller: Caller, person: Person, cancelled: frozenset[str], issues: PromiseIssues
) -> None:
    """Check that all work is final (promise P5) and completed, as no vendor has failed."""
    for area in ("workflows", "runs", "tasks"):
        for item in caller.list_all(f"/v1/{area}", person):
            issues.counts[item["status"]] += 1
            paths = f"/v1/{area}/{item['id']}", f"/v1/tasks/{item.get('task_id')}"
            if item["status"] == "cancelled" and not cancelled.isdisjoint(paths):
                continue
            # A reviewer may reject the result of a task.
            if item["status"] != "completed" and (area, item["status"]) != ("tasks", "failed"):
                issues.wrong.append(f"{item['id']} is {item['status']}: {item.get('error')}")


def _check_workflows(
    caller: Caller,
    person: Person,
    workflows: Sequence[Record],
    jobs: Mapping[str, Record],
    issues: PromiseIssues,
) -> None:
    """Check that each node has a single job with the artifacts of its upstream, and ended once."""
    of_node: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for job in jobs.values():
        if job["workflow_id"]:
            of_node[job["workflow_id"], job["node_id"]].append(job["id"])
    for (workflow_id, node_id), ids in of_node.items():
        if len(ids) > 1:
            issues.wrong.append(f"{workflow_id} {node_id} has the jobs {ids}")
    for workflow in workflows:
        nodes = {node["id"]: node for node in workflow["nodes"]}
        mine = [jobs[node["job_id"]] for node in nodes.values() if node["job_id"]]
        jobs_here = [job for job in mine if job["workflow_id"] == workflow["id"]]
        for job in jobs_here:
            for up, artifact_id in job["input"].get("from_artifacts", {}).items():
                if nodes[up]["artifact_id"] != artifact_id:
                    issues.wrong.append(f"{job['id']} worked from another artifact of {up}")
        spent = sum(job["cost_incurred_usd"] for job in jobs_here)
        if abs(spent - workflow["cost_incurred_usd"]) > 1e-6:
            issues.wrong.append(f"{workflow['id']} says it spent {workflow['cost_incurred_usd']}")
        events = caller.get(f"/v1/workflows/{workflow['id']}/events", person).json()["data"]
        ends = Counter(
            (event["type"], event["data"].get("node_id"))
            for event in events["items"]
            if event["type"].rpartition(".")[2] in FINAL
        )
        for end, times in ends.items():
            if times > 1:
                issues.wrong.append(f"{workflow['id']} has {times} events of {end}")
        if len(ends) != len(nodes) + 1:
            issues.wrong.append(f"{workflow['id']} has these final events: {sorted(ends)}")


def _check_artifacts(caller: Caller, person: Person, jobs: Any, issues: PromiseIssues) -> None:
    """Check that a completed job has an artifact with the recorded bytes (promise P4)."""
    for job in jobs:
        if job["status"] != "completed":
            continue
        record = caller.get(f"/v1/artifacts/{job['artifact_id']}", person)
        content = caller.get(f"/v1/artifacts/{job['artifact_id']}/content", person)
        if record.status_code != 200 or content.status_code != 200:
            issues.wrong.append(f"the artifact of {job['id']} cannot be read")
            continue
        artifact = record.json()["data"]
        same = hashlib.sha256(content.content).hexdigest() == artifact["sha256"]
        if not same or len(content.content) != artifact["size_bytes"]:
            issues.wrong.append(f"{artifact['id']} has other bytes than recorded")
        issues.counts["artifacts"] += 1


def _check_shown(
    caller: Caller, ledger: Ledger, jobs: Mapping[str, Record], issues: PromiseIssues
) -> None:
    """Check that jobs that a caller has read as completed are unchanged."""
    for job_id, (facts, _, _) in ledger.completed.items():
        job = jobs.get(job_id)
        now = job and {name: job[name] for name in facts}
        if now != facts:
            issues.wrong.append(f"{job_id} was shown as {facts} and is {now}")


def _check_attempts(jobs: Any, ledger: Ledger, issues: PromiseIssues) -> None:
    """Check that only kills interrupt attempts, and that their costs are the job's cost."""
    for job in jobs:
        paid = [attempt for attempt in job["attempts"] if attempt["provider"]]
        if abs(sum(a["cost_usd"] or 0 for a in paid) - job["cost_incurred_usd"]) > 1e-6:
            issues.wrong.append(f"{job['id']} says it spent {job['cost_incurred_usd']}: {paid}")
        for first, again in pairwise(paid):
            # A kill may lose an answer after it was counted, while a worker process reads it.
            if first["status"] == "completed" and not _has_kill_between(
                first["started_at"], again["started_at"], ledger
            ):
                issues.wrong.append(f"{job['id']} was done twice: {paid}")
        issues.counts["attempts"] += len(paid)
        for attempt in job["attempts"]:
            if attempt["status"] == "running":
                issues.wrong.append(f"{job['id']} has an attempt that runs on")
            if attempt["status"] != "interrupted":
                continue
            if not _has_kill_between(attempt["started_at"], attempt["ended_at"], ledger):
                issues.wrong.append(f"{job['id']} was interrupted when nothing was killed")
            issues.counts["interrupted"] += bool(attempt["provider"])


def _has_kill_between(start: str, end: str, ledger: Ledger) -> bool:
    """Return whether a kill overlaps a period."""
    first, last = datetime.fromisoformat(start), datetime.fromisoformat(end)
    return any(first <= kill.over and kill.at <= last for kill in ledger.kills)


def _check_calls(calls: Sequence[Record], jobs: Any, ledger: Ledger, issues: PromiseIssues) -> None:
    """Check that each billed call is an attempt of a job, or was in flight at a kill.

    The cloud computes the ids of requests from the input and the number of equal calls, so that
    each attempt with an id leads to its call.
    """
    billed: defaultdict[str, list[int]] = defaultdict(list)
    seen: defaultdict[str, list[int]] = defaultdict(list)
    cloud = SandboxState(0, 0)
    by_request: dict[str, str] = {}
    for call in calls:
        digest = call["digest"]
        seen[digest].append(call["n"])
        # Anthropic's ids are shorter. An id in the body is the same for all equal calls.
        fresh = cloud.compute_fresh_digest("request", digest)
        by_request |= dict.fromkeys((fresh[:32], fresh[:24], digest[:32], digest[:22]), digest)
        if call["billed"] and call["status"] == 200:
            billed[digest].append(call["n"])
    claimed: Counter[str] = Counter()
    excused: Counter[str] = Counter()
    spare = unknown = 0  # unknown: jobs without an answer, whose calls cannot be found
    for job in jobs:
        digests = [
            by_request.get(attempt["vendor_request_id"].removeprefix("req_"), "")
            for attempt in job["attempts"]
            if attempt["vendor_request_id"]
        ]
        claimed.update(digests)
        cut = sum(a["status"] in CUT_OFF and bool(a["provider"]) for a in job["attempts"])
        if len(set(digests)) == 1:
            excused[digests[0]] += cut
        elif not digests:
            unknown += cut
        spare += cut
        if job["id"] in ledger.completed:
            kill = ledger.completed[job["id"]][2]
            calls_before = ledger.kills[kill].calls if kill < len(ledger.kills) else sys.maxsize
            if any(n > calls_before for digest in digests for n in seen[digest]):
                issues.wrong.append(f"{job['id']} was read as completed, and then called again")
    extra = 0
    for digest, numbers in billed.items():
        over = len(numbers) - claimed[digest]
        extra += max(0, over)
        unexcused = over - excused[digest]
        if 0 < unexcused <= unknown:
            unknown -= unexcused
        elif unexcused > 0:
            issues.wrong.append(
                f"{digest[:8]} was billed {len(numbers)} times, claimed {claimed[digest]} times,"
                f" and in flight at {excused[digest]} kills"
            )
    if extra > spare:
        issues.wrong.append(f"{extra} calls more than claimed, and {spare} attempts interrupted")
    issues.counts.update(billed=sum(map(len, billed.values())), billed_again=extra)


def is_database_intact(data_dir: Path, url: str | None = None) -> bool:
    """Return whether the database of a stopped server is intact.

    SQLite checks its file. No client can damage PostgreSQL, but a client that died may have left a
    transaction that keeps its locks.
    """
    if url is not None:
        with psycopg.connect(url, autocommit=True) as session:
            wait_until(lambda: not session.execute(_LIST_TRANSACTIONS_SQL).fetchall())
        return True
    with closing(sqlite3.connect(data_dir / "state.db")) as connection:
        (answer,) = connection.execute("PRAGMA integrity_check").fetchone()
    return bool(answer == "ok")
