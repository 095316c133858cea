"""Connections that an operator shares: their use, their cost, and their limits."""

from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import Wire, open_service, serve_wire
from tests.server.route_table import UNKNOWN, strip_request_ids
from tests.support.process_kill import kill_engine
from tests.support.timing import wait_until_async
from toolkit.contract.account import AccountCreate
from toolkit.contract.base import Record, Request
from toolkit.contract.errors import WorkError
from toolkit.engine import Registry
from toolkit.engine.access.account_admin import AccountAdmin
from toolkit.local import open_engine
from toolkit.plugins import Call, Capability, Flow, Result, pause
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings
from toolkit.store import AccountScope

CONNECTIONS = "/v1/providers/connections"
VARIABLES = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "runpod": "RUNPOD_API_KEY",
}
LINE = {"name": "llm.generate", "input": {"objective": "A line about tea", "max_tokens": 64}}
GPU = {"name": "easel", "gpu_type": "NVIDIA GeForce RTX 4090"}
TEXT = "completions"  # in the path of openai's calls for text
WAIT = {"Prefer": "wait=60"}


class ShareCaller(Wire):
    """A caller and its account id."""

    id: str

    async def ask(self, method: str, path: str, status: int = 200, **options: object) -> Any:
        """Send a request, and check its status; return the resource, or the error code."""
        answer = await self.send(method, path, **options)
        assert answer.status_code == status, answer.text
        body = answer.json()
        return body["error"]["code"] if status >= 400 else body["data"]

    async def connect(self, provider: str, **options: object) -> str:
        """Register the pointer of a vendor, and return its id."""
        pointer = {
            "provider": provider,
            "connection_type": "environment",
            "secret_ref": VARIABLES[provider],
            **options,
        }
        return str((await self.ask("POST", CONNECTIONS, 201, json=pointer))["id"])

    async def share(self, connection_id: str, accounts: object, status: int = 200) -> Any:
        """Share a connection."""
        path = f"{CONNECTIONS}/{connection_id}/share"
        return await self.ask("POST", path, status, json={"accounts": accounts})

    async def run(self, **options: object) -> Any:
        """Run a line of text to its end, and return the record."""
        body = {**LINE, "options": options}
        answer = await self.send("POST", "/v1/runs", json=body, headers=WAIT)
        assert answer.status_code in (200, 201, 202), answer.text
        assert answer.json()["status"] in ("completed", "failed"), answer.text
        return answer.json()["data"]

    async def list_usage(self, group_by: str) -> list[dict[str, Any]]:
        """Return the lines of usage."""
        return list((await self.ask("GET", f"/v1/usage?group_by={group_by}"))["items"])


async def create_caller(wire: Wire, name: str, *, operator: bool = False) -> ShareCaller:
    """Create an account of the same service, and return its caller."""
    request = AccountCreate(email=f"{name}@example.org")
    created = await wire.engine.accounts.create(request, operator=operator)
    caller = ShareCaller(wire.http, wire.engine, {"Authorization": f"Bearer {created.api_key}"})
    caller.id = created.id
    return caller


@pytest.fixture
async def boss(wire: Wire) -> ShareCaller:
    """An operator."""
    return await create_caller(wire, "boss", operator=True)


@pytest.fixture
async def bob(wire: Wire) -> ShareCaller:
    """A member of the team."""
    return await create_caller(wire, "bob")


@pytest.fixture
async def eve(wire: Wire) -> ShareCaller:
    """Another account."""
    return await create_caller(wire, "eve")


