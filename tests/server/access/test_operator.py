"""The operator's commands for accounts, while the server runs."""

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
    """A server with a slow capability."""
    server = Server(settings, registry=load_slow_registry())
    yield server
    server.close()


@pytest.fixture
def ada(served: Server) -> Iterator[Client]:
    """The client of an account of the server."""
    with sign_up_client(served.url) as client:
        yield client


@pytest.fixture
def account(settings: Settings) -> Account:
    """Run `toolkit account` on the data directory of the server."""

    def run_account(*line: str) -> Result:
        options = ["--data-dir", str(settings.data_dir)]
        return CliRunner().invoke(app, ["account", *line, *options], catch_exceptions=False)

    return run_account


def find_key_error(client: Client) -> RequestError | None:
    """Return the error of a client's key, or None if the key works."""
    try:
        client.account.get()
    except RequestError as error:
        return error
    return None


def read_output(result: Result) -> Any:
    """Parse the JSON that a command printed."""
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_disabling_an_account_ends_its_work(served: Server, ada: Client, account: Account) -> None:
    """Given work and a stream, when the account is disabled, then both end and its key fails."""
    run = ada.runs.create("test.nap", NAP)
    with sign_up_client(served.url, "bob@example.org") as bob:
        bobs_run = bob.runs.create("test.nap", NAP)
        headers = {"Authorization": f"Bearer {read_key(ada)}"}
        path = f"{served.url}/v1/runs/{run.id}/events"
        with httpx.stream("GET", path, headers=headers | STREAM, timeout=PATIENCE_S) as response:
            lines = response.iter_lines()
            assert next(lines) == "id: 1"
            report = read_output(account("disable", "ADA@example.org", "--json"))
            assert (report["ended"], report["under_way"]) == (1, 0)
            list(lines)  # because the stream ends
        answer = httpx.post(f"{served.url}/v1/runs", headers=headers, json={})
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert answer.json()["error"]["code"] == "UNAUTHENTICATED"
        assert "disabled" in answer.json()["error"]["message"]
        assert "is disabled" in account("disable", report["id"]).stdout
        assert bob.runs.get(bobs_run.id).status == "running"
    assert "work again" in account("enable", report["id"]).stdout
    record = ada.runs.get(run.id)
    assert record.status == "cancelled"
    assert record.error is not None
    assert record.error.code == "CANCELLED"


def test_running_work_of_a_disabled_account_may_finish(ada: Client, account: Account) -> None:
    """Given `--let-finish`, then running work goes on, and new work is rejected."""
    run = ada.runs.create("test.nap", NAP)
    report = read_output(account("disable", "ada@example.org", "--let-finish", "--json"))
    assert (report["ended"], report["under_way"]) == (0, 1)
    assert "disabled" in str(find_key_error(ada))
    account("enable", "ada@example.org")
    assert ada.runs.get(run.id).status == "running"


def test_rejects_an_accepted_request_of_a_disabled_account(served: Server, ada: Client) -> None:
    """Given an accepted request, when its account is disabled, then its work is rejected."""
    me = ada.account.get()
    engine = served.thread.engine
    disabled = PatchDocument("accounts", me.id, {"disabled_at": "2026-11-20T08:00:00.000Z"})

    async def late() -> None:
        await engine.core.store.write([disabled])
        await engine.core.quotas.check_queue(me.id)

    with pytest.raises(RequestError, match="disabled") as error:
        served.thread.call(late())
    assert error.value.code is ErrorCode.UNAUTHENTICATED


def test_recovers_a_lost_admin_key(served: Server, ada: Client, account: Account) -> None:
    """Given an account, then it gets a new key, printed once, and its other keys may be revoked."""
    first, lost_key = account("recover", "ada@example.org"), ada.account.get().key
    assert lost_key is not None
    assert f"{lost_key.id} (…{lost_key.last4})" in first.stderr
    assert "toolkit keys revoke" in first.stderr
    key = first.stdout.splitlines()[-1]
    with Client(served.url, key) as recovered:
        assert recovered.api_keys.create(scopes=["read"]).scopes == ["read"]
        assert find_key_error(ada) is None
        second = read_output(account("recover", "ada@example.org", "--revoke-others", "--json"))
        assert (len(second["revoked"]), second["still_good"]) == (3, [])
        for client in (ada, recovered):
            assert str(find_key_error(client)) == str(RequestError(ErrorCode.UNAUTHENTICATED))
    with Client(served.url, second["api_key"]) as client:
        records = client.api_keys.list(10)
        assert [key.record.revoked_at is None for key in records].count(True) == 1
    assert key not in account("keys", "ada@example.org", "--json").output


