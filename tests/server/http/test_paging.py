"""Lists, page by page, whatever comes and goes meanwhile: on every route that has pages."""

import base64

import pytest

from tests.server.conftest import ON_ITS_LOOP, Wire, connect_caller
from tests.server.route_table import (
    ID_PREFIXES,
    LISTS,
    ROUTES,
    UNKNOWN,
    Route,
    create_resource,
    name_parameters,
)
from toolkit.contract.ids import Prefix

MOST = 2  # records that are counted, in a test

DELETED = [
    route
    for route in LISTS
    if any(one.method == "DELETE" and one.path == f"{route.path}/{{id}}" for one in ROUTES)
]


async def walk(wire: Wire, route: Route, limit: int, between: list[object] | None = None) -> list:
    """The ids of all pages; after each, one more is made if a list is given to name it in."""
    seen: list[str] = []
    cursor = ""
    while True:
        page = (await wire.send("GET", f"{route.path}?limit={limit}{cursor}")).json()["data"]
        assert page["count"] == len(page["items"]) <= limit
        seen += [item["id"] for item in page["items"]]
        if between is not None:
            between.append((await create_resource(wire, ID_PREFIXES[route.path]))["id"])
        if page["next_cursor"] is None:
            return seen
        cursor = f"&cursor={page['next_cursor']}"


async def make(wire: Wire, route: Route, count: int) -> None:
    """Connect the caller, and make so many of what a route lists."""
    await connect_caller(wire)
    for _ in range(count):
        await create_resource(wire, ID_PREFIXES[route.path])


def test_every_list_has_a_kind() -> None:
    """Given the lists with pages, then it is known whose ids are in each."""
    unknown = [route.path for route in LISTS if route.path not in ID_PREFIXES]
    assert not unknown, f"{unknown}: give its resource a prefix in toolkit/contract/operations"


@pytest.mark.parametrize("route", name_parameters(LISTS))
async def test_pages_while_new_ones_come(wire: Wire, route: Route) -> None:
    """Given a list that grows while it is read, then each old one is seen once, newest first."""
    await make(wire, route, 5)
    old = await walk(wire, route, 200)
    assert old == sorted(old, reverse=True)
    assert len(old) >= 5
    assert await walk(wire, route, 2, []) == old


@pytest.mark.parametrize("route", name_parameters(LISTS))
async def test_the_first_page_has_the_number_of_all(
    wire: Wire, route: Route, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a list, then its first page has the total, unless that is more than may be counted."""
    await make(wire, route, 3)
    every = len(await walk(wire, route, 200))

    async def read(query: str) -> tuple[int | None, str | None]:
        page = (await wire.send("GET", f"{route.path}?{query}")).json()["data"]
        return page["total"], page["next_cursor"]

    assert every >= 3
    assert (await read("limit=200"))[0] == every
    total, cursor = await read("limit=2")
    assert total == every
    assert await read("limit=2&cursor=") == (total, cursor)  # an empty one means the first page
    assert (await read(f"limit=2&cursor={cursor}"))[0] is None
    for module in (
        "toolkit.store.repository", "toolkit.store.list_search",
        "toolkit.engine.orchestration.runs", "toolkit.engine.services.connections",
    ):  # fmt: skip
        monkeypatch.setattr(f"{module}.MAX_TOTAL", MOST)
    assert (await read("limit=2"))[0] is None


@pytest.mark.parametrize("route", name_parameters(DELETED))
async def test_pages_while_old_ones_go(wire: Wire, route: Route) -> None:
    """Given the newest deleted, then a page of nothing else is not the last: no row is lost."""
    await make(wire, route, 6)
    everything = await walk(wire, route, 200)
    # Of keys, the newest is not the one that these requests are sent with.
    for gone in everything[:3]:
        answer = await wire.send("DELETE", f"{route.path}/{gone}")
        assert answer.status_code == 200, answer.text
    shown = await walk(wire, route, 200)
    left = [one for one in everything if one in shown]
    assert left[-3:] == everything[-3:]
    for limit in (1, 2, 3):
        assert await walk(wire, route, limit) == left


@pytest.mark.parametrize("route", name_parameters(LISTS))
@ON_ITS_LOOP
async def test_what_is_no_limit_or_cursor(shared_wire: Wire, route: Route) -> None:
    """Given limits out of bounds and cursors of nothing or of other lists, then 400 and where."""
    limits = ["0", "201", "-1", "1.0", "1e2", "", "ten", "٣", "+1", " 1", "9" * 400]
    other = next(kind for kind in Prefix if kind is not ID_PREFIXES[route.path])
    own = f"{ID_PREFIXES[route.path]}_{UNKNOWN}"
    texts = [f"{other}_{UNKNOWN}", own.upper(), own[:-1], own + "0", "' OR 1=1", "\x00"]
    cursors = [base64.urlsafe_b64encode(text.encode()).decode() for text in texts]
    cursors += ["x", "é", "====", own, "a" * 4000]
    tried = [("limit", value) for value in limits] + [("cursor", value) for value in cursors]
    for name, value in tried:
        answer = await shared_wire.send("GET", route.path, params={name: value})
        assert answer.status_code == 400, (name, value, answer.text)
        assert answer.json()["error"]["details"][0]["path"] == name
    for value in ("1", "200"):
        answer = await shared_wire.send("GET", route.path, params={"limit": value})
        assert answer.status_code == 200
    never = base64.urlsafe_b64encode(own.encode()).decode()
    assert (await shared_wire.send("GET", f"{route.path}?cursor={never}")).status_code == 200