async def test_member_uses_and_pays_for_a_shared_connection(
    boss: ShareCaller, bob: ShareCaller, eve: ShareCaller
) -> None:
    """Given a connection shared with an account, then the account uses it at its own cost."""
    shared = await boss.connect("openai")
    other_connection = await boss.connect("anthropic")
    assert (await boss.share(shared, [bob.id]))["shared_with"] == [bob.id]
    runs = [await bob.run(), await bob.run(provider=shared)]
    for run in runs:
        assert (run["status"], run["connection_id"]) == ("completed", shared)
    assert (await eve.ask("POST", "/v1/runs", 400, json=LINE)) == "CREDENTIALS_MISSING"
    node = {"id": "a", "capability": "llm.generate", "input": LINE["input"]}
    bodies: dict[str, Any] = {
        "/v1/workflows": {"name": "w", "nodes": [node]},
        "/v1/tasks": {"objective": "A social card about tea"},
    }
    for path, body in bodies.items():
        work = await bob.send("POST", path, json=body, headers=WAIT)
        assert work.json()["status"] == "completed", work.text
    (bobs_usage,) = [line for line in await bob.list_usage("connection") if line["connection_id"]]
    assert bobs_usage["connection_id"] == shared
    assert bobs_usage["cost_usd"] >= sum(run["cost_usd"] for run in runs) > 0
    assert await boss.list_usage("connection") == []
    assert await eve.list_usage("connection") == []
    (line,) = await boss.list_usage("account")
    assert (line["account_id"], line["cost_usd"]) == (bob.id, bobs_usage["cost_usd"])
    assert await eve.list_usage("account") == await bob.list_usage("account") == []
    own_run = await boss.run(provider=other_connection)
    lines = {line["account_id"]: line for line in await boss.list_usage("account,provider")}
    assert lines[boss.id]["provider"] == "anthropic"
    bill = await boss.ask("GET", "/v1/billing?group_by=account")
    billed = {line["account_id"]: line["cost_usd"] for line in bill["lines"]}
    assert billed == {bob.id: bobs_usage["cost_usd"], boss.id: own_run["cost_usd"], None: 0}
    assert bill["total_usd"] == pytest.approx(sum(billed.values()))
    for group in ("key", "agent"):
        refused = await boss.ask("GET", f"/v1/usage?group_by=account,{group}", 400)
        assert refused == "INVALID_REQUEST"


async def test_member_sees_no_pointer_of_a_shared_connection(
    boss: ShareCaller, bob: ShareCaller, eve: ShareCaller
) -> None:
    """Given a shared connection, then a member sees the connection, and never its pointer."""
    shared = await boss.connect("openai", share=[bob.id])
    own_connection = await bob.connect("anthropic")
    last = await boss.connect("anthropic", share="all")
    views = [await bob.send("GET", f"{CONNECTIONS}/{shared}"), await bob.send("GET", CONNECTIONS)]
    test = await bob.send("POST", f"{CONNECTIONS}/{shared}/test")
    result = test.json()["data"]
    assert (result["resolved"], result["accepted"], result["models"]) == (True, True, [])
    route = await bob.send("POST", "/v1/route", json=LINE)
    assert route.json()["data"]["provider"] in VARIABLES
    for answer in (*views, test, route):
        assert "OPENAI_API_KEY" not in answer.text
        assert boss.id not in answer.text
        assert bob.id not in answer.text
    record = views[0].json()["data"]
    assert (record["id"], record["provider"], record["shared"]) == (shared, "openai", True)
    assert (record["secret_ref"], record["shared_with"]) == ("", None)
    listing = views[1].json()["data"]["items"]
    assert [item["id"] for item in listing] == [last, own_connection, shared]
    assert [item["shared"] for item in listing] == [True, False, True]
    pages, cursor = [], ""
    while cursor is not None:
        page = await bob.ask("GET", f"{CONNECTIONS}?limit=1&cursor={cursor}")
        pages += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
    assert pages == [last, own_connection, shared]
    vendors = await bob.ask("GET", "/v1/providers")
    assert {row["id"] for row in vendors["items"] if row["connected"]} == {"openai", "anthropic"}
    assert [item["id"] for item in (await eve.ask("GET", CONNECTIONS))["items"]] == [last]
    record = await boss.ask("GET", f"{CONNECTIONS}/{last}")
    assert (record["shared"], record["shared_with"]) == (False, "all")


