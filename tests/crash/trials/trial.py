"""A trial: work on a deployment that fails repeatedly, then checks of all promises."""

import hashlib
import itertools
import time
from collections import Counter
from datetime import datetime
from random import Random

from tests.crash.options import get_option
from tests.crash.processes import Record
from tests.crash.promise_checks import PromiseIssues, check_promises
from tests.crash.trials.deployments import MAX_QUEUED, TrialDeployment
from tests.crash.trials.roaming_caller import RoamingCaller
from tests.crash.trials.vendor_checks import (
    check_limits,
    check_money,
    check_repeats,
    read_ledger,
)

# A test run is shorter than a trial with the variable.
BETWEEN_S = 2.0 if get_option("TOOLKIT_CRASH_FAULTS") else 1.0
MOST_OPEN = 40
LATENCY_MS = 120.0
LEDGER_MODULE = "tests.crash.trials.vendor_ledger"


def draw_seed() -> int:
    """Draw the seed of a trial, or take it from the variable, and print it."""
    seed = int(get_option("TOOLKIT_CRASH_SEED") or time.time_ns() % 1_000_000)
    print(f"TOOLKIT_CRASH_SEED={seed}")
    return seed


def run_trial(deployment: TrialDeployment, faults: int, random: Random) -> PromiseIssues:
    """Keep a deployment busy during a number of faults; return all issues after all work ended."""
    caller = RoamingCaller(
        deployment.urls, deployment.ledger, random, itertools.count(1), deployment.supervise
    )
    try:
        caller.sign_up("minimax")
        caller.sign_up("openai")
        for fault in deployment.draw_faults(faults):
            _keep_busy(caller, deployment, random)
            deployment.fail(fault)
        _keep_busy(caller, deployment, random)
        deployment.wait_until_healed()
        caller.wait_for_all()
        return _check_all(caller, deployment)
    finally:
        caller.close()


def _keep_busy(caller: RoamingCaller, deployment: TrialDeployment, random: Random) -> None:
    until = time.monotonic() + BETWEEN_S
    while time.monotonic() < until:
        if len(deployment.ledger.open) < MOST_OPEN:
            caller.work(random.choice(deployment.ledger.people))
        caller.look_around()
        caller.follow()


def _check_all(caller: RoamingCaller, deployment: TrialDeployment) -> PromiseIssues:
    """Check all promises."""
    ledger, strikes = deployment.ledger, deployment.strikes
    issues = check_promises(caller, deployment.cloud, ledger, frozenset(caller.notes.cancelled))
    calls = read_ledger(deployment.cloud.url)
    check_money(caller, calls, ledger, issues)
    check_repeats(calls, strikes, issues)
    check_limits(calls, strikes, issues)
    _check_notes(caller, issues)
    _check_events(caller, issues)
    for person in ledger.people:
        work = [
            item
            for area in ("workflows", "runs", "tasks")
            for item in caller.list_all(f"/v1/{area}", person)
            if f"/v1/{area}/{item['id']}" in ledger.acknowledged
        ]
        _check_queue(work, issues)
    issues.counts.update(Counter(strike.kind for strike in strikes))
    return issues


def _check_notes(caller: RoamingCaller, issues: PromiseIssues) -> None:
    """Check that the caller found no wrong response, and that its uploads have equal bytes."""
    issues.wrong += caller.notes.wrong
    for artifact_id, (sha256, person) in caller.notes.uploaded.items():
        content = caller.get(f"/v1/artifacts/{artifact_id}/content", person).content
        if hashlib.sha256(content).hexdigest() != sha256:
            issues.wrong.append(f"{artifact_id} has other bytes than were uploaded")
    issues.counts.update(caller.notes.answers)
    issues.counts.update(
        uploaded=len(caller.notes.uploaded), asked_to_cancel=len(caller.notes.cancelled)
    )


def _check_events(caller: RoamingCaller, issues: PromiseIssues) -> None:
    """Check that events are numbered without gaps, and equal the events that were read before."""
    for sent in caller.notes.sent:
        path = f"{sent.path}/{sent.id}"
        if sent.path not in ("/v1/workflows", "/v1/runs"):
            continue
        events = caller.get(f"{path}/events", sent.person).json()["data"]["items"]
        if [event["n"] for event in events] != list(range(1, len(events) + 1)):
            issues.wrong.append(f"the events of {path} have gaps")
        seen = caller.notes.followed.get(path, [])
        if seen != events[: len(seen)]:
            issues.wrong.append(f"the events of {path} are others than were read")
        issues.counts["events"] += len(events)


def _check_queue(work: list[Record], issues: PromiseIssues) -> None:
    """Check that the work of an account never exceeded its queue, by the times of its records."""
    changes = [(datetime.fromisoformat(item["created_at"]), 1) for item in work]
    changes += [(datetime.fromisoformat(item["completed_at"]), -1) for item in work]
    open_now = maximum = 0
    for _, change in sorted(changes):
        open_now += change
        maximum = max(maximum, open_now)
    if maximum > MAX_QUEUED:
        issues.wrong.append(f"{maximum} were under way at once, {MAX_QUEUED} are allowed")
    issues.counts["most_queued"] = max(issues.counts["most_queued"], maximum)
