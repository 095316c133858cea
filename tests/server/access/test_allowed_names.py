"""Names that an account may use; no caller can name the address of a vendor."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.server.conftest import Wire, open_service
from tests.server.route_table import DOCUMENT
from tests.support.commands import run_toolkit, say
from toolkit import Client
from toolkit.contract.errors import ToolkitError
from toolkit.engine import Registry
from toolkit.settings import Settings, VendorSettings

NAMES = ("OPENAI_API_KEY", "TEAM_KEY", "EVERYONES_KEY", "OTHER_KEY", "TOOLKIT_SECRET")


@pytest.fixture
async def server(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Wire]:
    """A caller of a server whose environment has all names; its vendor cannot be reached."""
    for name in NAMES:
        monkeypatch.setenv(name, "sk-test-5d41402abc4b2a76")
    nowhere = VendorSettings(base_urls={"api": "http://127.0.0.1:9"})
    real = settings.model_copy(
        update={"sandbox": False, "vendors": {"openai": nowhere}, "retries": 0}
    )
    async with open_service(real, allow_env=frozenset({"EVERYONES_KEY"})) as wire:
        yield wire


def create_operator_account(settings: Settings, *args: str) -> dict[str, str]:
    """Create an account while the server runs, and return the headers with its key."""
    line = ["account", "create", *args, "--data-dir", settings.data_dir, "--json"]
    return {"Authorization": f"Bearer {json.loads(say(*line))['api_key']}"}


async def check_pointer(wire: Wire, name: str) -> tuple[bool, object]:
    """Return whether a pointer resolves, and the error if it does not."""
    pointer = {"provider": "openai", "connection_type": "environment", "secret_ref": name}
    link = await wire.send("POST", "/v1/providers/connections", json=pointer)
    assert link.status_code == 201, link.text
    tested = await wire.send("POST", f"/v1/providers/connections/{link.json()['id']}/test")
    result = tested.json()["data"]
    return result["resolved"], None if result["resolved"] else result["error"]


async def test_account_uses_only_its_own_names(server: Wire, settings: Settings) -> None:
    """Given accounts of the operator and a signed-up account, then each uses only its own names."""
    team = await asyncio.to_thread(
        create_operator_account, settings, "team@example.org", "--allow-env", "TEAM_KEY"
    )
    plain = await asyncio.to_thread(create_operator_account, settings, "plain@example.org")
    stranger = await server.sign_up("eve@example.org")
    names = {}
    for account_name, headers in (("team", team), ("plain", plain), ("stranger", stranger)):
        server.headers = headers
        names[account_name] = {name for name in NAMES if (await check_pointer(server, name))[0]}
    assert names == {
        "team": {"OPENAI_API_KEY", "TEAM_KEY", "EVERYONES_KEY"},
        "plain": {"OPENAI_API_KEY", "EVERYONES_KEY"},
        "stranger": {"EVERYONES_KEY"},
    }


async def test_no_answer_reveals_whether_a_name_exists(
    server: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a forbidden, a missing and a reserved name, then all answers are the same."""
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
        await check_pointer(server, name)  # a run uses the newest connection
        answer = await server.send("POST", "/v1/runs", json=run, headers={"Prefer": "wait=60"})
        errors.add((answer.json()["error"]["code"], answer.json()["error"]["message"]))
    assert len(errors) == 1
    assert errors.pop()[0] == "SECRET_UNRESOLVED"


@pytest.mark.parametrize("name", ["TOOLKIT_DATA_DIR", "toolkit_x", "two words", "1ST", ""])
def test_rejects_names_that_no_account_may_have(settings: Settings, name: str) -> None:
    """Given a setting of the toolkit, or an invalid name, then the command fails."""
    Client.local(settings=settings).close()
    line = ("account", "create", "team@example.org", "--allow-env", name)
    error = run_toolkit(*line, "--data-dir", settings.data_dir).exception
    assert isinstance(error, ToolkitError)
    assert "variable" in str(error)


def test_operator_creates_one_account_per_address(settings: Settings) -> None:
    """Given an account, when the operator creates it again, then it is a conflict."""
    Client.local(settings=settings).close()
    data_dir = ["--data-dir", settings.data_dir]
    output = say("account", "create", "ada@example.org", *data_dir)
    assert output.splitlines()[1].startswith("sk_live_")
    conflict = run_toolkit("account", "create", "Ada@example.org", *data_dir)
    assert "CONFLICT" in str(conflict.exception)
    assert run_toolkit("account", "create", "nobody", *data_dir).exit_code == 2


ADDRESSES = ("url", "uri", "host", "address", "webhook", "callback", "proxy", "endpoint_url")


def list_members(schema: Any) -> set[str]:
    """Return the names of all members of a schema, at any depth."""
    if isinstance(schema, list):
        return set().union(*map(list_members, schema))
    if not isinstance(schema, dict):
        return set()
    names = {str(name) for name in schema.get("properties", {})}
    return names.union(*map(list_members, schema.values()))


def test_no_body_has_an_address_of_a_vendor() -> None:
    """Given every body and every capability's input, then no member is an address."""
    schemas = DOCUMENT["components"]["schemas"]
    strict = {n: s for n, s in schemas.items() if s.get("additionalProperties") is False}
    body_names = {
        body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        for path in DOCUMENT["paths"].values()
        for operation in path.values()
        if "application/json" in (body := operation.get("requestBody", {"content": {}}))["content"]
    }
    assert len(body_names) >= 12
    assert body_names <= set(strict)
    members = {name: list_members(schema) for name, schema in strict.items()}
    for capability in Registry.load().list_newest():
        members[capability.name] = list_members(capability.input_model.model_json_schema())
        assert capability.input_model.model_config.get("extra") == "forbid"
    assert len(members) > 25
    for owner, names in members.items():
        addresses = [name for name in names if any(word in name.lower() for word in ADDRESSES)]
        assert not addresses, owner
