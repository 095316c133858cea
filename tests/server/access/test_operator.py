"""Accounts, as an operator handles them beside a server that runs: list, disable, recover."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from tests.conftest import Server
from tests.contract.conftest import read_key, sign_up_client
from tests.server.conftest import Wire
from tests.support.slow_capability import load_slow_registry
from tests.support.timing import PATIENCE_S
from toolkit import Client
from toolkit.cli import app
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.settings import Settings
from toolkit.store import PatchDocument, Store

Account = Callable[..., Result]
NAP = {"seconds": 60}
STREAM = {"Accept": "text/event-stream"}


@pytest.fixture
def served(settings: Settings) -> Iterator[Server]:
    """A server whose work goes on until it is ended."""
    server = Server(settings, registry=load_slow_registry())
    yield server
    server.close()


@pytest.fixture
def ada(served: Server) -> Iterator[Client]:
    """Somebody with an account there."""
    with sign_up_client(served.url) as client:
        yield client


@pytest.fixture
def account(settings: Settings) -> Account:
    """`toolkit account`, typed by whoever operates the data directory."""

    def run_account(*line: str) -> Result:
        where = ["--data-dir", str(settings.data_dir)]
        return CliRunner().invoke(app, ["account", *line, *where], catch_exceptions=False)

    return run_account


def refusal(client: Client) -> RequestError | None:
    """Why a client's key does not work; none if it does."""
    try:
        client.account.get()
    except RequestError as error:
        return error
    return None


def read_output(done: Result) -> Any:
    """Parse the JSON that a command printed."""
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_disabled_account_s_keys_are_refused_and_its_work_is_ended(
    served: Server, ada: Client, account: Account
) -> None:
    """Given work and a stream, when the account is disabled, then both end, and no more comes."""
    run = ada.runs.create("test.nap", NAP)
    with sign_up_client(served.url, "bob@example.org") as bob:
        other = bob.runs.create("test.nap", NAP)
        headers = {"Authorization": f"Bearer {read_key(ada)}"}
        path = f"{served.url}/v1/runs/{run.id}/events"
        with httpx.stream("GET", path, headers=headers | STREAM, timeout=PATIENCE_S) as response:
            lines = response.iter_lines()
            assert next(lines) == "id: 1"
            done = read_output(account("disable", "ADA@example.org", "--json"))
            assert (done["ended"], done["under_way"]) == (1, 0)
            list(lines)  # it ends
        answer = httpx.post(f"{served.url}/v1/runs", headers=headers, json={})
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert answer.json()["error"]["code"] == "UNAUTHENTICATED"
        assert "disabled" in answer.json()["error"]["message"]
        again = account("disable", done["id"])
        assert "is disabled" in again.stdout
        assert bob.runs.get(other.id).status == "running"
    assert "work again" in account("enable", done["id"]).stdout
    ended = ada.runs.get(run.id)
    assert ended.status == "cancelled"
    assert ended.error is not None
    assert ended.error.code == "CANCELLED"


def test_work_of_a_disabled_account_may_go_on(ada: Client, account: Account) -> None:
    """Given `--let-finish`, then what is under way is not ended, and new work is refused."""
    run = ada.runs.create("test.nap", NAP)
    done = read_output(account("disable", "ada@example.org", "--let-finish", "--json"))
    assert (done["ended"], done["under_way"]) == (0, 1)
    assert "disabled" in str(refusal(ada))
    account("enable", "ada@example.org")
    assert ada.runs.get(run.id).status == "running"


def test_what_was_let_in_before_is_refused_all_the_same(served: Server, ada: Client) -> None:
    """Given a request that was let in, when its account is disabled, then its work is refused."""
    me = ada.account.get()
    engine = served.thread.engine
    disabled = PatchDocument("accounts", me.id, {"disabled_at": "2026-11-20T08:00:00.000Z"})

    async def late() -> None:
        await engine.core.store.write([disabled])
        await engine.core.quotas.check_queue(me.id)

    with pytest.raises(RequestError, match="disabled") as refused:
        served.thread.call(late())
    assert refused.value.code is ErrorCode.UNAUTHENTICATED


def test_a_lost_admin_key_is_recovered(served: Server, ada: Client, account: Account) -> None:
    """Given an account, then it gets a new key, told once, and its other ones may be revoked."""
    first, mine = account("recover", "ada@example.org"), ada.account.get().key
    assert mine is not None
    assert f"{mine.id} (…{mine.last4})" in first.stderr
    assert "toolkit keys revoke" in first.stderr
    key = first.stdout.splitlines()[-1]
    with Client(served.url, key) as recovered:
        assert recovered.api_keys.create(scopes=["read"]).scopes == ["read"]
        assert refusal(ada) is None
        second = read_output(account("recover", "ada@example.org", "--revoke-others", "--json"))
        assert (len(second["revoked"]), second["still_good"]) == (3, [])
        for client in (ada, recovered):
            assert str(refusal(client)) == str(RequestError(ErrorCode.UNAUTHENTICATED))
    with Client(served.url, second["api_key"]) as again:
        listed = again.api_keys.list(10)
        assert [key.record.revoked_at is None for key in listed].count(True) == 1
    assert key not in account("keys", "ada@example.org", "--json").output


