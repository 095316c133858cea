"""Connections that an operator shares: who may use them, who pays, and what nobody else can do."""

from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import Wire, serve_wire
from tests.server.route_table import UNKNOWN, strip_request_ids
from tests.support.process_kill import kill_engine
from tests.support.timing import wait_until_async
from toolkit.contract.account import AccountCreate
from toolkit.contract.base import Record, Request
from toolkit.contract.errors import ErrorCode, WorkError
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
LINE = {
    "target": "capability",
    "name": "llm.generate",
    "input": {"objective": "A line about tea", "max_tokens": 64},
}
GPU = {"name": "easel", "gpu_type": "NVIDIA GeForce RTX 4090"}
TEXT = "completions"  # what openai is asked for text at
WAIT = {"Prefer": "wait=60"}


class ShareCaller(Wire):
    """A caller, and its account's id."""

    id: str

    async def ask(self, method: str, path: str, status: int = 200, **options: object) -> Any:
        """Send a request that has to be answered by a status; the resource or the error's code."""
        answer = await self.send(method, path, **options)
        assert answer.status_code == status, answer.text
        body = answer.json()
        return body["error"]["code"] if status >= 400 else body["data"]

    async def connect(self, provider: str, **more: object) -> str:
        """Register the pointer of a vendor; its id."""
        pointer = {
            "provider": provider,
            "connection_type": "environment",
            "secret_ref": VARIABLES[provider],
            **more,
        }
        made = await self.ask("POST", CONNECTIONS, 201, json=pointer)
        return str(made["id"])

    async def share(self, connection_id: str, accounts: object, status: int = 200) -> Any:
        """Share a connection."""
        path = f"{CONNECTIONS}/{connection_id}/share"
        return await self.ask("POST", path, status, json={"accounts": accounts})

    async def run(self, **options: object) -> Any:
        """A run of a line of text, once it has ended."""
        answer = await self.send(
            "POST", "/v1/runs", json={**LINE, "options": options}, headers=WAIT
        )
        assert answer.status_code in (200, 201, 202), answer.text
        assert answer.json()["status"] in ("completed", "failed"), answer.text
        return answer.json()["data"]

    async def list_usage(self, group_by: str) -> list[dict[str, Any]]:
        """Lines of usage."""
        found = await self.ask("GET", f"/v1/usage?group_by={group_by}")
        return list(found["items"])


async def account(wire: Wire, name: str, *, operator: bool = False) -> ShareCaller:
    """A caller of the same service, with a new account."""
    request = AccountCreate(email=f"{name}@example.org")
    made = await wire.engine.accounts.create(request, operator=operator)
    caller = ShareCaller(wire.http, wire.engine, {"Authorization": f"Bearer {made.api_key}"})
    caller.id = made.id
    return caller


@pytest.fixture
async def boss(wire: Wire) -> ShareCaller:
    """An operator."""
    return await account(wire, "boss", operator=True)


@pytest.fixture
async def bob(wire: Wire) -> ShareCaller:
    """A member of the team."""
    return await account(wire, "bob")


@pytest.fixture
async def eve(wire: Wire) -> ShareCaller:
    """Somebody else with an account."""
    return await account(wire, "eve")


