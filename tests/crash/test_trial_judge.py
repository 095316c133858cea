"""The judge of the trials: what it takes for a repeated call that nobody should have paid for."""

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

pytestmark = pytest.mark.sqlite("no database is in it")
MINE, OTHER = frozenset({"engine-0"}), frozenset({"engine-1"})
LATENCY_S = 0.12
# Of what was called at 0.0 seconds, and answered at 0.12.
IN_FLIGHT_S, WRITTEN_S = 0.05, 2.0


def make_call(began: float, engine: str = "engine-0", *, is_speech: bool = False) -> BilledCall:
    """Make a call as a vendor has it; each is of the same."""
    ended = began + LATENCY_S
    return BilledCall(
        "minimax", began, ended, ended, "one line", frozenset(), Decimal(1), is_speech, engine
    )


def kill(at: float, engines: frozenset[str]) -> Strike:
    """Kill an engine."""
    return Strike("kill_engine", at, at + 0.05, engines, at + 0.05)


def freeze(at: float, engines: frozenset[str]) -> Strike:
    """Have an engine stand still."""
    return Strike("freeze_engine", at, at, engines, at + 3.0, lasts=True)


def cut(at: float, engines: frozenset[str]) -> Strike:
    """Cut an engine off from the database, or have that away for all."""
    return Strike("cut", at, at, engines, at + 1.0, lasts=True, is_instant=False)


def find_wrong(first: BilledCall, again: BilledCall, *strikes: Strike) -> list[str]:
    """Find what is wrong with a call that was made again."""
    found = PromiseIssues()
    check_repeats([first, again], strikes, found)
    assert found.counts["paid_again"] == 1
    return found.wrong


@pytest.mark.parametrize(
    ("first", "strike"),
    [
        pytest.param(make_call(0.0), kill(IN_FLIGHT_S, MINE), id="killed before the answer"),
        pytest.param(make_call(0.0), kill(0.2, MINE), id="killed before it was written down"),
        pytest.param(
            make_call(0.0, is_speech=True), kill(1.0, MINE), id="killed as the sound was looked at"
        ),
        pytest.param(make_call(0.0), freeze(IN_FLIGHT_S, MINE), id="stood still"),
        pytest.param(make_call(0.0), cut(0.2, MINE), id="no way to write it down"),
        pytest.param(make_call(0.0), cut(-0.5, MINE), id="called while there was no way"),
        pytest.param(make_call(0.0), cut(IN_FLIGHT_S, frozenset()), id="the database was away"),
        pytest.param(make_call(0.0, ""), kill(0.0, MINE), id="of who died as it called"),
    ],
)
def test_what_was_in_flight_at_the_struck_engine_may_be_called_again(
    first: BilledCall, strike: Strike
) -> None:
    """Given an engine that is struck with a call in flight, then another may call again."""
    assert not find_wrong(first, make_call(7.0, "engine-1"), strike)


@pytest.mark.parametrize(
    ("first", "strike"),
    [
        pytest.param(make_call(0.0), kill(IN_FLIGHT_S, OTHER), id="another was killed"),
        pytest.param(make_call(0.0), freeze(IN_FLIGHT_S, OTHER), id="another stood still"),
        pytest.param(make_call(0.0), cut(IN_FLIGHT_S, OTHER), id="another was cut off"),
        pytest.param(make_call(0.0), kill(WRITTEN_S, MINE), id="it was written down by then"),
        pytest.param(make_call(0.0), cut(WRITTEN_S, frozenset()), id="so it was for all"),
        pytest.param(
            make_call(0.0, is_speech=True), kill(6.0, MINE), id="the sound was kept by then"
        ),
        pytest.param(make_call(0.0), kill(-1.0, MINE), id="it was called by who came after"),
        pytest.param(make_call(3.5), freeze(0.0, MINE), id="it was called after standing still"),
        pytest.param(make_call(0.0, ""), cut(0.0, frozenset()), id="nobody died as it was called"),
        pytest.param(make_call(0.0), kill(8.0, MINE), id="it was called again before"),
    ],
)
def test_what_was_not_in_flight_there_is_found(first: BilledCall, strike: Strike) -> None:
    """Given a call that no strike had cut off, when it is made again, then that is wrong."""
    (wrong,) = find_wrong(first, make_call(7.0, "engine-1"), strike)
    assert "paid twice" in wrong


def test_what_holds_an_answer_up_keeps_it_in_flight() -> None:
    """Given an answer that cannot be written down, when its engine is killed, it may be lost.

    What another engine's network holds up is waited for once, and not until the next such thing.
    """
    again, late = make_call(7.0, "engine-1"), kill(1.2, MINE)
    assert not find_wrong(make_call(0.0), again, cut(0.3, MINE), late)
    assert not find_wrong(make_call(0.0), again, cut(0.3, OTHER), late)
    assert find_wrong(make_call(0.0), again, late)
    others = cut(0.3, OTHER), cut(1.4, OTHER)
    assert find_wrong(make_call(0.0), again, *others, kill(2.5, MINE))


def test_only_what_a_struck_engine_left_behind_is_beyond_the_limit() -> None:
    """Given one call more at once than is allowed, then it is who was killed that made it."""
    engines = ["engine-0", *["engine-1"] * MAX_CALLS]
    calls = [make_call(n / 100, engine) for n, engine in enumerate(engines)]
    another = frozenset({"engine-2"})
    tried = [([kill(0.02, MINE)], 0), ([kill(0.02, another)], 1), ([kill(0.9, MINE)], 1), ([], 1)]
    for strikes, wrong in tried:
        found = PromiseIssues()
        check_limits(calls, strikes, found)
        assert len(found.wrong) == wrong, (strikes, found.wrong)


@pytest.fixture
def cloud(fork_server: ForkServerClient) -> Iterator[CloudProcess]:
    """A vendor cloud with a ledger."""
    with open_cloud(LEDGER_MODULE, 0.0, fork_server.start) as opened:
        yield opened


def test_the_ledger_tells_engines_apart(cloud: CloudProcess) -> None:
    """Given calls, then the ledger has each with its engine: by the path, or else by its process.

    The vendor answers both alike.
    """
    body = {"model": "gpt-6-luna", "messages": [{"role": "user", "content": "one line"}]}
    headers = {"Authorization": f"Bearer {SANDBOX_KEYS['OPENAI_API_KEY']}"}
    for base in (f"{cloud.url}/engine-1", cloud.url):
        asked = f"{base}/openai/v1/chat/completions"
        answer = HTTP.post(asked, json=body, headers=headers)
        assert answer.status_code == 200, answer.text
    entries = HTTP.get(cloud.url + LEDGER_PATH).json()
    assert [entry["engine"] for entry in entries] == ["engine-1", str(os.getpid())]
    assert {(entry["vendor"], entry["path"]) for entry in entries} == {
        ("openai", "/v1/chat/completions")
    }
