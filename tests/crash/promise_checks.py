"""Holds what servers had promised against what is there afterwards.

The vendor cloud is a process of its own which survives. Its log tells which calls were made and
billed, whatever the server believes; the ledger remembers what the server had acknowledged and
shown. `examined` holds the two against what a restarted server says.
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
# States of attempts whose answer nobody has read, though their calls may be billed.
CUT_OFF = frozenset({"interrupted", "cancelled"})


@dataclass
class PromiseIssues:
    """The broken promises, and how much was looked at."""

    wrong: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def check_promises(
    caller: Caller,
    cloud: CloudProcess,
    ledger: Ledger,
    cancelled: frozenset[str] = frozenset(),
) -> PromiseIssues:
    """Hold what is there against what was promised; everything has ended by now.

    Args:
        caller: reads what is there.
        cloud: knows which calls were made.
        ledger: what was acknowledged and shown.
        cancelled: the paths of what was asked to be cancelled.
    """
    found = PromiseIssues()
    calls = [call for call in cloud.wait_until_quiet() if call["n"] > ledger.first_call]
    jobs: dict[str, Record] = {}
    _check_acknowledged(caller, ledger, found)
    for person in ledger.people:
        mine = {job["id"]: job for job in caller.list_all("/v1/jobs", person)}
        jobs |= mine
        workflows = caller.list_all("/v1/workflows", person)
        _check_workflows(caller, person, workflows, mine, found)
        _check_final_states(caller, person, cancelled, found)
        _check_artifacts(caller, person, mine.values(), found)
    _check_shown(caller, ledger, jobs, found)
    _check_attempts(jobs.values(), ledger, found)
    _check_calls(calls, jobs.values(), ledger, found)
    found.counts.update(
        kills=len(ledger.kills),
        acknowledged=len(ledger.acknowledged),
        jobs=len(jobs),
        shown_before_a_kill=sum(
            kill < len(ledger.kills) for _, _, kill in ledger.completed.values()
        ),
    )
    return found


def _check_acknowledged(caller: Caller, ledger: Ledger, found: PromiseIssues) -> None:
    """Everything that was acknowledged is there (promise P1)."""
    for path, person in ledger.acknowledged.items():
        status = caller.get(path.partition("?")[0], person).status_code
        if status != 200:
            found.wrong.append(f"{path} was acknowledged and is answered with {status}")


def _check_final_states(
    caller: Caller, person: Person, cancelled: frozenset[str], found: PromiseIssues
) -> None:
    """All is in a final state (promise P5), and nothing has failed: nothing gave cause to."""
    for area in ("workflows", "runs", "tasks"):
        for item in caller.list_all(f"/v1/{area}", person):
            found.counts[item["status"]] += 1
            asked = f"/v1/{area}/{item['id']}", f"/v1/tasks/{item.get('task_id')}"
            if item["status"] == "cancelled" and not cancelled.isdisjoint(asked):
                continue
            # A reviewer may well find a task's result wanting.
            if item["status"] != "completed" and (area, item["status"]) != ("tasks", "failed"):
                found.wrong.append(f"{item['id']} is {item['status']}: {item.get('error')}")


def _check_workflows(
    caller: Caller,
    person: Person,
    workflows: Sequence[Record],
    jobs: Mapping[str, Record],
    found: PromiseIssues,
) -> None:
    """Each node is one job, which worked from what its upstream shows, and ended once."""
    of_node: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for job in jobs.values():
        if job["workflow_id"]:
            of_node[job["workflow_id"], job["node_id"]].append(job["id"])
    for (workflow_id, node_id), ids in of_node.items():
        if len(ids) > 1:
            found.wrong.append(f"{workflow_id} {node_id} has the jobs {ids}")
    for workflow in workflows:
        nodes = {node["id"]: node for node in workflow["nodes"]}
        mine = [jobs[node["job_id"]] for node in nodes.values() if node["job_id"]]
        own = [job for job in mine if job["workflow_id"] == workflow["id"]]
        for job in own:
            for up, artifact_id in job["input"].get("from_artifacts", {}).items():
                if nodes[up]["artifact_id"] != artifact_id:
                    found.wrong.append(f"{job['id']} worked from another artifact of {up}")
        spent = sum(job["cost_incurred_usd"] for job in own)
        if abs(spent - workflow["cost_incurred_usd"]) > 1e-6:
            found.wrong.append(f"{workflow['id']} says it spent {workflow['cost_incurred_usd']}")
        events = caller.get(f"/v1/workflows/{workflow['id']}/events", person).json()["data"]
        ends = Counter(
            (event["type"], event["data"].get("node_id"))
            for event in events["items"]
            if event["type"].rpartition(".")[2] in FINAL
        )
        for end, times in ends.items():
            if times > 1:
                found.wrong.append(f"{workflow['id']} tells of {end} {times} times")
        if len(ends) != len(nodes) + 1:
            found.wrong.append(f"{workflow['id']} tells of these ends: {sorted(ends)}")


def _check_artifacts(caller: Caller, person: Person, jobs: Any, found: PromiseIssues) -> None:
    """A completed job has an artifact whose bytes are those recorded (promise P4)."""
    for job in jobs:
        if job["status"] != "completed":
            continue
        record = caller.get(f"/v1/artifacts/{job['artifact_id']}", person)
        content = caller.get(f"/v1/artifacts/{job['artifact_id']}/content", person)
        if record.status_code != 200 or content.status_code != 200:
            found.wrong.append(f"the artifact of {job['id']} cannot be read")
            continue
        artifact = record.json()["data"]
        same = hashlib.sha256(content.content).hexdigest() == artifact["sha256"]
        if not same or len(content.content) != artifact["size_bytes"]:
            found.wrong.append(f"{artifact['id']} has other bytes than recorded")
        found.counts["artifacts"] += 1


def _check_shown(
    caller: Caller, ledger: Ledger, jobs: Mapping[str, Record], found: PromiseIssues
) -> None:
    """Check that all that was shown as completed is as it was."""
    for job_id, (facts, _, _) in ledger.completed.items():
        job = jobs.get(job_id)
        now = job and {name: job[name] for name in facts}
        if now != facts:
            found.wrong.append(f"{job_id} was shown as {facts} and is {now}")


def _check_attempts(jobs: Any, ledger: Ledger, found: PromiseIssues) -> None:
    """Attempts are interrupted by kills alone, each by one, and cost what the job says."""
    for job in jobs:
        paid = [attempt for attempt in job["attempts"] if attempt["provider"]]
        if abs(sum(a["cost_usd"] or 0 for a in paid) - job["cost_incurred_usd"]) > 1e-6:
            found.wrong.append(f"{job['id']} says it spent {job['cost_incurred_usd']}: {paid}")
        for first, again in pairwise(paid):
            # Its answer was counted, and then lost with the process that was looking at it.
            if first["status"] == "completed" and not _was_killed_between(first, again, ledger):
                found.wrong.append(f"{job['id']} was done twice: {paid}")
        found.counts["attempts"] += len(paid)
        for attempt in job["attempts"]:
            if attempt["status"] == "running":
                found.wrong.append(f"{job['id']} has an attempt that runs on")
            if attempt["status"] != "interrupted":
                continue
            began = datetime.fromisoformat(attempt["started_at"])
            ended = datetime.fromisoformat(attempt["ended_at"])
            if not any(began <= kill.over and kill.at <= ended for kill in ledger.kills):
                found.wrong.append(f"{job['id']} was interrupted when nothing was killed")
            found.counts["interrupted"] += bool(attempt["provider"])


def _was_killed_between(first: Record, again: Record, ledger: Ledger) -> bool:
    """Tell whether something was killed after an attempt had begun, and before the next one."""
    began = datetime.fromisoformat(first["started_at"])
    ended = datetime.fromisoformat(again["started_at"])
    return any(began <= kill.over and kill.at <= ended for kill in ledger.kills)


def _check_calls(calls: Sequence[Record], jobs: Any, ledger: Ledger, found: PromiseIssues) -> None:
    """Each billed call is an attempt of some job; the others were in flight at a kill.

    The cloud's ids of requests follow from what was asked and how often, so that each attempt
    which has one can be led back to the call.
    """
    billed: defaultdict[str, list[int]] = defaultdict(list)
    seen: defaultdict[str, list[int]] = defaultdict(list)
    cloud = SandboxState(0, 0)
    by_request: dict[str, str] = {}
    for call in calls:
        seen[call["digest"]].append(call["n"])
        digest = call["digest"]
        # Anthropic's ids are shorter. An id in the body is the same each time.
        fresh = cloud.compute_fresh_digest("request", digest)
        by_request |= dict.fromkeys((fresh[:32], fresh[:24], digest[:32], digest[:22]), digest)
        if call["billed"] and call["status"] == 200:
            billed[call["digest"]].append(call["n"])
    claimed: Counter[str] = Counter()
    excused: Counter[str] = Counter()
    spare = unknown = 0  # unknown: what was asked, as no attempt of the job was answered
    for job in jobs:
        ids = [a["vendor_request_id"] for a in job["attempts"] if a["vendor_request_id"]]
        asked = {by_request.get(one.removeprefix("req_"), "") for one in ids}
        for one in ids:
            claimed[by_request.get(one.removeprefix("req_"), "")] += 1
        cut = sum(a["status"] in CUT_OFF and bool(a["provider"]) for a in job["attempts"])
        if len(asked) == 1:
            excused[asked.pop()] += cut
        elif not asked:
            unknown += cut
        spare += cut
        facts = ledger.completed.get(job["id"])
        for one in ids:
            digest = by_request.get(one.removeprefix("req_"), "")
            late = [n for n in seen[digest] if facts and n > _count_calls_before(ledger, facts[2])]
            if late:
                found.wrong.append(f"{job['id']} was shown as completed, and then called again")
    extra = 0
    for digest, numbers in billed.items():
        over = len(numbers) - claimed[digest]
        extra += max(0, over)
        unexcused = over - excused[digest]
        if 0 < unexcused <= unknown:
            unknown -= unexcused
        elif unexcused > 0:
            found.wrong.append(
                f"{digest[:8]} was billed {len(numbers)} times, claimed {claimed[digest]} times,"
                f" and in flight at {excused[digest]} kills"
            )
    if extra > spare:
        found.wrong.append(f"{extra} calls more than claimed, and {spare} attempts interrupted")
    found.counts.update(billed=sum(map(len, billed.values())), billed_again=extra)


def _count_calls_before(ledger: Ledger, kill: int) -> int:
    """The calls that had reached the cloud when a kill was over; no end to them after the last."""
    return ledger.kills[kill].calls if kill < len(ledger.kills) else sys.maxsize


def is_database_intact(data_dir: Path, url: str | None = None) -> bool:
    """Tell whether nothing is wrong with the database of a server that has stopped.

    SQLite checks its file. PostgreSQL's no client can damage, but one that died may have left a
    transaction that keeps its locks.
    """
    if url is not None:
        with psycopg.connect(url, autocommit=True) as session:
            wait_until(lambda: not session.execute(_LIST_TRANSACTIONS_SQL).fetchall())
        return True
    with closing(sqlite3.connect(data_dir / "state.db")) as connection:
        (answer,) = connection.execute("PRAGMA integrity_check").fetchone()
    return bool(answer == "ok")
