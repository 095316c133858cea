"""One trial: work is asked of a deployment that fails again and again, then all is looked at."""

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

# With each test run there is less of it than when somebody asks for a trial.
BETWEEN_S = 2.0 if get_option("TOOLKIT_CRASH_FAULTS") else 1.0
MOST_OPEN = 40
LATENCY_MS = 120.0
LEDGER_MODULE = "tests.crash.trials.vendor_ledger"


def draw_seed() -> int:
    """Draw the seed of a trial, or take the one that is given, and print it."""
    seed = int(get_option("TOOLKIT_CRASH_SEED") or time.time_ns() % 1_000_000)
    print(f"TOOLKIT_CRASH_SEED={seed}")
    return seed


def run_trial(deployment: TrialDeployment, faults: int, random: Random) -> PromiseIssues:
    """Keep a deployment busy while it fails so often; return what is wrong once all has ended."""
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
    """Hold everything against what was promised."""
    ledger, strikes = deployment.ledger, deployment.strikes
    found = check_promises(caller, deployment.cloud, ledger, frozenset(caller.notes.cancelled))
    calls = read_ledger(deployment.cloud.url)
    check_money(caller, calls, ledger, found)
    check_repeats(calls, strikes, found)
    check_limits(calls, strikes, found)
    _check_notes(caller, found)
    _check_events(caller, found)
    for person in ledger.people:
        work = [
            item
            for area in ("workflows", "runs", "tasks")
            for item in caller.list_all(f"/v1/{area}", person)
            if f"/v1/{area}/{item['id']}" in ledger.acknowledged
        ]
        _check_queue(work, found)
    found.counts.update(Counter(strike.kind for strike in strikes))
    return found


def _check_notes(caller: RoamingCaller, found: PromiseIssues) -> None:
    """What the caller was answered was right, and what it uploaded is there, byte for byte."""
    found.wrong += caller.notes.wrong
    for artifact_id, (sha256, person) in caller.notes.uploaded.items():
        content = caller.get(f"/v1/artifacts/{artifact_id}/content", person).content
        if hashlib.sha256(content).hexdigest() != sha256:
            found.wrong.append(f"{artifact_id} has other bytes than were uploaded")
    found.counts.update(caller.notes.answers)
    found.counts.update(
        uploaded=len(caller.notes.uploaded), asked_to_cancel=len(caller.notes.cancelled)
    )


def _check_events(caller: RoamingCaller, found: PromiseIssues) -> None:
    """All events of all work are numbered without a gap, and are what was read of them before."""
    for sent in caller.notes.sent:
        path = f"{sent.path}/{sent.id}"
        if sent.path not in ("/v1/workflows", "/v1/runs"):
            continue
        events = caller.get(f"{path}/events", sent.person).json()["data"]["items"]
        if [event["n"] for event in events] != list(range(1, len(events) + 1)):
            found.wrong.append(f"the events of {path} have gaps")
        seen = caller.notes.followed.get(path, [])
        if seen != events[: len(seen)]:
            found.wrong.append(f"the events of {path} are others than were read")
        found.counts["events"] += len(events)


def _check_queue(work: list[Record], found: PromiseIssues) -> None:
    """No account had more under way at once than it may, by the times of its records."""
    changes = [(datetime.fromisoformat(item["created_at"]), 1) for item in work]
    changes += [(datetime.fromisoformat(item["completed_at"]), -1) for item in work]
    open_now = most = 0
    for _, change in sorted(changes):
        open_now += change
        most = max(most, open_now)
    if most > MAX_QUEUED:
        found.wrong.append(f"{most} were under way at once, and {MAX_QUEUED} may be")
    found.counts["most_queued"] = max(found.counts["most_queued"], most)