@pytest.mark.parametrize(
    ("method", "end"),
    [("DELETE", ""), ("POST", "/trust"), ("POST", "/share"), ("DELETE", "/share")],
)
async def test_member_cannot_change_a_shared_connection(
    boss: ShareCaller, bob: ShareCaller, eve: ShareCaller, method: str, end: str
) -> None:
    """Given a shared connection, then members get 403, and other accounts get 404."""
    shared = await boss.connect("openai", share=[bob.id])
    core = bob.engine.core
    for caller in (bob, eve):  # operators have no more rights on connections of others
        await AccountAdmin(core.store, core.settings).set_operator(caller.id, operator=True)
    share = {"json": {"accounts": "all"}}
    content: dict[str, Any] = share if (method, end) == ("POST", "/share") else {}
    assert await bob.ask(method, f"{CONNECTIONS}/{shared}{end}", 403, **content) == "FORBIDDEN"
    theirs = await eve.send(method, f"{CONNECTIONS}/{shared}{end}", **content)
    nobodys = await eve.send(method, f"{CONNECTIONS}/prv_{UNKNOWN}{end}", **content)
    assert theirs.status_code == 404
    assert strip_request_ids(theirs, shared) == strip_request_ids(nobodys, f"prv_{UNKNOWN}")
    for pin in (shared, f"prv_{UNKNOWN}"):
        body = {**LINE, "options": {"provider": pin}}
        assert await eve.ask("POST", "/v1/runs", 404, json=body) == "NOT_FOUND"
    assert await bob.ask("PATCH", f"{CONNECTIONS}/{shared}", 405) == "METHOD_NOT_ALLOWED"
    assert (await boss.ask("GET", f"{CONNECTIONS}/{shared}"))["shared_with"] == [bob.id]


async def test_only_operators_share_with_existing_accounts(
    boss: ShareCaller, bob: ShareCaller, eve: ShareCaller
) -> None:
    """Given accounts and keys, then only an operator's admin key shares, with existing accounts."""
    shared, bobs = await boss.connect("openai"), await bob.connect("openai")
    assert await bob.share(bobs, [eve.id], 403) == "FORBIDDEN"
    pointer = {"provider": "openai", "connection_type": "environment", "secret_ref": "X"}
    content = {"json": {**pointer, "share": "all"}}
    assert await bob.ask("POST", CONNECTIONS, 403, **content) == "FORBIDDEN"
    assert len((await bob.ask("GET", CONNECTIONS))["items"]) == 1
    key = await boss.ask("POST", "/v1/account/keys", 201, json={"scopes": ["read", "write"]})
    weak = ShareCaller(boss.http, boss.engine, {"Authorization": f"Bearer {key['api_key']}"})
    assert await weak.share(shared, "all", 403) == "FORBIDDEN"
    assert await weak.ask("POST", CONNECTIONS, 403, **content) == "FORBIDDEN"
    assert await boss.share(shared, [f"acc_{UNKNOWN}"], 404) == "NOT_FOUND"
    for accounts in ([], ["bob"], "some", [boss.id]):
        assert await boss.share(shared, accounts, 400) == "INVALID_REQUEST"
    await boss.share(shared, [bob.id])
    both = await boss.share(shared, [eve.id])
    assert sorted(both["shared_with"]) == sorted([bob.id, eve.id])
    bobs_share = f"{CONNECTIONS}/{shared}/share?account={bob.id}"
    assert (await boss.ask("DELETE", bobs_share))["shared_with"] == [eve.id]
    assert (await boss.share(shared, "all"))["shared_with"] == "all"
    assert await boss.share(shared, [bob.id], 409) == "CONFLICT"
    assert await boss.ask("DELETE", bobs_share, 409) == "CONFLICT"
    assert (await boss.ask("DELETE", f"{CONNECTIONS}/{shared}/share"))["shared_with"] is None
    assert await eve.ask("GET", f"{CONNECTIONS}/{shared}", 404) == "NOT_FOUND"


async def test_own_connection_is_used_before_a_shared_connection(
    boss: ShareCaller, bob: ShareCaller
) -> None:
    """Given an own and a newer shared connection, then the own connection is used first."""
    own_connection = await bob.connect("openai")
    shared = await boss.connect("openai", share="all")
    assert (await bob.run(provider="openai"))["connection_id"] == own_connection
    assert (await bob.run(provider=shared))["connection_id"] == shared
    routed = await bob.ask("POST", "/v1/route", json=LINE)
    reasons = {
        row["connection_id"]: row["reason"] for row in routed["candidates"] if row["allowed"]
    }
    assert reasons[shared] == f"connected; `{own_connection}` is your own"
    await bob.ask("DELETE", f"{CONNECTIONS}/{own_connection}")
    await bob.connect("openai", secret_ref="NOT_THERE")
    assert (await bob.run(provider="openai"))["connection_id"] == shared


