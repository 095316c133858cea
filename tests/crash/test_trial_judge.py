"""The checks of the trials find repeated calls that no fault excuses."""

import os
from collections.abc import Iterator
from decimal import Decimal

import pytest

from tests.crash.processes import HTTP, CloudProcess, ForkServerClient, open_cloud
from tests.crash.promise_checks import PromiseIssues
from tests.crash.trials.deployments import MAX_CALLS
from tests.crash.trials.strikes import Strike
from tests.crash.trials.trial import LEDGER_MODULE
from tests.crash.trials.vendor_checks import BilledCall, check_limits, check_repeats
from tests.crash.trials.vendor_ledger import LEDGER_PATH
from toolkit.sandbox import SANDBOX_KEYS

pytestmark = pytest.mark.sqlite("the checks use no database")
MINE, OTHER = frozenset({"engine-0"}), frozenset({"engine-1"})
LATENCY_S = 0.12
# Times in the life of a call that begins at 0.0 seconds, and is answered at 0.12.
IN_FLIGHT_S, WRITTEN_S = 0.05, 2.0


def make_call(began: float, engine: str = "engine-0", *, is_speech: bool = False) -> BilledCall:
    """Make a billed call; all calls have the same input."""
    ended = began + LATENCY_S
    return BilledCall(
        "minimax", began, ended, ended, "one line", frozenset(), Decimal(1), is_speech, engine
    )


def kill(at: float, engines: frozenset[str]) -> Strike:
    """Kill an engine."""
    return Strike("kill_engine", at, at + 0.05, engines, at + 0.05)


def freeze(at: float, engines: frozenset[str]) -> Strike:
    """Freeze an engine."""
    return Strike("freeze_engine", at, at, engines, at + 3.0, lasts=True)


def cut(at: float, engines: frozenset[str]) -> Strike:
    """Cut an engine off from the database, or all engines."""
    return Strike("cut", at, at, engines, at + 1.0, lasts=True, is_instant=False)


def find_wrong(first: BilledCall, again: BilledCall, *strikes: Strike) -> list[str]:
    """Return the issues of a repeated call."""
    issues = PromiseIssues()
    check_repeats([first, again], strikes, issues)
    assert issues.counts["paid_again"] == 1
    return issues.wrong


@pytest.mark.parametrize(
    ("first", "strike"),
    [
        pytest.param(make_call(0.0), kill(IN_FLIGHT_S, MINE), id="killed before the answer"),
        pytest.param(make_call(0.0), kill(0.2, MINE), id="killed before the commit"),
        pytest.param(
            make_call(0.0, is_speech=True), kill(1.0, MINE), id="killed while it read the sound"
        ),
        pytest.param(make_call(0.0), freeze(IN_FLIGHT_S, MINE), id="frozen"),
        pytest.param(make_call(0.0), cut(0.2, MINE), id="cut off before the commit"),
        pytest.param(make_call(0.0), cut(-0.5, MINE), id="called while cut off"),
        pytest.param(make_call(0.0), cut(IN_FLIGHT_S, frozenset()), id="the database was away"),
        pytest.param(make_call(0.0, ""), kill(0.0, MINE), id="killed as it called"),
    ],
)
def test_allows_repeats_of_calls_in_flight(first: BilledCall, strike: Strike) -> None:
    """Given a fault of an engine with a call in flight, then another engine may call again."""
    assert not find_wrong(first, make_call(7.0, "engine-1"), strike)


@pytest.mark.parametrize(
    ("first", "strike"),
    [
        pytest.param(make_call(0.0), kill(IN_FLIGHT_S, OTHER), id="another was killed"),
        pytest.param(make_call(0.0), freeze(IN_FLIGHT_S, OTHER), id="another was frozen"),
        pytest.param(make_call(0.0), cut(IN_FLIGHT_S, OTHER), id="another was cut off"),
        pytest.param(make_call(0.0), kill(WRITTEN_S, MINE), id="killed after the commit"),
        pytest.param(make_call(0.0), cut(WRITTEN_S, frozenset()), id="all cut off after it"),
        pytest.param(
            make_call(0.0, is_speech=True), kill(6.0, MINE), id="killed after the sound was kept"
        ),
        pytest.param(make_call(0.0), kill(-1.0, MINE), id="killed before the call"),
        pytest.param(make_call(3.5), freeze(0.0, MINE), id="called after the freeze"),
        pytest.param(make_call(0.0, ""), cut(0.0, frozenset()), id="no engine died at the call"),
        pytest.param(make_call(0.0), kill(8.0, MINE), id="killed after the repeat"),
    ],
)
def test_finds_repeats_of_other_calls(first: BilledCall, strike: Strike) -> None:
    """Given a call that no fault cut off, when it is repeated, then an issue is found."""
    (wrong,) = find_wrong(first, make_call(7.0, "engine-1"), strike)
    assert "paid twice" in wrong


def test_delayed_commit_keeps_a_call_in_flight() -> None:
    """Given an answer that cannot be committed, when its engine is killed, it may be lost.

    A network fault of another engine extends the time once, and further such faults do not.
    """
    again, late = make_call(7.0, "engine-1"), kill(1.2, MINE)
    assert not find_wrong(make_call(0.0), again, cut(0.3, MINE), late)
    assert not find_wrong(make_call(0.0), again, cut(0.3, OTHER), late)
    assert find_wrong(make_call(0.0), again, late)
    cuts = cut(0.3, OTHER), cut(1.4, OTHER)
    assert find_wrong(make_call(0.0), again, *cuts, kill(2.5, MINE))


def test_limit_excludes_calls_of_killed_engines() -> None:
    """Given a call beyond the limit, then only a kill of its engine during the call excuses it."""
    engines = ["engine-0", *["engine-1"] * MAX_CALLS]
    calls = [make_call(n / 100, engine) for n, engine in enumerate(engines)]
    another = frozenset({"engine-2"})
    tried = [([kill(0.02, MINE)], 0), ([kill(0.02, another)], 1), ([kill(0.9, MINE)], 1), ([], 1)]
    for strikes, wrong in tried:
        issues = PromiseIssues()
        check_limits(calls, strikes, issues)
        assert len(issues.wrong) == wrong, (strikes, issues.wrong)


@pytest.fixture
def cloud(fork_server: ForkServerClient) -> Iterator[CloudProcess]:
    """A vendor cloud with a ledger."""
    with open_cloud(LEDGER_MODULE, 0.0, fork_server.start) as opened:
        yield opened


def test_ledger_has_the_engine_of_each_call(cloud: CloudProcess) -> None:
    """Given calls, then the ledger has the engine of each: from its path, or else its process."""
    body = {"model": "gpt-6-luna", "messages": [{"role": "user", "content": "one line"}]}
    headers = {"Authorization": f"Bearer {SANDBOX_KEYS['OPENAI_API_KEY']}"}
    for base in (f"{cloud.url}/engine-1", cloud.url):
        url = f"{base}/openai/v1/chat/completions"
        answer = HTTP.post(url, json=body, headers=headers)
        assert answer.status_code == 200, answer.text
    entries = HTTP.get(cloud.url + LEDGER_PATH).json()
    assert [entry["engine"] for entry in entries] == ["engine-1", str(os.getpid())]
    assert {(entry["vendor"], entry["path"]) for entry in entries} == {
        ("openai", "/v1/chat/completions")
    }
