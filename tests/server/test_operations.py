"""The table of operations: each is served by one handler, over HTTP or by a call of values."""

import ast
from pathlib import Path

import httpx
import pytest

from tests.server.conftest import Wire
from toolkit.contract.errors import RequestError
from toolkit.contract.operations import providers, work
from toolkit.contract.operations.queries import HealthQuery
from toolkit.contract.operations.table import OPERATIONS
from toolkit.contract.runs import RunCreate
from toolkit.engine.request_context import RequestContext
from toolkit.server import handlers
from toolkit.server.calls import ANONYMOUS, ApiCall
from toolkit.server.handlers import dispatch

FOLDER = Path(handlers.__file__).parent
RUN = RunCreate(name="research.gather", input={"topic": "Tea"})


@pytest.fixture
async def context(wire: Wire) -> RequestContext:
    """The context of the caller's key."""
    return await wire.engine.accounts.authenticate(wire.headers["Authorization"].split()[1])


def test_every_operation_has_a_handler_and_none_is_left_over() -> None:
    """Given the table, then each operation has its own handler or that of its verb."""
    own = handlers.OWN_HANDLERS
    assert set(own) <= {operation.id for operation in OPERATIONS}
    left = {one.verb for one in OPERATIONS if one.id not in own}
    assert left == set(handlers.VERB_HANDLERS)


def test_ids_are_unique() -> None:
    """Given the table, then no id, and no method with its path, is there twice."""
    assert len({one.id for one in OPERATIONS}) == len(OPERATIONS)
    assert len({(one.method, one.path) for one in OPERATIONS}) == len(OPERATIONS)


async def test_a_call_needs_the_scope(wire: Wire, context: RequestContext) -> None:
    """Given a key without the scope, or no key, when an operation is dispatched, then it is not."""
    for caller, operation in (
        (ANONYMOUS, work.RUNS_LIST),
        (RequestContext(context.account_id, scopes=frozenset({"read"})), work.RUNS_CREATE),
        (RequestContext(context.account_id, scopes=frozenset({"write"})), work.ROUTE_CREATE),
    ):
        with pytest.raises(RequestError, match=r"^FORBIDDEN:"):
            await dispatch(ApiCall(operation, wire.engine, caller, RUN))
    health = await dispatch(ApiCall(providers.HEALTH_READ, wire.engine, ANONYMOUS, HealthQuery()))
    assert health.status


def test_a_status_of_success_stands_in_the_table_alone() -> None:
    """Given the server, then no other module names one, but for what is made of a range."""
    exceptions = {"downloads.py"}
    for file in FOLDER.rglob("*.py"):
        if file.name not in exceptions:
            tree = ast.parse(file.read_text(encoding="utf-8"))
            numbers = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
            assert not numbers & {200, 201, 202, 206}, file.name


async def test_the_order_of_refusals(wire: Wire) -> None:
    """Given a request that is wrong in each way, then who sends it is asked before what it asks."""
    sent: dict[str, object] = {"params": {"x": "1"}, "content": b"{", "headers": {}}

    async def send(**more: object) -> httpx.Response:
        return await wire.http.post("/v1/runs", **{**sent, **more})  # type: ignore[arg-type]

    assert (await send()).status_code == 401
    assert (await send(headers=wire.headers)).json()["error"]["details"][0]["path"] == "x"
    assert (await send(headers=wire.headers, params={})).status_code == 415
    kind = {**wire.headers, "Content-Type": "application/json"}
    assert (await send(headers=kind, params={})).status_code == 400
