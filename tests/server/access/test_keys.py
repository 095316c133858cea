"""Keys: the key and the scope that each route needs, sign-up, and keys for workers.

A key for workers submits work within a budget, and reaches nothing else.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import Server
from tests.server.conftest import ON_ITS_LOOP, Wire, connect_caller, open_service, serve_engine
from tests.server.route_table import (
    KEYED_ROUTES,
    ROUTES,
    UNKNOWN,
    Route,
    build_post_body,
    name_parameters,
    strip_request_ids,
)
from toolkit import Client, RequestError
from toolkit.contract.base import now
from toolkit.contract.errors import ErrorCode
from toolkit.contract.ids import new_id
from toolkit.contract.operations.table import OPERATIONS
from toolkit.settings import Settings
from toolkit.store.blob_places.folder import BlobFolder
from toolkit.store.maintenance.prune import prune_records
from toolkit.store.sqlite.upkeep import SqliteUpkeep

OPEN = {"account_create", "health_read"}

ADMIN = "/v1/account/keys"

SHARED = "/v1/providers/connections/{id}/share"

# Posts that change nothing.
READING = {"route_create"}


def scope_of(route: Route) -> str:
    """Return the scope that a route needs."""
    if route.path.startswith(ADMIN) or route.path == SHARED:
        return "admin"
    return "read" if route.method == "GET" or route.name in READING else "write"


def request(route: Route) -> tuple[str, dict[str, Any]]:
    """Build a request to a route, with an unknown id if it has an id."""
    path = route.at(new_id(route.prefix)) if route.prefix else route.at(UNKNOWN)
    body = build_post_body(route.path) if route.method == "POST" else None
    if body == "a file":
        return path, {"files": {"file": ("a.txt", b"tea")}}
    return path, {} if body is None else {"json": body}


def test_two_routes_need_no_key() -> None:
    """Given the routes, then two need no key, and the document says so."""
    assert {route.name for route in ROUTES if not route.told["security"]} == OPEN


@pytest.mark.parametrize("route", name_parameters(KEYED_ROUTES))
@ON_ITS_LOOP
async def test_rejects_a_request_without_a_valid_key(shared_wire: Wire, route: Route) -> None:
    """Given no key, or a malformed, unknown or revoked key, then all get the same 401."""
    record = await shared_wire.send("POST", ADMIN, json={"scopes": ["read", "write", "admin"]})
    await shared_wire.send("DELETE", f"{ADMIN}/{record.json()['id']}")
    revoked = f"Bearer {record.json()['data']['api_key']}"
    unknown = "Bearer sk_live_" + "a" * 43
    credentials = [None, "Bearer x", "Basic YTpi", unknown, revoked, unknown[:-1], revoked + "x"]
    path, content = request(route)
    answers = []
    for value in credentials:
        for headers in ({}, {"Idempotency-Key": "once"}):
            keyed = headers if value is None else {**headers, "Authorization": value}
            answer = await shared_wire.http.request(route.method, path, headers=keyed, **content)
            assert answer.status_code == 401, answer.text
            assert answer.headers["WWW-Authenticate"] == "Bearer"
            answers.append(strip_request_ids(answer, path))
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize("route", name_parameters(KEYED_ROUTES))
@ON_ITS_LOOP
async def test_rejects_a_key_without_the_scope(shared_wire: Wire, route: Route) -> None:
    """Given a key with every other scope, then 403; with the scope alone, the key is accepted."""
    await connect_caller(shared_wire)
    needed = scope_of(route)
    path, content = request(route)
    other_scopes = [scope for scope in ("read", "write", "admin") if scope != needed]
    for scopes, is_accepted in ((other_scopes, False), ([needed], True)):
        record = await shared_wire.send("POST", ADMIN, json={"scopes": scopes})
        key = {"Authorization": f"Bearer {record.json()['data']['api_key']}"}
        answer = await shared_wire.http.request(route.method, path, headers=key, **content)
        if is_accepted:
            hint = f"{route.name} needs no `{needed}`: is it a post that changes nothing?"
            assert answer.status_code not in (401, 403), hint
        else:
            error = answer.json()["error"]
            assert (answer.status_code, error["code"]) == (403, "FORBIDDEN")
            assert f"scope `{needed}`" in error["message"]


@pytest.mark.parametrize("route", name_parameters([r for r in KEYED_ROUTES if r.method == "POST"]))
async def test_replays_no_answer_to_a_key_without_the_scope(wire: Wire, route: Route) -> None:
    """Given an Idempotency-Key, then a key without the scope gets no stored answer."""
    record = await wire.send("POST", ADMIN, json={"scopes": ["read"]})
    key = {"Authorization": f"Bearer {record.json()['data']['api_key']}", "Idempotency-Key": "once"}
    path, content = request(route)
    await wire.send("POST", path, headers={"Idempotency-Key": "once"}, **content)
    answer = await wire.http.post(path, headers=key, **content)
    if scope_of(route) != "read":
        assert answer.status_code == 403, f"{route.name}: {answer.text}"


@pytest.mark.parametrize("path", [ADMIN, ADMIN + "/{id}/rotate"])
async def test_does_not_replay_an_api_key(wire: Wire, path: str) -> None:
    """Given an idempotency key, then no answer with an API key is stored."""
    record = await wire.send("POST", ADMIN, json={})
    target = path.replace("{id}", record.json()["id"])
    headers = {"Idempotency-Key": "once"}
    first = await wire.send("POST", target, json={}, headers=headers)
    again = await wire.send("POST", target, json={}, headers=headers)
    assert first.status_code == 201
    assert "idempotency-replayed" not in again.headers
    assert (await wire.rows())["idempotency"] == 0


KINDS = ("runs", "jobs", "maps", "workflows", "tasks")
# The operations that such a key may call; all others must be rejected.
WORK = {
    *(f"POST /v1/{kind}" for kind in (*KINDS, "plans", "route")),
    *(f"GET /v1/{kind}/{{id}}" for kind in (*KINDS, "plans")),
    *(f"GET /v1/{kind}/{{id}}/events" for kind in KINDS),
    *(f"POST /v1/{kind}/{{id}}/cancel" for kind in KINDS),
    "POST /v1/maps/{id}/rows", "GET /v1/maps/{id}/rows",
    "POST /v1/workflows/{id}/retry", "POST /v1/workflows/{id}/fork", "POST /v1/tasks/{id}/resume",
    "POST /v1/artifacts", "GET /v1/artifacts/{id}", "GET /v1/artifacts/{id}/content",
    "GET /v1/artifacts/{id}/lineage", "GET /v1/capabilities", "GET /v1/capabilities/{id}",
    "GET /v1/providers", "GET /v1/account",
}  # fmt: skip


@contextmanager
def open_owner(data_dir: Path) -> Iterator[Client]:
    """The client of an account that has a connection, at a server."""
    with (
        closing(Server(Settings(data_dir=data_dir, sandbox=True))) as server,
        Client(server.url, server.sign_up("openai")) as client,
    ):
        yield client


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Client]:
    """The client of an account that has a connection, at a server."""
    with open_owner(tmp_path / "data") as client:
        yield client


def test_work_key_reaches_only_work(owner: Client) -> None:
    """Given a key for work alone, then every other operation is rejected."""
    key = owner.api_keys.create(scopes=["work"]).api_key
    url = str(owner.access.base_url).removesuffix("/").removesuffix("/v1")
    rejected, accepted = set[str](), set[str]()
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}) as http:
        for operation in OPERATIONS:
            if operation.scope is not None:
                path = operation.path.replace("{id}", "none")
                is_rejected = http.request(operation.method, path, json={}).status_code == 403
                name = f"{operation.method} {operation.path}"
                (rejected if is_rejected else accepted).add(name)
    assert accepted == WORK
    assert "POST /v1/providers/connections" in rejected


def test_work_key_keeps_its_total_budget(owner: Client) -> None:
    """Given a total budget, then work is done until it is spent, also by rotated keys."""
    work_key = owner.api_keys.create(scopes=["work"], max_cost_usd=0.0004, expires_in_s=3600)
    assert work_key.expires_at is not None
    assert abs(work_key.expires_at - now() - timedelta(hours=1)) < timedelta(minutes=2)
    fields = {"objective": "A line on tides", "max_tokens": 100}
    statuses = []
    with Client(owner.access.base_url, work_key.api_key) as worker:
        assert worker.info().spent_today_usd is None
        for _ in range(40):
            try:
                run = worker.runs.create("llm.generate", fields)
            except RequestError as error:
                assert error.code is ErrorCode.BUDGET_EXCEEDED  # noqa: PT017
                break
            statuses.append(run.wait(progress=False, check=False).status)
        else:
            pytest.fail("a budget has no end")
        with pytest.raises(RequestError, match="FORBIDDEN"):
            worker.connections.connect("google")
    assert "completed" in statuses
    spent = sum(run.record.cost_incurred_usd for run in owner.runs.list())
    assert 0 < spent <= 0.0004
    left_usd = owner.api_keys.get(work_key.id).record.left_usd
    assert left_usd == pytest.approx(0.0004 - spent)
    rotated = owner.api_keys.rotate(work_key.id)
    assert rotated.expires_at is not None
    with (
        Client(owner.access.base_url, rotated.api_key) as worker,
        pytest.raises(RequestError, match="in total"),
    ):
        worker.runs.create("llm.generate", fields)


@pytest.mark.sqlite("a data directory is pruned by its path")
def test_pruning_keeps_the_spent_part_of_a_total_budget(tmp_path: Path) -> None:
    """Given a partly spent budget, when old records are pruned, then it stays partly spent."""
    data_dir = tmp_path / "data"
    with open_owner(data_dir) as owner:
        work_key = owner.api_keys.create(scopes=["work"], max_cost_usd=1)
        with Client(owner.access.base_url, work_key.api_key) as worker:
            worker.runs.create("llm.generate", {"objective": "Tides"}).wait(progress=False)
        left_usd = owner.api_keys.get(work_key.id).record.left_usd
        assert left_usd is not None
        assert left_usd < 1
        with SqliteUpkeep.open(data_dir) as records:
            prune_records(records, timedelta(0), BlobFolder(data_dir / "artifacts"))
        assert not list(owner.runs.list())
        assert owner.api_keys.get(work_key.id).record.left_usd == left_usd


def test_key_grants_only_scopes_that_it_has(owner: Client) -> None:
    """Given a key with two scopes, then the keys that it creates have no other scope."""
    key = owner.api_keys.create(scopes=["work", "admin"]).api_key
    with Client(owner.access.base_url, key) as narrow:
        with pytest.raises(RequestError, match="scope that it lacks"):
            narrow.api_keys.create(scopes=["read"])
        assert narrow.api_keys.create(scopes=["work"]).scopes == ["work"]


async def post_sign_up(http: httpx.AsyncClient, name: str, **headers: str) -> httpx.Response:
    """Sign up, and return the answer."""
    body = {"email": f"{name}@example.org"}
    return await http.post("/v1/account", json=body, headers=headers or None)


async def test_rejects_a_closed_sign_up(settings: Settings) -> None:
    """Given closed sign-up, then 403 names the next step, and no account is created."""
    async with open_service(settings.model_copy(update={"closed_signup": True})) as wire:
        answer = await post_sign_up(wire.http, "ada")
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "FORBIDDEN")
        assert "operator" in answer.json()["error"]["message"]
        assert (await wire.rows())["accounts"] == 0


async def test_limits_sign_ups_by_address(settings: Settings) -> None:
    """Given two sign-ups an hour, then the third gets 429, with any X-Forwarded-For header."""
    async with serve_engine(settings.model_copy(update={"signups_per_hour": 2})) as http:
        answers = [
            await post_sign_up(http, name, **{"X-Forwarded-For": f"203.0.113.{i}"})
            for i, name in enumerate(("ada", "bob", "cyd"))
        ]
    assert [answer.status_code for answer in answers] == [201, 201, 429]
    assert answers[2].json()["error"]["code"] == "RATE_LIMITED"
    assert 1700 < int(answers[2].headers["retry-after"]) <= 1800


async def test_trusts_the_address_of_a_trusted_proxy(settings: Settings) -> None:
    """Given a trusted proxy, then each caller behind it has a limit of its own."""
    update = {"signups_per_hour": 1, "trust_proxy": frozenset({"127.0.0.1"})}
    async with serve_engine(settings.model_copy(update=update)) as http:
        answers = [
            await post_sign_up(http, f"n{i}", **{"X-Forwarded-For": address})
            for i, address in enumerate(
                ("203.0.113.1", "203.0.113.2", "203.0.113.2", "2001:db8::1", "2001:db8::2")
            )
        ]
    assert [answer.status_code for answer in answers] == [201, 201, 429, 201, 429]


async def test_rejects_a_sign_up_as_the_notebook(wire: Wire) -> None:
    """Given the address of a notebook's account, then the sign-up is a conflict."""
    answer = await wire.http.post("/v1/account", json={"email": "Notebook@localhost.localdomain"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "CONFLICT")
    _, key = await wire.engine.accounts.open_local_account()
    assert key
