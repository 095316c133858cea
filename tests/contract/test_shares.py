"""Connections that an operator shares with other accounts, by commands and by the client."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Server
from tests.contract.conftest import sign_up_client
from tests.support.commands import run_toolkit, say
from toolkit import Client, RequestError
from toolkit.settings import Settings

LINE = {"objective": "A line about tea", "max_tokens": 64}


def test_members_use_a_shared_connection(
    server: Server,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    name_dir: Callable[[Path], tuple[str, ...]],
) -> None:
    """Given an operator, then members use the shared connection, and the operator sees the cost."""
    folder = name_dir(settings.data_dir)
    email = "boss@example.org"
    account = json.loads(say("account", "create", email, *folder, "--json"))
    assert "may share" in say("account", "promote", email, *folder)
    monkeypatch.setenv("TOOLKIT_API_KEY", account["api_key"])

    def read(*words: str):
        return json.loads(say(*words, "--base-url", server.url, "--json"))

    def check_rejected(member: Client) -> None:
        with pytest.raises(RequestError, match="CREDENTIALS_MISSING"):
            member.runs.create("llm.generate", LINE)

    with sign_up_client(server.url) as bob, sign_up_client(server.url, "eve@example.org") as eve:
        bob_id = bob.account.get().id
        pointer = ("openai", "OPENAI_API_KEY")
        shared = read("connections", "create", *pointer, "--share", "--with", bob_id)
        assert shared["shared_with"] == [bob_id]
        connection = bob.connections.list()[0]
        shown = (connection.id, connection.shared, connection.secret_ref)
        assert shown == (shared["id"], True, "")
        run = bob.runs.create("llm.generate", LINE).wait()
        assert run.record.connection_id == shared["id"]
        check_rejected(eve)
        (line,) = read("usage", "list", "--by", "account")
        assert (line["account_id"], line["cost_usd"]) == (bob_id, run.cost_usd)
        bill = read("billing", "show", "--by-account")
        assert (bill["lines"][0]["account_id"], bill["total_usd"]) == (bob_id, run.cost_usd)
        with Client(base_url=server.url, api_key=account["api_key"]) as boss:
            assert boss.billing.get(by_account=True).total_usd == run.cost_usd
            assert boss.connections.unshare(shared["id"], bob_id).record.shared_with is None
            assert boss.connections.share(shared["id"], "all").record.shared_with == "all"
        assert eve.runs.create("llm.generate", LINE).wait().cost_usd
        say("account", "demote", email, *folder)
        check_rejected(eve)
        promoted = json.loads(say("account", "promote", account["id"], *folder, "--json"))
        assert promoted["email"] == email
        assert eve.runs.create("llm.generate", LINE).wait().cost_usd
        assert read("connections", "unshare", "openai")["shared_with"] is None
        check_rejected(bob)


def test_a_local_account_shares_its_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, find_url: Callable[[Path], str | None]
) -> None:
    """Given a local directory, then its account may share a connection with all."""
    database = find_url(tmp_path / "data")
    if database is not None:
        monkeypatch.setenv("TOOLKIT_DATABASE", database)
    folder = ("--data-dir", tmp_path / "data", "--sandbox", "--json")
    connection = json.loads(say("connections", "create", "openai", "OPENAI_API_KEY", *folder))
    shared = json.loads(say("connections", "share", "openai", "--all", *folder))
    assert (shared["id"], shared["shared_with"]) == (connection["id"], "all")
    for options in ((), ("--all", "--with", "acc_x")):
        assert run_toolkit("connections", "share", "openai", *options, *folder).exit_code == 2
