"""Whatever belongs to one account is to another as if it were not there: on every route."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.server import route_table
from tests.server.conftest import ON_ITS_LOOP, Wire, connect_caller
from tests.server.route_table import (
    ID_PREFIXES,
    LISTS,
    OWNED_ROUTES,
    ROUTES,
    UNKNOWN,
    Route,
    build_post_body,
    create_resource,
    find_body_ids,
    name_parameters,
    replace_member,
    strip_request_ids,
)
from toolkit.contract.ids import Prefix

STREAM = {"Accept": "text/event-stream"}
# Inputs that name an artifact: the capability, its input, and the member that does.
# Each field of an input that names artifacts, and the input with the id of an artifact in it.
INPUTS: dict[tuple[str, str], Callable[[str], dict[str, Any]]] = {
    ("composition.layout", "image"): lambda id: {"title": "Tea", "image": id},
    ("embed.generate", "artifact_id"): lambda id: {"artifact_id": id},
    ("llm.generate", "images"): lambda id: {"objective": "Tea", "images": [id]},
    ("llm.generate", "messages"): lambda id: {"messages": [show_picture(id)]},
    ("speech.transcribe", "audio"): lambda id: {"audio": id},
    ("text.generate", "images"): lambda id: {"objective": "Tea", "images": [id]},
    ("text.generate", "messages"): lambda id: {"messages": [show_picture(id)]},
    ("voice.clone", "reference_audio"): lambda id: {"name": "ada", "reference_audio": id},
}
IN_BODIES = [
    pytest.param(route, where, prefix, id=f"{route.name}-{'.'.join(where)}")
    for route, where, prefix in find_body_ids()
    if any(one.method == "POST" and ID_PREFIXES.get(one.path) is prefix for one in ROUTES)
]


async def create_stranger(wire: Wire) -> Wire:
    """Another account, which has connected the same vendors and one that transcribes."""
    other = Wire(wire.http, wire.engine, await wire.sign_up("eve@example.org"))
    return await connect_caller(other, ("minimax", "runpod", "elevenlabs"))


def test_every_id_has_a_kind() -> None:
    """Given a path with an id, then it is known whose ids stand there, or that all may read it."""
    unknown = [route.path for route in OWNED_ROUTES if route.prefix is None]
    assert not unknown, f"{unknown}: give its resource a prefix in toolkit/contract/operations"


@pytest.mark.parametrize("route", name_parameters(OWNED_ROUTES))
async def test_a_foreign_id_is_answered_like_an_unknown_one(wire: Wire, route: Route) -> None:
    """Given A's resource, when B uses its id, then it is as if unknown, and untouched."""
    await connect_caller(wire)
    assert route.prefix is not None
    own = await create_resource(wire, route.prefix)
    eve = await create_stranger(wire)
    for headers in [{}, STREAM] if route.streamed else [{}]:
        given = await _body(eve, route)
        theirs = await eve.send(route.method, route.at(own["id"]), headers=headers, **given)
        unknown = f"{route.prefix}_{UNKNOWN}"
        nobodys = await eve.send(route.method, route.at(unknown), headers=headers, **given)
        assert theirs.status_code == 404, theirs.text
        assert strip_request_ids(theirs, own["id"]) == strip_request_ids(nobodys, unknown)
    listed = await wire.send("GET", route.path.partition("/{")[0])
    there = [item for item in listed.json()["data"]["items"] if item["id"] == own["id"]]
    assert there, "it is gone"
    assert not there[0].get("revoked_at")
    assert not there[0].get("deleted")
    assert there[0].get("status") != "cancelled"


@pytest.mark.parametrize("route", name_parameters(OWNED_ROUTES))
@ON_ITS_LOOP
async def test_what_is_no_id_is_not_there(shared_wire: Wire, route: Route) -> None:
    """Given ids of no form, of another kind, or with much in them, then 404, without a trace."""
    assert route.prefix is not None
    given = await _body(shared_wire, route)
    proper = f"{route.prefix}_{UNKNOWN}"
    others = [f"{prefix}_{UNKNOWN}" for prefix in Prefix if prefix is not route.prefix][:3]
    faulty = ["0", "-", proper.upper(), proper[:-1], f"{proper}0", f"{route.prefix}_", *others]
    faulty += ["%27%20OR%201=1--", "%00", "%ff%fe", "%2e%2e", "..;", "a" * 5000, "%F0%9F%8D%B5"]
    for sent in faulty:
        answer = await shared_wire.send(route.method, route.at(sent), **given)
        assert answer.status_code == 404, (sent, answer.text)
        assert answer.json()["error"]["code"] == "NOT_FOUND"


