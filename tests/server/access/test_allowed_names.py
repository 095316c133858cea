"""Which variables a server's callers may point to, account by account."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from typer.testing import CliRunner

from tests.server.conftest import Wire, serve_wire
from toolkit import Client
from toolkit.cli import app
from toolkit.contract.errors import ToolkitError
from toolkit.local import open_engine
from toolkit.settings import Settings, VendorSettings

runner = CliRunner()
NAMES = ("OPENAI_API_KEY", "TEAM_KEY", "EVERYONES_KEY", "OTHER_KEY", "TOOLKIT_SECRET")


@pytest.fixture
async def server(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Wire]:
    """A server for a team, whose vendor is out of reach and whose environment has all names."""
    for name in NAMES:
        monkeypatch.setenv(name, "sk-test-5d41402abc4b2a76")
    nowhere = VendorSettings(base_urls={"api": "http://127.0.0.1:9"})
    real = settings.model_copy(
        update={"sandbox": False, "vendors": {"openai": nowhere}, "retries": 0}
    )
    engine = await open_engine(real, allow_env=frozenset({"EVERYONES_KEY"}))
    async with serve_wire(engine) as wire:
        yield wire
    await engine.close(0)


def create_operator_account(settings: Settings, *args: str) -> dict[str, str]:
    """The headers of an account that the operator made while the server runs."""
    given = ["account", "create", *args, "--data-dir", str(settings.data_dir), "--json"]
    shown = runner.invoke(app, given, catch_exceptions=False)
    return {"Authorization": f"Bearer {json.loads(shown.stdout)['api_key']}"}


async def check_pointer(wire: Wire, name: str) -> tuple[bool, object]:
    """Tell whether a pointer resolves, and in which words it does not."""
    pointer = {"provider": "openai", "connection_type": "environment", "secret_ref": name}
    link = await wire.send("POST", "/v1/providers/connections", json=pointer)
    assert link.status_code == 201, link.text
    tested = await wire.send("POST", f"/v1/providers/connections/{link.json()['id']}/test")
    result = tested.json()["data"]
    return result["resolved"], None if result["resolved"] else result["error"]


async def list_resolved_names(wire: Wire) -> set[str]:
    """The names that resolve for a caller."""
    return {name for name in NAMES if (await check_pointer(wire, name))[0]}


async def test_an_account_has_the_names_it_was_given(server: Wire, settings: Settings) -> None:
    """Given accounts of the operator and one signed up, then each has its own names alone."""
    own = await asyncio.to_thread(
        create_operator_account, settings, "team@example.org", "--allow-env", "TEAM_KEY"
    )
    plain = await asyncio.to_thread(create_operator_account, settings, "plain@example.org")
    stranger = await server.sign_up("eve@example.org")
    names = {}
    for who, headers in (("own", own), ("plain", plain), ("stranger", stranger)):
        server.headers = headers
        names[who] = await list_resolved_names(server)
    assert names == {
        "own": {"OPENAI_API_KEY", "TEAM_KEY", "EVERYONES_KEY"},
        "plain": {"OPENAI_API_KEY", "EVERYONES_KEY"},
        "stranger": {"EVERYONES_KEY"},
    }


async def test_no_answer_tells_whether_a_name_is_there(
    server: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given names not allowed, not set, and ours, then answers are the same, also of a run."""
    server.headers = await server.sign_up("eve@example.org")
    answers = [
        await check_pointer(server, name) for name in ("OTHER_KEY", "NOT_THERE", "TOOLKIT_SECRET")
    ]
    monkeypatch.delenv("EVERYONES_KEY")
    answers.append(await check_pointer(server, "EVERYONES_KEY"))
    assert all(answer == answers[0] for answer in answers)
    assert answers[0][0] is False
    run = {"target": "capability", "name": "llm.generate", "input": {"objective": "Tea"}}
    errors = set()
    for name in ("OTHER_KEY", "NOT_THERE"):
        await check_pointer(server, name)  # the newest connection is the one used
        done = await server.send("POST", "/v1/runs", json=run, headers={"Prefer": "wait=60"})
        errors.add((done.json()["error"]["code"], done.json()["error"]["message"]))
    assert len(errors) == 1
    assert errors.pop()[0] == "SECRET_UNRESOLVED"


@pytest.mark.parametrize("name", ["TOOLKIT_DATA_DIR", "toolkit_x", "two words", "1ST", ""])
def test_names_that_no_account_can_have(settings: Settings, name: str) -> None:
    """Given our own settings, or what no variable is called, then the operator is told."""
    Client.local(settings=settings).close()
    with pytest.raises(ToolkitError, match="variable"):
        create_operator_account(settings, "team@example.org", "--allow-env", name)


def test_an_address_has_one_account_here_too(settings: Settings) -> None:
    """Given an account, when the operator makes it again, then it is a conflict."""
    Client.local(settings=settings).close()
    where = ["--data-dir", str(settings.data_dir)]
    shown = runner.invoke(app, ["account", "create", "ada@example.org", *where])
    assert shown.stdout.splitlines()[1].startswith("sk_live_")
    with pytest.raises(ToolkitError, match="CONFLICT"):
        create_operator_account(settings, "Ada@example.org")
    assert runner.invoke(app, ["account", "create", "nobody", *where]).exit_code == 2
