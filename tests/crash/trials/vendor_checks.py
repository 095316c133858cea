"""Holds what engines say against the vendor's own ledger: money, repeated calls and limits.

Prices stand here as the vendors publish them, so that no table of the engine's is asked, and sums
are decimal, so that they are equal to the last digit or not at all.
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
CHARACTER_PRICES = {"speech-2.8-turbo": Decimal(60)}  # for a million
MILLION = Decimal(1_000_000)
MODEL_SUFFIX = "-sandbox"
NOT_SENT = "could not be reached."  # so ends the message of an attempt that never left
# What is no text is looked at first, by a process that may have to be started: up to 2.6 seconds
# on a busy machine.
CHECKED_S = 4.0
WINDOW_S = 10.0
# Calls reach a vendor a little sooner or later than they were let in, and as many as may be in
# flight go at once when a database is back whose answer they waited for.
MAX_EARLY_CALLS = 2 + MAX_CALLS


@dataclass(frozen=True)
class BilledCall:
    """A call as the vendor has it.

    Attributes:
        began, ended: by the monotonic clock of the machine.
        left: when the caller hung up, or else when it ended.
        asked: its body.
        ids: what the vendor calls it.
        usd: what it is billed.
        is_speech: whether a text is spoken.
        engine: whose call it was; empty where its process was dead before that could be seen.
    """

    vendor: str
    began: float
    ended: float
    left: float
    asked: str
    ids: frozenset[str]
    usd: Decimal
    is_speech: bool
    engine: str


def read_ledger(url: str) -> list[BilledCall]:
    """Read the calls that a vendor bills, in the order of their beginning."""
    entries = HTTP.get(url + LEDGER_PATH).json()
    calls = []
    for entry in entries:
        if entry["status"] != 200:
            continue
        ids = {*entry["ids"], *([entry["id"]] if "id" in entry else [])}
        calls.append(
            BilledCall(
                entry["vendor"],
                entry["began"],
                entry["ended"],
                entry.get("left", entry["ended"]),
                entry["asked"],
                frozenset(ids | {one.removeprefix("req_") for one in ids}),
                compute_price(entry),
                "characters" in entry,
                entry["engine"],
            )
        )
    return calls


def compute_price(entry: Record) -> Decimal:
    """Compute what a vendor bills for a call."""
    model = (entry.get("model") or json.loads(entry["asked"])["model"]).removesuffix(MODEL_SUFFIX)
    if "characters" in entry:
        return CHARACTER_PRICES[model] * entry["characters"] / MILLION
    given, made = TOKEN_PRICES[model]
    usage = entry["usage"]
    return (given * usage["prompt_tokens"] + made * usage["completion_tokens"]) / MILLION


def to_decimal(usd: Any) -> Decimal:
    """Take an amount from the wire, where it is the shortest number that means it."""
    return Decimal(str(usd or 0))


def check_money(
    caller: RoamingCaller, calls: Iterable[BilledCall], ledger: Ledger, found: PromiseIssues
) -> None:
    """Each attempt costs what the vendor bills for it, and all sums of them are one.

    An attempt without an answer costs what was reserved for it, which is no less than its call is
    billed; and nothing of a day's allowance is held any more.
    """
    bill: dict[str, Decimal] = {}
    for call in calls:
        bill |= dict.fromkeys(call.ids, call.usd)
    for person, key_id in zip(ledger.people, caller.notes.keys, strict=True):
        jobs = caller.list_all("/v1/jobs", person)
        spent = Decimal(0)
        for job in jobs:
            spent += _check_job(job, bill, found)
        lines = caller.get("/v1/usage", person).json()["data"]["items"]
        told = sum((to_decimal(line["cost_usd"]) for line in lines), Decimal(0))
        key = caller.get(f"/v1/account/keys/{key_id}", person).json()["data"]
        taken = to_decimal(DAY_USD) - to_decimal(key["left_usd_today"])
        if not spent == told == taken:
            found.wrong.append(f"attempts cost ${spent}, usage says ${told}, the key ${taken}")
        found.counts["micro_usd"] += int(spent * MILLION)


def _check_job(job: Record, bill: dict[str, Decimal], found: PromiseIssues) -> Decimal:
    """Check what each attempt of a job cost; return the sum."""
    spent = Decimal(0)
    for attempt in job["attempts"]:
        if not attempt["provider"]:
            continue
        cost = to_decimal(attempt["cost_usd"])
        spent += cost
        if attempt["status"] == "completed":
            billed = bill.get((attempt["vendor_request_id"] or "").removeprefix("req_"))
            if cost != billed:
                found.wrong.append(f"{job['id']} says ${cost}, and was billed ${billed}")
        elif (attempt["error"] or {}).get("message", "").endswith(NOT_SENT):
            # As on a connection that the vendor closed while the engine stood still.
            if cost:
                found.wrong.append(f"{job['id']} paid for what was not sent: {attempt}")
        elif cost != to_decimal(attempt["reservation_usd"]):
            found.wrong.append(f"{job['id']} has an attempt without an answer: {attempt}")
    if spent != to_decimal(job["cost_incurred_usd"]):
        found.wrong.append(f"{job['id']} says that it cost {job['cost_incurred_usd']}, not {spent}")
    return spent


def is_cut_off(call: BilledCall, strikes: Iterable[Strike]) -> bool:
    """Tell whether the engine that made a call was struck while the call was in flight.

    In flight is what has begun, and whose answer may not have been written down.
    """
    strikes = list(strikes)
    done = find_done(call.engine, call.ended, CHECKED_S if call.is_speech else 0.0, strikes)
    return any(strike.cuts_off(call.engine, call.began, done) for strike in strikes)


def check_repeats(
    calls: Sequence[BilledCall], strikes: Sequence[Strike], found: PromiseIssues
) -> None:
    """What was called again had been in flight at an engine that was struck, as that was."""
    same: defaultdict[str, list[BilledCall]] = defaultdict(list)
    for call in calls:
        same[call.asked].append(call)
    for repeated in same.values():
        for first, again in pairwise(repeated):
            found.counts["paid_again"] += 1
            if not is_cut_off(first, (one for one in strikes if one.at <= again.began)):
                found.wrong.append(_describe_repeat(first, again, strikes))
    # Of the others a repeated call would have been found.
    found.counts["may_repeat"] += sum(is_cut_off(call, strikes) for call in calls)


def _describe_repeat(first: BilledCall, again: BilledCall, strikes: Iterable[Strike]) -> str:
    began = first.began
    return (
        f"paid twice, and not in flight at an engine that was struck: {first.asked[-80:]} by"
        f" {first.engine} until {first.ended - began:+.2f} s, again by {again.engine} from"
        f" {again.began - began:+.2f} to {again.ended - began:+.2f} s;"
        f" {_describe_strikes(strikes, began)}"
    )


def _describe_strikes(strikes: Iterable[Strike], since: float) -> list[str]:
    return [
        f"{one.kind} of {sorted(one.engines) or 'all'} from {one.at - since:+.2f}"
        f" to {one.mended - since:+.2f} s"
        for one in strikes
    ]


def check_limits(
    calls: Sequence[BilledCall], strikes: Sequence[Strike], found: PromiseIssues
) -> None:
    """No connection had more calls in flight, or a minute, than all engines together may make."""
    most = 0
    for call in calls:
        before = [strike for strike in strikes if strike.at <= call.began]
        together = [
            one for one in calls if one.vendor == call.vendor and one.began <= call.began < one.left
        ]
        # What an engine had in flight that was struck goes on at the vendor, as nobody can end it.
        orphans = sum(
            any(strike.cuts_off(one.engine, one.began, one.ended) for strike in before)
            for one in together
        )
        most = max(most, len(together))
        if len(together) - orphans > MAX_CALLS:
            spans = [
                f"{one.engine} from {one.began - call.began:+.3f} to {one.left - call.began:+.3f} s"
                for one in together
            ]
            found.wrong.append(
                f"{len(together)} calls of {call.vendor} were in flight, {orphans} of them of who"
                f" was struck: {spans}; {_describe_strikes(strikes, call.began)}"
            )
    paced = [call.began for call in calls if call.vendor == "openai"]
    allowed = REQUESTS_PER_MINUTE / 60 * WINDOW_S + MAX_EARLY_CALLS
    fullest = max(
        (sum(begin <= one < begin + WINDOW_S for one in paced) for begin in paced), default=0
    )
    if fullest > allowed:
        found.wrong.append(f"{fullest} calls were made in {WINDOW_S} s, {allowed} are allowed")
    found.counts.update(most_in_flight=most, most_in_window=fullest)