def test_an_operator_sees_what_accounts_have(
    ada: Client, account: Account, settings: Settings
) -> None:
    """Given accounts with keys and work, then the operator is told of both, and of no secret."""
    ada.connections.create("minimax", "environment", "MINIMAX_API_KEY")
    made = ada.api_keys.create(name="nightly", max_cost_usd_per_day=5)
    with Client(ada.access.base_url, made.api_key) as nightly:
        cost = nightly.runs.create("llm.generate", {"objective": "Tea"}).wait().cost_usd
    ada.api_keys.delete(ada.api_keys.create(name="old").id)
    (listed,) = read_output(account("list", "--json"))
    assert (listed["email"], listed["spent_usd_today"]) == ("ada@example.org", cost)
    assert (listed["disabled_at"], listed["max_cost_usd_per_day"]) == (None, None)
    assert listed["records"] >= 6
    assert listed["stored_bytes"] > 1000
    assert "ada@example.org" in account("list").stdout
    shown = read_output(account("show", listed["id"], "--json"))
    assert shown["spent_usd_this_month"] == cost
    assert shown["artifact_bytes"] + shown["record_bytes"] == listed["stored_bytes"]
    assert shown["max_stored_bytes"] == settings.max_stored_bytes
    assert [one["secret_ref"] for one in shown["connections"]] == ["MINIMAX_API_KEY"]
    old, nightly_key, first = shown["keys"]
    assert (old["name"], old["last_used_at"]) == ("old", None)
    assert old["revoked_at"] is not None
    assert nightly_key["left_usd_today"] == pytest.approx(5 - cost)
    assert nightly_key["spent_usd_today"] == cost
    assert first["last_used_at"] is not None
    assert read_output(account("keys", "ada@example.org", "--json")) == shown["keys"]
    for line in (["list"], ["show", listed["id"]], ["keys", listed["id"]]):
        printed = account(*line).output
        assert made.api_key not in printed
        assert read_key(ada) not in printed
    over_http = {key.id: key.record for key in ada.api_keys.list(10)}
    assert over_http[nightly_key["id"]].left_usd_today == nightly_key["left_usd_today"]
    assert over_http[old["id"]].revoked_at is not None


def test_what_cannot_be_done_is_said_in_a_line(
    account: Account, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given an account that is none, or a notebook's own, then a line says what to do next."""
    Client.local(settings=settings).close()
    for line in (["show"], ["keys"], ["disable"], ["promote"], ["enable"], ["recover"]):
        with pytest.raises(RequestError, match="toolkit account list") as refused:
            account(*line, "acc_nobody")
        assert refused.value.code is ErrorCode.NOT_FOUND
        assert "\n" not in str(refused.value)
    with pytest.raises(RequestError, match="without a key"):
        account("disable", "notebook@localhost.localdomain")
    with pytest.raises(RequestError, match="toolkit account list"):
        account("show", "--read-only")
    line = ["account", "show", "acc_x", "--base-url", "http://127.0.0.1:1"]
    named = CliRunner().invoke(app, line)
    assert (named.exit_code, "data directory" in named.output) == (2, True)


async def test_a_key_s_use_is_written_once_a_minute(wire: Wire, settings: Settings) -> None:
    """Given many requests, then one write tells that the key was used, and undoes no other's."""
    store = wire.engine.core.store
    me = (await wire.send("GET", "/v1/account")).json()["data"]
    await store.write([])
    with closing(sqlite3.connect(settings.data_dir / "state.db")) as look:
        (seen,) = look.execute("PRAGMA data_version").fetchone()
        for _ in range(20):
            await wire.send("GET", "/v1/account")
        await store.write([])
        assert look.execute("PRAGMA data_version").fetchone()[0] - seen <= 1
    other = await Store.open(settings.data_dir)
    revoked = PatchDocument("api_keys", me["key"]["id"], {"revoked_at": "2026-11-20T08:00:00.000Z"})
    await other.write([revoked])
    await other.close()
    await store.write([PatchDocument("api_keys", me["key"]["id"], {"last_used_at": None})])
    assert (await wire.send("GET", "/v1/account")).status_code == 401
