"""Compares the engines' records with the vendor's ledger: money, repeated calls and limits.

Prices are copied from the vendors' lists, so that the checks do not depend on the engine's table.
Sums are decimal, so that they are equal to the last digit.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

from tests.crash.callers import Ledger
from tests.crash.processes import HTTP, Record
from tests.crash.promise_checks import PromiseIssues
from tests.crash.trials.deployments import MAX_CALLS, REQUESTS_PER_MINUTE
from tests.crash.trials.roaming_caller import DAY_USD, RoamingCaller
from tests.crash.trials.strikes import Strike, find_done
from tests.crash.trials.vendor_ledger import LEDGER_PATH

# US dollars for a million tokens in and out, by the vendors' price lists of November 2026.
TOKEN_PRICES = {
    "MiniMax-M3": (Decimal("0.30"), Decimal("1.20")),
    "gpt-6-luna": (Decimal("0.10"), Decimal("0.50")),
}
CHARACTER_PRICES = {"speech-2.8-turbo": Decimal(60)}  # per million
MILLION = Decimal(1_000_000)
MODEL_SUFFIX = "-sandbox"
NOT_SENT = "could not be reached."  # end of the message of an attempt that was not sent
# A worker process, which may have to start, reads sound first: up to 2.6 seconds on a busy machine.
CHECKED_S = 4.0
WINDOW_S = 10.0
# Calls reach a vendor a little sooner or later than the engine admits them, and all calls that wait
# for a database begin at once when it is back.
MAX_EARLY_CALLS = 2 + MAX_CALLS


@dataclass(frozen=True)
class BilledCall:
    """A call in the vendor's ledger.

    Attributes:
        began, ended: times of the machine's monotonic clock.
        left_at: time at which the caller closed the connection, or the end.
        body: body of the request.
        ids: the vendor's ids of the call.
        usd: price in US dollars.
        is_speech: True for speech.
        engine: name of the engine; empty if its process died before the ledger could find it.
    """

    vendor: str
    began: float
    ended: float
    left_at: float
    body: str
    ids: frozenset[str]
    usd: Decimal
    is_speech: bool
    engine: str


def read_ledger(url: str) -> list[BilledCall]:
    """Read the calls that a vendor bills, in the order of their begin."""
    entries = HTTP.get(url + LEDGER_PATH).json()
    return [
        BilledCall(
            vendor=entry["vendor"],
            began=entry["began"],
            ended=entry["ended"],
            left_at=entry.get("left_at", entry["ended"]),
            body=entry["body"],
            ids=frozenset(id.removeprefix("req_") for id in [*entry["ids"], entry.get("id")] if id),
            usd=compute_price(entry),
            is_speech="characters" in entry,
            engine=entry["engine"],
        )
        for entry in entries
        if entry["status"] == 200
    ]


def compute_price(entry: Record) -> Decimal:
    """Compute the price of a call."""
    model = (entry.get("model") or json.loads(entry["body"])["model"]).removesuffix(MODEL_SUFFIX)
    if "characters" in entry:
        return CHARACTER_PRICES[model] * entry["characters"] / MILLION
    input_price, output_price = TOKEN_PRICES[model]
    usage = entry["usage"]
    return (
        input_price * usage["prompt_tokens"] + output_price * usage["completion_tokens"]
    ) / MILLION


def to_decimal(usd: Any) -> Decimal:
    """Convert an amount of the API, whose shortest representation is exact."""
    return Decimal(str(usd or 0))


def check_money(
    caller: RoamingCaller, calls: Iterable[BilledCall], ledger: Ledger, issues: PromiseIssues
) -> None:
    """Check that each attempt costs its bill, and that jobs, usage and allowance have equal sums.

    An attempt without an answer costs its reservation, which is at least its bill. No reservation
    is left in the daily allowance.
    """
    bill: dict[str, Decimal] = {}
    for call in calls:
        bill |= dict.fromkeys(call.ids, call.usd)
    for person, key_id in zip(ledger.people, caller.notes.keys, strict=True):
        jobs = caller.list_all("/v1/jobs", person)
        spent = Decimal(0)
        for job in jobs:
            spent += _check_job(job, bill, issues)
        lines = caller.get("/v1/usage", person).json()["data"]["items"]
        usage = sum((to_decimal(line["cost_usd"]) for line in lines), Decimal(0))
        key = caller.get(f"/v1/account/keys/{key_id}", person).json()["data"]
        used_today = to_decimal(DAY_USD) - to_decimal(key["left_usd_today"])
        if not spent == usage == used_today:
            issues.wrong.append(f"attempts cost ${spent}, usage ${usage}, the key ${used_today}")
        issues.counts["micro_usd"] += int(spent * MILLION)


def _check_job(job: Record, bill: dict[str, Decimal], issues: PromiseIssues) -> Decimal:
    """Check the cost of each attempt of a job; return the sum."""
    spent = Decimal(0)
    for attempt in job["attempts"]:
        if not attempt["provider"]:
            continue
        cost = to_decimal(attempt["cost_usd"])
        spent += cost
        if attempt["status"] == "completed":
            billed = bill.get((attempt["vendor_request_id"] or "").removeprefix("req_"))
            if cost != billed:
                issues.wrong.append(f"{job['id']} says ${cost}, and was billed ${billed}")
        elif (attempt["error"] or {}).get("message", "").endswith(NOT_SENT):
            # For example, the vendor has closed the connection of a frozen engine.
            if cost:
                issues.wrong.append(f"{job['id']} paid for an unsent request: {attempt}")
        elif cost != to_decimal(attempt["reservation_usd"]):
            issues.wrong.append(f"{job['id']} has an attempt without an answer: {attempt}")
    if spent != to_decimal(job["cost_incurred_usd"]):
        issues.wrong.append(
            f"{job['id']} says that it cost {job['cost_incurred_usd']}, not {spent}"
        )
    return spent


def is_cut_off(call: BilledCall, strikes: Iterable[Strike]) -> bool:
    """Return whether a fault hit the engine of a call while the call was in flight.

    A call is in flight from its begin until the latest time of the commit of its answer.
    """
    strikes = list(strikes)
    done = find_done(call.engine, call.ended, CHECKED_S if call.is_speech else 0.0, strikes)
    return any(strike.cuts_off(call.engine, call.began, done) for strike in strikes)


def check_repeats(
    calls: Sequence[BilledCall], strikes: Sequence[Strike], issues: PromiseIssues
) -> None:
    """Check that each repeated call was in flight at an engine that a fault hit."""
    same: defaultdict[str, list[BilledCall]] = defaultdict(list)
    for call in calls:
        same[call.body].append(call)
    for repeated in same.values():
        for first, again in pairwise(repeated):
            issues.counts["paid_again"] += 1
            if not is_cut_off(first, (strike for strike in strikes if strike.at <= again.began)):
                issues.wrong.append(_describe_repeat(first, again, strikes))
    # A repeat of any other call would be an issue.
    issues.counts["may_repeat"] += sum(is_cut_off(call, strikes) for call in calls)


def _describe_repeat(first: BilledCall, again: BilledCall, strikes: Iterable[Strike]) -> str:
    began = first.began
    return (
        f"paid twice, and not in flight at an engine with a fault: {first.body[-80:]} by"
        f" {first.engine} until {first.ended - began:+.2f} s, again by {again.engine} from"
        f" {again.began - began:+.2f} to {again.ended - began:+.2f} s;"
        f" {_describe_strikes(strikes, began)}"
    )


def _describe_strikes(strikes: Iterable[Strike], since: float) -> list[str]:
    return [
        f"{strike.kind} of {sorted(strike.engines) or 'all'} from {strike.at - since:+.2f}"
        f" to {strike.mended - since:+.2f} s"
        for strike in strikes
    ]


def check_limits(
    calls: Sequence[BilledCall], strikes: Sequence[Strike], issues: PromiseIssues
) -> None:
    """Check the limits of all engines together: calls in flight, and calls in a minute."""
    maximum = 0
    for call in calls:
        before = [strike for strike in strikes if strike.at <= call.began]
        together = [
            other
            for other in calls
            if other.vendor == call.vendor and other.began <= call.began < other.left_at
        ]
        # Calls of an engine with a fault continue at the vendor, because no engine can end them.
        orphans = sum(
            any(strike.cuts_off(orphan.engine, orphan.began, orphan.ended) for strike in before)
            for orphan in together
        )
        maximum = max(maximum, len(together))
        if len(together) - orphans > MAX_CALLS:
            spans = [
                f"{span.engine} from {span.began - call.began:+.3f}"
                f" to {span.left_at - call.began:+.3f} s"
                for span in together
            ]
            issues.wrong.append(
                f"{len(together)} calls of {call.vendor} were in flight, {orphans} of them of"
                f" engines with a fault: {spans}; {_describe_strikes(strikes, call.began)}"
            )
    paced = [call.began for call in calls if call.vendor == "openai"]
    allowed = REQUESTS_PER_MINUTE / 60 * WINDOW_S + MAX_EARLY_CALLS
    fullest = max(
        (sum(begin <= time < begin + WINDOW_S for time in paced) for begin in paced), default=0
    )
    if fullest > allowed:
        issues.wrong.append(f"{fullest} calls were made in {WINDOW_S} s, {allowed} are allowed")
    issues.counts.update(most_in_flight=maximum, most_in_window=fullest)