def test_lists_accounts_with_keys_and_spending(
    ada: Client, account: Account, settings: Settings
) -> None:
    """Given accounts with keys and work, then the commands show both, and no secret."""
    ada.connections.create("minimax", "environment", "MINIMAX_API_KEY")
    night_key = ada.api_keys.create(name="nightly", max_cost_usd_per_day=5)
    with Client(ada.access.base_url, night_key.api_key) as nightly:
        cost = nightly.runs.create("llm.generate", {"objective": "Tea"}).wait().cost_usd
    ada.api_keys.delete(ada.api_keys.create(name="old").id)
    (account_row,) = read_output(account("list", "--json"))
    assert (account_row["email"], account_row["spent_usd_today"]) == ("ada@example.org", cost)
    assert (account_row["disabled_at"], account_row["max_cost_usd_per_day"]) == (None, None)
    assert account_row["records"] >= 6
    assert account_row["stored_bytes"] > 1000
    assert "ada@example.org" in account("list").stdout
    details = read_output(account("show", account_row["id"], "--json"))
    assert details["spent_usd_this_month"] == cost
    assert details["artifact_bytes"] + details["record_bytes"] == account_row["stored_bytes"]
    assert details["max_stored_bytes"] == settings.max_stored_bytes
    assert [connection["secret_ref"] for connection in details["connections"]] == [
        "MINIMAX_API_KEY"
    ]
    old, nightly_row, first = details["keys"]
    assert (old["name"], old["last_used_at"]) == ("old", None)
    assert old["revoked_at"] is not None
    assert nightly_row["left_usd_today"] == pytest.approx(5 - cost)
    assert nightly_row["spent_usd_today"] == cost
    assert first["last_used_at"] is not None
    assert read_output(account("keys", "ada@example.org", "--json")) == details["keys"]
    for line in (["list"], ["show", account_row["id"]], ["keys", account_row["id"]]):
        printed = account(*line).output
        assert night_key.api_key not in printed
        assert read_key(ada) not in printed
    over_http = {key.id: key.record for key in ada.api_keys.list(10)}
    assert over_http[nightly_row["id"]].left_usd_today == nightly_row["left_usd_today"]
    assert over_http[old["id"]].revoked_at is not None


def test_explains_an_impossible_change(
    account: Account, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given an unknown account, or the account of a notebook, then one line names the next step."""
    Client.local(settings=settings).close()
    for line in (["show"], ["keys"], ["disable"], ["promote"], ["enable"], ["recover"]):
        with pytest.raises(RequestError, match="toolkit account list") as error:
            account(*line, "acc_nobody")
        assert error.value.code is ErrorCode.NOT_FOUND
        assert "\n" not in str(error.value)
    with pytest.raises(RequestError, match="without a key"):
        account("disable", "notebook@localhost.localdomain")
    with pytest.raises(RequestError, match="toolkit account list"):
        account("show", "--read-only")
    line = ["account", "show", "acc_x", "--base-url", "http://127.0.0.1:1"]
    result = CliRunner().invoke(app, line)
    assert (result.exit_code, "data directory" in result.output) == (2, True)


async def test_writes_the_use_of_a_key_once_a_minute(wire: Wire, settings: Settings) -> None:
    """Given many requests, then one write records the use of the key, and keeps other changes."""
    store = wire.engine.core.store
    me = (await wire.send("GET", "/v1/account")).json()["data"]
    await store.write([])
    with closing(sqlite3.connect(settings.data_dir / "state.db")) as connection:
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        for _ in range(20):
            await wire.send("GET", "/v1/account")
        await store.write([])
        assert connection.execute("PRAGMA data_version").fetchone()[0] - version <= 1
    other_store = await Store.open(settings.data_dir)
    revoked = PatchDocument("api_keys", me["key"]["id"], {"revoked_at": "2026-11-20T08:00:00.000Z"})
    await other_store.write([revoked])
    await other_store.close()
    await store.write([PatchDocument("api_keys", me["key"]["id"], {"last_used_at": None})])
    assert (await wire.send("GET", "/v1/account")).status_code == 401