async def test_a_member_works_by_it_and_is_billed(
    boss: ShareCaller, bob: ShareCaller, eve: ShareCaller
) -> None:
    """Given a connection shared with one account, then that one works by it at its own expense."""
    shared = await boss.connect("openai")
    other = await boss.connect("anthropic")
    assert (await boss.share(shared, [bob.id]))["shared_with"] == [bob.id]
    (run, again) = (await bob.run(), await bob.run(provider=shared))
    for done in (run, again):
        assert (done["status"], done["connection_id"]) == ("completed", shared)
    assert (await eve.ask("POST", "/v1/runs", 400, json=LINE)) == "CREDENTIALS_MISSING"
    node = {"id": "a", "capability": "llm.generate", "input": LINE["input"]}
    more: dict[str, Any] = {
        "/v1/workflows": {"name": "w", "nodes": [node]},
        "/v1/tasks": {"objective": "A social card about tea"},
    }
    for path, body in more.items():
        made = await bob.send("POST", path, json=body, headers=WAIT)
        assert made.json()["status"] == "completed", made.text
    (mine,) = [line for line in await bob.list_usage("connection") if line["connection_id"]]
    assert mine["connection_id"] == shared
    assert mine["cost_usd"] >= run["cost_usd"] + again["cost_usd"] > 0
    assert await boss.list_usage("connection") == []
    assert await eve.list_usage("connection") == []
    (line,) = await boss.list_usage("account")
    assert (line["account_id"], line["cost_usd"]) == (bob.id, mine["cost_usd"])
    assert await eve.list_usage("account") == await bob.list_usage("account") == []
    own = await boss.run(provider=other)
    by_whom = {line["account_id"]: line for line in await boss.list_usage("account,provider")}
    assert by_whom[boss.id]["provider"] == "anthropic"
    bill = await boss.ask("GET", "/v1/billing?group_by=account")
    billed = {line["account_id"]: line["cost_usd"] for line in bill["lines"]}
    assert billed == {bob.id: mine["cost_usd"], boss.id: own["cost_usd"], None: 0}
    assert bill["total_usd"] == pytest.approx(sum(billed.values()))
    for group in ("key", "agent"):
        refused = await boss.ask("GET", f"/v1/usage?group_by=account,{group}", 400)
        assert refused == "INVALID_REQUEST"


async def test_what_a_member_sees(boss: ShareCaller, bob: ShareCaller, eve: ShareCaller) -> None:
    """Given a shared connection, then a member sees that it is there, and never its pointer."""
    shared = await boss.connect("openai", share=[bob.id])
    own = await bob.connect("anthropic")
    last = await boss.connect("anthropic", share="all")
    seen = [await bob.send("GET", f"{CONNECTIONS}/{shared}"), await bob.send("GET", CONNECTIONS)]
    tested = await bob.send("POST", f"{CONNECTIONS}/{shared}/test")
    result = tested.json()["data"]
    assert (result["resolved"], result["accepted"], result["models"]) == (True, True, [])
    routed = await bob.send("POST", "/v1/route", json=LINE)
    assert routed.json()["data"]["provider"] in VARIABLES
    for answer in (*seen, tested, routed):
        assert "OPENAI_API_KEY" not in answer.text
        assert boss.id not in answer.text
        assert bob.id not in answer.text
    record = seen[0].json()["data"]
    assert (record["id"], record["provider"], record["shared"]) == (shared, "openai", True)
    assert (record["secret_ref"], record["shared_with"]) == ("", None)
    listed = seen[1].json()["data"]["items"]
    assert [one["id"] for one in listed] == [last, own, shared]
    assert [one["shared"] for one in listed] == [True, False, True]
    pages, path = [], f"{CONNECTIONS}?limit=1"
    while path:
        page = await bob.ask("GET", path)
        pages += [one["id"] for one in page["items"]]
        cursor = page["next_cursor"]
        path = f"{CONNECTIONS}?limit=1&cursor={cursor}" if cursor else ""
    assert pages == [last, own, shared]
    vendors = await bob.ask("GET", "/v1/providers")
    assert {one["id"] for one in vendors["items"] if one["connected"]} == {"openai", "anthropic"}
    assert [one["id"] for one in (await eve.ask("GET", CONNECTIONS))["items"]] == [last]
    mine = await boss.ask("GET", f"{CONNECTIONS}/{last}")
    assert (mine["shared"], mine["shared_with"]) == (False, "all")