async def test_limits_of_a_member_apply_to_shared_connections(
    boss: ShareCaller, bob: ShareCaller
) -> None:
    """Given a member's daily limits, then they hold for a shared connection."""
    await boss.connect("openai", share="all")
    routed = await bob.ask("POST", "/v1/route", json=LINE)
    limit = routed["reservation_usd"] * 1.5
    await bob.engine.accounts.set_daily_limit(bob.id, limit)
    spent, code = 0.0, ""
    while not code:
        answer = await bob.send("POST", "/v1/runs", json=LINE, headers=WAIT)
        if answer.status_code == 402:
            code = answer.json()["error"]["code"]
        else:
            spent += answer.json()["data"]["cost_usd"]
    assert (code, 0 < spent <= limit) == ("BUDGET_EXCEEDED", True)
    assert (await boss.run())["status"] == "completed"
    await bob.engine.accounts.set_daily_limit(bob.id, None)
    limit_body = {"max_cost_usd_per_day": routed["reservation_usd"] * 0.9}
    key = await bob.ask("POST", "/v1/account/keys", 201, json=limit_body)
    poor = ShareCaller(bob.http, bob.engine, {"Authorization": f"Bearer {key['api_key']}"})
    assert await poor.ask("POST", "/v1/runs", 402, json=LINE) == "BUDGET_EXCEEDED"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/compute", GPU),
        ("POST", "/v1/storage", {"name": "weights", "size_gb": 20}),
        ("POST", "/v1/endpoints", {"name": "studio"}),
        ("POST", "/v1/templates", {"name": "worker", "image": "example/worker:1"}),
        ("GET", "/v1/catalog/gpus", None),
    ],
)
async def test_shared_connection_rents_nothing(
    boss: ShareCaller, bob: ShareCaller, method: str, path: str, body: object
) -> None:
    """Given a shared GPU cloud, then it rents nothing; an own connection does."""
    shared = await boss.connect("runpod", share="all")
    content: dict[str, Any] = {} if body is None else {"json": body}
    assert await bob.ask(method, path, 403, **content) == "FORBIDDEN"
    picture = {"prompt": "a cup", "steps": 1, "width": 256, "height": 256}
    run = {"target": "capability", "name": "image.generate", "input": picture}
    if method == "POST":
        assert (await bob.ask("GET", path))["items"] == []
    else:
        drawn = await bob.send("POST", "/v1/runs", json=run, headers=WAIT)
        assert drawn.json()["data"]["connection_id"] == shared, drawn.text
    own_connection = await bob.connect("runpod")
    place = await bob.ask(method, path, 200 if body is None else 201, **content)
    if path in ("/v1/compute", "/v1/endpoints"):
        name = "compute_id" if path == "/v1/compute" else "endpoint_id"
        pinned: dict[str, Any] = {**run, "options": {name: place["id"]}}
        record = (await bob.send("POST", "/v1/runs", json=pinned, headers=WAIT)).json()["data"]
        assert record["connection_id"] == own_connection, record
        pinned["options"]["provider"] = shared
        assert await bob.ask("POST", "/v1/runs", 400, json=pinned) == "PROVIDER_NOT_ALLOWED"


@pytest.mark.parametrize("how", ["own deleted", "unshared", "deleted", "no operator", "disabled"])
async def test_ended_share_cannot_be_used(boss: ShareCaller, bob: ShareCaller, how: str) -> None:
    """Given a share that ends, then waiting calls cannot use its connection."""
    is_own = how == "own deleted"
    connection = await (bob.connect("openai") if is_own else boss.connect("openai", share=[bob.id]))
    core, path = bob.engine.core, f"{CONNECTIONS}/{connection}"
    ((waiting,),) = (await core.directory.list_connections(AccountScope(bob.id))).values()
    assert await core.resolve_secret(waiting)
    if how == "unshared":
        await boss.ask("DELETE", f"{path}/share")
    elif how.endswith("deleted"):
        await (bob if is_own else boss).ask("DELETE", path)
        assert await core.store.find_rows("shares") == []
    elif how == "disabled":
        await AccountAdmin(core.store, core.settings).disable(boss.id)
    else:
        await AccountAdmin(core.store, core.settings).set_operator(boss.id, operator=False)
    with pytest.raises(WorkError, match=r"^CREDENTIALS_MISSING:"):
        await core.resolve_secret(waiting)
    if not is_own:
        assert await bob.ask("GET", path, 404) == "NOT_FOUND"
    assert await bob.ask("POST", "/v1/runs", 400, json=LINE) == "CREDENTIALS_MISSING"