@pytest.mark.parametrize(("route", "where", "prefix"), IN_BODIES)
async def test_a_foreign_id_in_a_body_is_like_an_unknown_one(
    wire: Wire, route: Route, where: tuple[str, ...], prefix: Prefix
) -> None:
    """Given A's id in B's body, then B is answered as with an id that nobody has."""
    await connect_caller(wire)
    own = (await create_resource(wire, prefix))["id"]
    eve = await create_stranger(wire)
    body = (await route_table.options(eve, route))["json"]
    path = route.path
    if "{" in path:
        assert route.prefix is not None
        path = route.at((await create_resource(eve, route.prefix))["id"])
    unknown = f"{prefix}_{UNKNOWN}"
    theirs = await eve.send("POST", path, json=replace_member(body, where, own))
    nobodys = await eve.send("POST", path, json=replace_member(body, where, unknown))
    assert theirs.status_code in (400, 404), theirs.text
    assert strip_request_ids(theirs, own) == strip_request_ids(nobodys, unknown)


def show_picture(artifact_id: str) -> dict[str, Any]:
    """A message that shows the picture of an artifact."""
    return {"role": "user", "content": [{"type": "image", "artifact_id": artifact_id}]}


async def test_every_input_that_names_an_artifact_is_tried(wire: Wire) -> None:
    """Given the capabilities, then the fields that take artifacts by their ids are in INPUTS."""
    capabilities = wire.engine.core.registry.list_newest()
    fields = {(c.id, name) for c in capabilities for name in c.artifact_fields}
    for capability in capabilities:
        bindings = capability.accepts.items()
        fields |= {(capability.id, name) for name, take in bindings if take.mode == "artifact"}
    assert fields == set(INPUTS)


@pytest.mark.parametrize("field", INPUTS, ids=".".join)
@pytest.mark.parametrize("area", ["runs", "workflows"])
async def test_a_foreign_artifact_as_input(wire: Wire, field: tuple[str, str], area: str) -> None:
    """Given A's artifact in the input of B's work, then it is as one that nobody has."""
    own = (await create_resource(wire, Prefix.ARTIFACT))["id"]
    eve = await create_stranger(wire)
    answers = []
    for named_id in (own, f"art_{UNKNOWN}"):
        capability, work = field[0], INPUTS[field](named_id)
        body = {"target": "capability", "name": capability, "input": work}
        if area == "workflows":
            body = {"name": "w", "nodes": [{"id": "a", "capability": capability, "input": work}]}
        answer = await eve.send("POST", f"/v1/{area}", json=body)
        assert answer.status_code == 404, answer.text
        answers.append(strip_request_ids(answer, named_id))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("route", name_parameters(LISTS))
async def test_lists_show_nothing_of_others(wire: Wire, route: Route) -> None:
    """Given what A has made, then B's list of the same is without it, also after A's cursor."""
    await connect_caller(wire)
    kind = ID_PREFIXES[route.path]
    own = [(await create_resource(wire, kind))["id"] for _ in range(2)]
    eve = Wire(wire.http, wire.engine, await wire.sign_up("eve@example.org"))
    cursor = (await wire.send("GET", f"{route.path}?limit=1")).json()["data"]["next_cursor"]
    for query in ("", "?limit=200", f"?cursor={cursor}"):
        answer = await eve.send("GET", f"{route.path}{query}")
        assert answer.status_code == 200
        assert not any(one in answer.text for one in own)


READ_BY_ID = [
    route for route in OWNED_ROUTES if route.method == "GET" and route.path.endswith("/{id}")
]


@pytest.mark.parametrize("route", name_parameters(READ_BY_ID))
async def test_a_foreign_id_takes_no_longer(wire: Wire, route: Route) -> None:
    """Given many reads of both, then foreign and unknown ids take as long."""
    await connect_caller(wire)
    assert route.prefix is not None
    own = (await create_resource(wire, route.prefix))["id"]
    eve = Wire(wire.http, wire.engine, await wire.sign_up("eve@example.org"))
    took: dict[str, list[int]] = {own: [], f"{route.prefix}_{UNKNOWN}": []}
    for _ in range(60):
        for sent, times in took.items():
            started = time.perf_counter_ns()
            await eve.send("GET", route.at(sent))
            times.append(time.perf_counter_ns() - started)
    # The quarter that nothing came in between of: a machine that is busy slows both alike.
    foreign, unknown = (statistics.quantiles(times, n=4)[0] for times in took.values())
    assert 0.5 < foreign / unknown < 2


async def _body(wire: Wire, route: Route) -> dict[str, Any]:
    """The body of a route that needs one; what its id names is not looked at."""
    if route.method != "POST" or "requestBody" not in route.told:
        return {}
    return {"json": build_post_body(route.path)}