@pytest.mark.parametrize(
    ("method", "end"),
    [("DELETE", ""), ("POST", "/trust"), ("POST", "/share"), ("DELETE", "/share")],
)
async def test_a_member_changes_nothing(
    boss: ShareCaller, bob: ShareCaller, eve: ShareCaller, method: str, end: str
) -> None:
    """Given a shared connection, then members are refused, and to all others it is not there."""
    shared = await boss.connect("openai", share=[bob.id])
    core = bob.engine.core
    for who in (bob, eve):  # that they are operators themselves makes no difference
        await AccountAdmin(core.store, core.settings).set_operator(who.id, operator=True)
    body = {"json": {"accounts": "all"}}
    sent: dict[str, Any] = body if (method, end) == ("POST", "/share") else {}
    assert await bob.ask(method, f"{CONNECTIONS}/{shared}{end}", 403, **sent) == "FORBIDDEN"
    theirs = await eve.send(method, f"{CONNECTIONS}/{shared}{end}", **sent)
    nobodys = await eve.send(method, f"{CONNECTIONS}/prv_{UNKNOWN}{end}", **sent)
    assert theirs.status_code == 404
    assert strip_request_ids(theirs, shared) == strip_request_ids(nobodys, f"prv_{UNKNOWN}")
    for pin in (shared, f"prv_{UNKNOWN}"):
        asked = {**LINE, "options": {"provider": pin}}
        assert await eve.ask("POST", "/v1/runs", 404, json=asked) == "NOT_FOUND"
    assert await bob.ask("PATCH", f"{CONNECTIONS}/{shared}", 405) == "METHOD_NOT_ALLOWED"
    assert (await boss.ask("GET", f"{CONNECTIONS}/{shared}"))["shared_with"] == [bob.id]


async def test_who_may_share_what_with_whom(
    boss: ShareCaller, bob: ShareCaller, eve: ShareCaller
) -> None:
    """Given accounts and keys, then an operator's with the scope shares with accounts there are."""
    shared, bobs = await boss.connect("openai"), await bob.connect("openai")
    assert await bob.share(bobs, [eve.id], 403) == "FORBIDDEN"
    pointer = {"provider": "openai", "connection_type": "environment", "secret_ref": "X"}
    asked = {"json": {**pointer, "share": "all"}}
    assert await bob.ask("POST", CONNECTIONS, 403, **asked) == "FORBIDDEN"
    assert len((await bob.ask("GET", CONNECTIONS))["items"]) == 1
    key = await boss.ask("POST", "/v1/account/keys", 201, json={"scopes": ["read", "write"]})
    weak = ShareCaller(boss.http, boss.engine, {"Authorization": f"Bearer {key['api_key']}"})
    assert await weak.share(shared, "all", 403) == "FORBIDDEN"
    assert await weak.ask("POST", CONNECTIONS, 403, **asked) == "FORBIDDEN"
    assert await boss.share(shared, [f"acc_{UNKNOWN}"], 404) == "NOT_FOUND"
    for none in ([], ["bob"], "some", [boss.id]):
        assert await boss.share(shared, none, 400) == "INVALID_REQUEST"
    await boss.share(shared, [bob.id])
    both = await boss.share(shared, [eve.id])
    assert sorted(both["shared_with"]) == sorted([bob.id, eve.id])
    one = f"{CONNECTIONS}/{shared}/share?account={bob.id}"
    assert (await boss.ask("DELETE", one))["shared_with"] == [eve.id]
    assert (await boss.share(shared, "all"))["shared_with"] == "all"
    assert await boss.share(shared, [bob.id], 409) == "CONFLICT"
    assert await boss.ask("DELETE", one, 409) == "CONFLICT"
    assert (await boss.ask("DELETE", f"{CONNECTIONS}/{shared}/share"))["shared_with"] is None
    assert await eve.ask("GET", f"{CONNECTIONS}/{shared}", 404) == "NOT_FOUND"


async def test_the_own_connection_comes_first(boss: ShareCaller, bob: ShareCaller) -> None:
    """Given an own connection and a newer shared one, then the own one serves, until it fails."""
    own = await bob.connect("openai")
    shared = await boss.connect("openai", share="all")
    assert (await bob.run(provider="openai"))["connection_id"] == own
    assert (await bob.run(provider=shared))["connection_id"] == shared
    routed = await bob.ask("POST", "/v1/route", json=LINE)
    allowed = [one for one in routed["candidates"] if one["allowed"]]
    reasons = {one["connection_id"]: one["reason"] for one in allowed}
    assert reasons[shared] == f"connected; `{own}` is your own"
    await bob.ask("DELETE", f"{CONNECTIONS}/{own}")
    bad = await bob.connect("openai", secret_ref="NOT_THERE")
    assert (await bob.run(provider="openai"))["connection_id"] == shared
    assert bad


