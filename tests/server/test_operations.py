"""The table of operations: one handler serves each, over HTTP or by a call with values."""

import httpx
import pytest

from tests.server.conftest import Wire
from toolkit.contract.errors import RequestError
from toolkit.contract.operations import providers, work
from toolkit.contract.operations.queries import HealthQuery
from toolkit.contract.operations.table import OPERATIONS
from toolkit.contract.runs import RunCreate
from toolkit.engine.request_context import RequestContext
from toolkit.server.calls import ANONYMOUS, ApiCall
from toolkit.server.handlers import OWN_HANDLERS, VERB_HANDLERS, dispatch

RUN = RunCreate(name="research.gather", input={"topic": "Tea"})


@pytest.fixture
async def context(wire: Wire) -> RequestContext:
    """The context of the caller's key."""
    return await wire.engine.accounts.authenticate(wire.headers["Authorization"].split()[1])


def test_every_operation_has_a_handler() -> None:
    """Given the table, then each operation has its own handler or the handler of its verb."""
    assert set(OWN_HANDLERS) <= {operation.id for operation in OPERATIONS}
    verbs = {operation.verb for operation in OPERATIONS if operation.id not in OWN_HANDLERS}
    assert verbs == set(VERB_HANDLERS)


def test_operations_are_unique() -> None:
    """Given the table, then no id, and no method with its path, occurs twice."""
    assert len({operation.id for operation in OPERATIONS}) == len(OPERATIONS)
    assert len({(operation.method, operation.path) for operation in OPERATIONS}) == len(OPERATIONS)


async def test_dispatch_needs_the_scope(wire: Wire, context: RequestContext) -> None:
    """Given a key without the scope, or no key, then the operation is rejected."""
    for caller, operation in (
        (ANONYMOUS, work.RUNS_LIST),
        (RequestContext(context.account_id, scopes=frozenset({"read"})), work.RUNS_CREATE),
        (RequestContext(context.account_id, scopes=frozenset({"write"})), work.ROUTE_CREATE),
    ):
        with pytest.raises(RequestError, match=r"^FORBIDDEN:"):
            await dispatch(ApiCall(operation, wire.engine, caller, RUN))
    health = await dispatch(ApiCall(providers.HEALTH_READ, wire.engine, ANONYMOUS, HealthQuery()))
    assert health.status


async def test_rejects_faults_in_the_documented_order(wire: Wire) -> None:
    """Given several faults, then the key is checked first, then the query, then the body."""
    faulty: dict[str, object] = {"params": {"x": "1"}, "content": b"{", "headers": {}}

    async def send(**options: object) -> httpx.Response:
        return await wire.http.post("/v1/runs", **{**faulty, **options})  # type: ignore[arg-type]

    assert (await send()).status_code == 401
    assert (await send(headers=wire.headers)).json()["error"]["details"][0]["path"] == "x"
    assert (await send(headers=wire.headers, params={})).status_code == 415
    kind = {**wire.headers, "Content-Type": "application/json"}
    assert (await send(headers=kind, params={})).status_code == 400