class GateInput(Request):
    """The file that the gate waits for."""

    path: str


class GateOutput(Record):
    """The file."""

    path: str


def wait_for_file(call: Call[GateInput]) -> Flow[Result]:
    """Wait for a file."""
    while not Path(call.input.path).exists():
        yield from pause(0.01)
    return Result({"path": call.input.path})


GATE = Capability(
    id="test.gate",
    title="Gate",
    description="Waits for a file",
    input_model=GateInput,
    output_model=GateOutput,
    flow=wait_for_file,
)


@pytest.mark.parametrize("own_providers", [[], ["anthropic"]], ids=["shared only", "own too"])
async def test_running_workflow_when_its_share_ends(
    settings: Settings, tmp_path: Path, own_providers: list[str]
) -> None:
    """Given a running workflow, when the share ends, then it uses an own connection or fails."""
    registry, faults = Registry.load(extra=[GATE]), Faults()
    async with open_service(settings, registry=registry, faults=faults) as wire:
        boss, bob = (
            await create_caller(wire, "boss", operator=True),
            await create_caller(wire, "bob"),
        )
        shared = await boss.connect("openai", share=[bob.id])
        own_connection = [await bob.connect(provider) for provider in own_providers]
        line = {"capability": "llm.generate", "input": LINE["input"], "depends_on": ["gate"]}
        gate = {"capability": "test.gate", "input": {"path": str(tmp_path / "open")}}
        flow = {"name": "w", "nodes": [{"id": "gate", **gate}, {"id": "line", **line}]}
        workflow = await bob.send("POST", "/v1/workflows", json=flow)
        await boss.ask("DELETE", f"{CONNECTIONS}/{shared}/share")
        (tmp_path / "open").touch()
        path = f"/v1/workflows/{workflow.json()['id']}"
        record = (await bob.send("GET", path, headers=WAIT)).json()
        node = record["data"]["nodes"][1]
        if own_connection:
            assert (record["status"], node["provider"]) == ("completed", "anthropic")
        else:
            assert record["error"]["code"] == node["error"]["code"] == "CREDENTIALS_MISSING"
        assert not [call for call in faults.calls if call.billed and call.vendor == "openai"]


@pytest.mark.parametrize("is_ended", [False, True], ids=["shared", "ended"])
async def test_restart_resumes_a_run_of_a_shared_connection(
    settings: Settings, *, is_ended: bool
) -> None:
    """Given a run that a crash interrupted, then it is resumed if the share still exists."""
    slow = Faults()
    slow.add(Fault("openai", delay_ms=600_000, times=None, path_contains=TEXT))
    engine = await open_engine(settings, faults=slow)
    async with serve_wire(engine) as wire:
        boss, bob = (
            await create_caller(wire, "boss", operator=True),
            await create_caller(wire, "bob"),
        )
        shared = await boss.connect("openai", share=[bob.id])
        run = (await bob.send("POST", "/v1/runs", json=LINE)).json()["id"]
        await wait_until_async(lambda: any(TEXT in call.path for call in slow.calls))
        if is_ended:
            await boss.ask("DELETE", f"{CONNECTIONS}/{shared}/share")
        await kill_engine(engine)
    faults = Faults()
    async with open_service(settings, faults=faults) as wire:
        again = ShareCaller(wire.http, wire.engine, bob.headers)
        record = (await again.send("GET", f"/v1/runs/{run}", headers=WAIT)).json()
        if is_ended:
            assert record["error"]["code"] == "CREDENTIALS_MISSING"
            assert not faults.calls
        else:
            assert (record["status"], record["data"]["connection_id"]) == ("completed", shared)
            assert [line["jobs"] for line in await again.list_usage("connection")] == [1]