async def test_the_limits_of_a_member_hold(boss: ShareCaller, bob: ShareCaller) -> None:
    """Given a member's daily limits, then they hold for what is shared, and are nobody else's."""
    await boss.connect("openai", share="all")
    routed = await bob.ask("POST", "/v1/route", json=LINE)
    most = routed["reservation_usd"] * 1.5
    await bob.engine.accounts.set_daily_limit(bob.id, most)
    spent, refused = 0.0, ""
    while not refused:
        answer = await bob.send("POST", "/v1/runs", json=LINE, headers=WAIT)
        if answer.status_code == 402:
            refused = answer.json()["error"]["code"]
        else:
            spent += answer.json()["data"]["cost_usd"]
    assert (refused, 0 < spent <= most) == ("BUDGET_EXCEEDED", True)
    assert (await boss.run())["status"] == "completed"
    await bob.engine.accounts.set_daily_limit(bob.id, None)
    asked = {"max_cost_usd_per_day": routed["reservation_usd"] * 0.9}
    key = await bob.ask("POST", "/v1/account/keys", 201, json=asked)
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
async def test_nothing_is_rented_by_it(
    boss: ShareCaller, bob: ShareCaller, method: str, path: str, body: object
) -> None:
    """Given a shared GPU cloud, then renting is refused, and works by a connection of one's own."""
    shared = await boss.connect("runpod", share="all")
    sent: dict[str, Any] = {} if body is None else {"json": body}
    assert await bob.ask(method, path, 403, **sent) == "FORBIDDEN"
    picture = {"prompt": "a cup", "steps": 1, "width": 256, "height": 256}
    asked = {"target": "capability", "name": "image.generate", "input": picture}
    if method == "POST":
        assert (await bob.ask("GET", path))["items"] == []
    else:
        drawn = await bob.send("POST", "/v1/runs", json=asked, headers=WAIT)
        assert drawn.json()["data"]["connection_id"] == shared, drawn.text
    own = await bob.connect("runpod")
    made = await bob.ask(method, path, 200 if body is None else 201, **sent)
    if path in ("/v1/compute", "/v1/endpoints"):
        name = "compute_id" if path == "/v1/compute" else "endpoint_id"
        placed: dict[str, Any] = {**asked, "options": {name: made["id"]}}
        done = (await bob.send("POST", "/v1/runs", json=placed, headers=WAIT)).json()["data"]
        assert done["connection_id"] == own, done
        placed["options"]["provider"] = shared
        assert await bob.ask("POST", "/v1/runs", 400, json=placed) == "PROVIDER_NOT_ALLOWED"


async def test_what_is_deleted_leads_nowhere(bob: ShareCaller) -> None:
    """Given a call that waits for its turn, then it is not made by a connection deleted since."""
    own = await bob.connect("openai")
    core = bob.engine.core
    ((held,),) = (await core.directory.list_connections(AccountScope(bob.id))).values()
    assert await core.resolve_secret(held)
    await bob.ask("DELETE", f"{CONNECTIONS}/{own}")
    with pytest.raises(WorkError, match="deleted") as refused:
        await core.resolve_secret(held)
    assert refused.value.code is ErrorCode.CREDENTIALS_MISSING


