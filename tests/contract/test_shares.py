"""A connection of the operator's for a team, from the command line and by the client."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.conftest import Server
from tests.contract.conftest import sign_up_client
from tests.support.commands import say
from toolkit import Client, RequestError
from toolkit.cli import app
from toolkit.settings import Settings

LINE = {"objective": "A line about tea", "max_tokens": 64}


def test_a_team_shares_an_operator_s_connection(
    server: Server,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    name_dir: Callable[[Path], tuple[str, ...]],
) -> None:
    """Given an operator, then members work by what is shared, and it is told who spent what."""
    folder = name_dir(settings.data_dir)
    email = "boss@example.org"
    made = json.loads(say("account", "create", email, *folder, "--json"))
    assert "may share" in say("account", "promote", email, *folder)
    monkeypatch.setenv("TOOLKIT_API_KEY", made["api_key"])
    at = ("--base-url", server.url, "--json")
    with sign_up_client(server.url) as bob, sign_up_client(server.url, "eve@example.org") as eve:
        with_bob = ("--with", bob.account.get().id)
        pointer = ("openai", "OPENAI_API_KEY")
        shared = json.loads(say("connections", "create", *pointer, "--share", *with_bob, *at))
        assert shared["shared_with"] == [with_bob[1]]
        found = bob.connections.list()[0]
        assert (found.id, found.shared, found.secret_ref) == (shared["id"], True, "")
        run = bob.runs.create("llm.generate", LINE).wait()
        assert run.record.connection_id == shared["id"]
        with pytest.raises(RequestError, match="CREDENTIALS_MISSING"):
            eve.runs.create("llm.generate", LINE)
        (line,) = json.loads(say("usage", "list", "--by", "account", *at))
        assert (line["account_id"], line["cost_usd"]) == (with_bob[1], run.cost_usd)
        bill = json.loads(say("billing", "show", "--by-account", *at))
        assert (bill["lines"][0]["account_id"], bill["total_usd"]) == (with_bob[1], run.cost_usd)
        with Client(base_url=server.url, api_key=made["api_key"]) as boss:
            assert boss.billing.get(by_account=True).total_usd == run.cost_usd
            assert boss.connections.unshare(shared["id"], with_bob[1]).record.shared_with is None
            assert boss.connections.share(shared["id"], "all").record.shared_with == "all"
        assert eve.runs.create("llm.generate", LINE).wait().cost_usd
        say("account", "demote", email, *folder)
        with pytest.raises(RequestError, match="CREDENTIALS_MISSING"):
            eve.runs.create("llm.generate", LINE)
        promoted = json.loads(say("account", "promote", made["id"], *folder, "--json"))
        assert promoted["email"] == email
        assert eve.runs.create("llm.generate", LINE).wait().cost_usd
        assert json.loads(say("connections", "unshare", "openai", *at))["shared_with"] is None
        with pytest.raises(RequestError, match="CREDENTIALS_MISSING"):
            bob.runs.create("llm.generate", LINE)


def test_a_notebook_s_own_account_is_an_operator_s(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    find_url: Callable[[Path], str | None],
) -> None:
    """Given a directory of one's own, then its connections are shared without being asked who."""
    database = find_url(tmp_path / "data")
    if database is not None:
        monkeypatch.setenv("TOOLKIT_DATABASE", database)
    folder = ("--data-dir", tmp_path / "data", "--sandbox", "--json")
    made = json.loads(say("connections", "create", "openai", "OPENAI_API_KEY", *folder))
    shown = json.loads(say("connections", "share", "openai", "--all", *folder))
    assert (shown["id"], shown["shared_with"]) == (made["id"], "all")
    for wrong in ([], ["--all", "--with", "acc_x"]):
        asked = ("connections", "share", "openai", *wrong, *folder)
        told = CliRunner().invoke(app, [str(each) for each in asked])
        assert told.exit_code == 2
