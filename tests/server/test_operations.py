"""The table of operations: each is served by one handler, over HTTP or by a call of values."""

import ast
from pathlib import Path

import httpx
import pytest

from tests.server.conftest import Wire
from toolkit.contract.errors import RequestError
from toolkit.contract.operations import providers, work
from toolkit.contract.operations.definitions import ApiOperation
from toolkit.contract.operations.queries import HealthQuery
from toolkit.contract.operations.table import OPERATIONS
from toolkit.contract.runs import RunCreate
from toolkit.engine.request_context import RequestContext
from toolkit.server import handlers
from toolkit.server.app import build_endpoints
from toolkit.server.calls import ANONYMOUS, ApiCall
from toolkit.server.handlers import dispatch, find_handler, handles

FOLDER = Path(handlers.__file__).parent
RUN = RunCreate(name="research.gather", input={"topic": "Tea"})
EVERY = [pytest.param(operation, id=operation.id) for operation in OPERATIONS]


@pytest.fixture
async def context(wire: Wire) -> RequestContext:
    """The context of the caller's key."""
    return await wire.engine.accounts.authenticate(wire.headers["Authorization"].split()[1])


@pytest.mark.parametrize("operation", EVERY)
def test_an_operation_has_one_handler(operation: ApiOperation[object, object]) -> None:
    """Given an operation, then it has a handler; where that is its own, there is no second one."""
    assert find_handler(operation)
    own = handlers.OWN_HANDLERS.get(operation.id)
    if own is not None:
        with pytest.raises(ValueError, match="handler already"):
            handles(operation)(own)


def test_a_handler_has_its_operation() -> None:
    """Given the handlers, then each is of an operation, and those for verbs are all used."""
    assert set(handlers.OWN_HANDLERS) <= {operation.id for operation in OPERATIONS}
    left = {one.verb for one in OPERATIONS if one.id not in handlers.OWN_HANDLERS}
    assert left == set(handlers.VERB_HANDLERS)


def test_ids_are_unique() -> None:
    """Given the table, then no id, and no method with its path, is there twice."""
    assert len({one.id for one in OPERATIONS}) == len(OPERATIONS)
    assert len({(one.method, one.path) for one in OPERATIONS}) == len(OPERATIONS)


def test_the_app_serves_the_table(wire: Wire) -> None:
    """Given an app, then its paths are those of the table, and the document's."""
    served = build_endpoints(wire.engine)
    assert sorted(served) == sorted({one.path for one in OPERATIONS} | {"/openapi.json"})


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


@pytest.mark.parametrize("module", ["calls", "handlers"])
def test_handlers_know_no_http(module: str) -> None:
    """Given a handler's module, then it imports nothing of HTTP and names no status."""
    tree = ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8"))
    imported = {
        node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
    } | {alias.name for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names}
    outside = {name.partition(".")[0] for name in imported if not name.startswith("toolkit")}
    assert not outside & {"starlette", "uvicorn", "httpx"}
    assert not {name for name in imported if name.startswith("toolkit.server.")} - {
        "toolkit.server.calls"
    }
    numbers = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert not {one for one in numbers if type(one) is int and 200 <= one < 600}


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