@pytest.mark.parametrize("how", ["unshared", "deleted", "no operator", "disabled"])
async def test_an_end_is_an_end(boss: ShareCaller, bob: ShareCaller, how: str) -> None:
    """Given a share that ends, then nothing is seen of it, and what holds it leads nowhere."""
    shared = await boss.connect("openai", share=[bob.id])
    core = bob.engine.core
    ((held,),) = (await core.directory.list_connections(AccountScope(bob.id))).values()
    assert await core.resolve_secret(held)
    if how == "unshared":
        await boss.ask("DELETE", f"{CONNECTIONS}/{shared}/share")
    elif how == "deleted":
        await boss.ask("DELETE", f"{CONNECTIONS}/{shared}")
        assert await core.store.find_rows("shares") == []
    elif how == "disabled":
        await AccountAdmin(core.store, core.settings).disable(boss.id)
    else:
        await AccountAdmin(core.store, core.settings).set_operator(boss.id, operator=False)
    with pytest.raises(WorkError, match=r"^CREDENTIALS_MISSING:"):
        await core.resolve_secret(held)
    assert await bob.ask("GET", f"{CONNECTIONS}/{shared}", 404) == "NOT_FOUND"
    assert await bob.ask("POST", "/v1/runs", 400, json=LINE) == "CREDENTIALS_MISSING"


class GateInput(Request):
    """A file that is waited for."""

    path: str


class GateOutput(Record):
    """That it is there."""

    path: str


def gate(call: Call[GateInput]) -> Flow[Result]:
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
    flow=gate,
)


@pytest.mark.parametrize("others", [[], ["anthropic"]], ids=["alone", "beside another"])
async def test_work_under_way_as_a_share_ends(
    settings: Settings, tmp_path: Path, others: list[str]
) -> None:
    """Given a workflow that has yet to call by it, then it calls by another, or fails."""
    registry, faults = Registry.load(extra=[GATE]), Faults()
    engine = await open_engine(settings, registry=registry, faults=faults)
    async with serve_wire(engine) as wire:
        boss, bob = await account(wire, "boss", operator=True), await account(wire, "bob")
        shared = await boss.connect("openai", share=[bob.id])
        own = [await bob.connect(provider) for provider in others]
        line = {"capability": "llm.generate", "input": LINE["input"], "depends_on": ["gate"]}
        waits = {"capability": "test.gate", "input": {"path": str(tmp_path / "open")}}
        flow = {"name": "w", "nodes": [{"id": "gate", **waits}, {"id": "line", **line}]}
        made = await bob.send("POST", "/v1/workflows", json=flow)
        await boss.ask("DELETE", f"{CONNECTIONS}/{shared}/share")
        (tmp_path / "open").touch()
        path = f"/v1/workflows/{made.json()['id']}"
        ended = (await bob.send("GET", path, headers=WAIT)).json()
        node = ended["data"]["nodes"][1]
        if own:
            assert (ended["status"], node["provider"]) == ("completed", "anthropic")
        else:
            assert ended["error"]["code"] == node["error"]["code"] == "CREDENTIALS_MISSING"
        assert not [call for call in faults.calls if call.billed and call.vendor == "openai"]
    await engine.close(0)


@pytest.mark.parametrize("ended", [False, True], ids=["shared still", "ended meanwhile"])
async def test_a_restart_goes_on_by_it(settings: Settings, *, ended: bool) -> None:
    """Given a member's run that a crash cut off, then it goes on by what is shared with it yet."""
    slow = Faults()
    slow.add(Fault("openai", delay_ms=600_000, times=None, path_contains=TEXT))
    engine = await open_engine(settings, faults=slow)
    async with serve_wire(engine) as wire:
        boss, bob = await account(wire, "boss", operator=True), await account(wire, "bob")
        shared = await boss.connect("openai", share=[bob.id])
        run = (await bob.send("POST", "/v1/runs", json=LINE)).json()["id"]
        await wait_until_async(lambda: any(TEXT in call.path for call in slow.calls))
        if ended:
            await boss.ask("DELETE", f"{CONNECTIONS}/{shared}/share")
        await kill_engine(engine)
    engine = await open_engine(settings, faults=(faults := Faults()))
    async with serve_wire(engine) as wire:
        again = ShareCaller(wire.http, engine, bob.headers)
        done = (await again.send("GET", f"/v1/runs/{run}", headers=WAIT)).json()
        if ended:
            assert done["error"]["code"] == "CREDENTIALS_MISSING"
            assert not faults.calls
        else:
            assert (done["status"], done["data"]["connection_id"]) == ("completed", shared)
            assert [line["jobs"] for line in await again.list_usage("connection")] == [1]
    await engine.close(0)
