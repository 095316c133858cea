"""The handler of each operation: the call of the engine behind it.

Most resources are handled alike, by one function for each verb. The others are bound to
their operation at the end of this module.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

from toolkit.contract.base import WrittenRecord
from toolkit.contract.capabilities import CapabilityRecord
from toolkit.contract.catalog import CatalogModel
from toolkit.contract.connections import Connection, ConnectionCreate
from toolkit.contract.errors import ErrorCode, ServiceError, build_not_found
from toolkit.contract.events import Event
from toolkit.contract.health import Health
from toolkit.contract.ids import is_id
from toolkit.contract.operations import account, providers, work
from toolkit.contract.operations.definitions import ApiOperation
from toolkit.contract.operations.queries import EventsQuery, HealthQuery, PageQuery
from toolkit.contract.operations.work_queries import WorkFilter, WorkQuery
from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext
from toolkit.server.calls import ApiCall, check_scope

In = TypeVar("In")
Out = TypeVar("Out")
T = TypeVar("T")
Handler: TypeAlias = Callable[[ApiCall[In]], Awaitable[Out]]
DRAIN_CHECK_S = 1.0  # interval at which a held request checks for shutdown
RETRY_AFTER_S = 1.0  # seconds until a caller should ask again whether a server is ready


class ResourceService(Protocol):
    """The methods that the engine's services of resources share; hardly any has all."""

    async def create(self, context: RequestContext, request: Any, /) -> BaseModel:
        """Create a record, or accept it as work."""

    async def list(
        self, context: RequestContext, limit: int, before: str | None, /, *filters: WorkFilter
    ) -> Sequence[BaseModel]:
        """List records below an id, newest first; of work, the records that a filter admits."""

    async def count(self, context: RequestContext, /, *filters: WorkFilter) -> int | None:
        """Count all records of a list; None if there are too many, or the filter is too slow."""

    async def get(self, context: RequestContext, resource_id: str, /) -> BaseModel:
        """Read one record."""

    async def delete(self, context: RequestContext, resource_id: str, /) -> BaseModel:
        """Delete one record."""


async def dispatch(call: ApiCall[Any]) -> Any:
    """Carry out an operation: the path of every call, over HTTP or in process.

    Returns:
        The result by the table: a record, or the records of a page.

    Raises:
        RequestError: `FORBIDDEN` for a key without the scope, and any that the handler raises.
        ServiceError: likewise.
    """
    check_scope(call.context, call.operation)
    handler = OWN_HANDLERS.get(call.operation.id) or VERB_HANDLERS[call.operation.verb]
    return await handler(call)


async def accept(call: ApiCall[Any]) -> str:
    """Accept work whose caller waits for its end, and return its id.

    Raises:
        RequestError: as for `dispatch`.
        ServiceError: likewise.
    """
    if call.operation is work.RUNS_CREATE:
        check_scope(call.context, call.operation)
        return await call.engine.runs.accept(call.context, call.input)
    accepted: str = (await dispatch(call)).id
    return accepted


async def count_records(call: ApiCall[Any], page: Sequence[BaseModel]) -> int | None:
    """Count all records of a list of which a page was read.

    Returns:
        None if there are more than 10,000, if a filter makes the count too slow, for events, and
        for each page but the first.
    """
    query = call.input
    if call.operation.form != "page":
        return None
    if not isinstance(query, PageQuery):
        return len(page)
    if query.before is not None:
        return None
    if len(page) < query.limit:
        return len(page)
    service = _find_service(call)
    if isinstance(query, WorkQuery):
        return await service.count(call.context, query.filter)
    return await service.count(call.context)


async def hold(call: ApiCall[Any], work_id: str, seconds: float) -> BaseModel | WrittenRecord:
    """Wait until work has ended or is blocked, or the time is up, and return its record.

    A server that is shutting down returns the unfinished record: the work is resumed later.

    Raises:
        RequestError: `NOT_FOUND`; `CONFLICT` if no process will continue the work.
    """
    if not is_id(work_id, call.operation.resource.prefix):
        raise build_not_found("resource", work_id)  # below this path it is not there
    engine, quick_s = call.engine, min(seconds, DRAIN_CHECK_S)
    record = await engine.wait(call.context, work_id, quick_s)
    if record is None and seconds > quick_s:
        remaining_wait = engine.wait(call.context, work_id, seconds - quick_s)
        record = await _wait_unless_draining(engine, remaining_wait)
    return record or await _find_service(call).get(call.context, work_id)


async def _wait_unless_draining(engine: Engine, waited_for: Coroutine[Any, Any, T]) -> T | None:
    """Wait for a result. Returns None if the engine shuts down before it comes."""
    waiting = asyncio.ensure_future(waited_for)
    try:
        while not (waiting.done() or engine.is_draining):
            await asyncio.wait([waiting], timeout=DRAIN_CHECK_S)
        return waiting.result() if waiting.done() else None
    finally:
        waiting.cancel()


def _find_service(call: ApiCall[Any]) -> ResourceService:
    service: ResourceService = getattr(call.engine, call.operation.resource.name)
    return service


async def _create(call: ApiCall[BaseModel]) -> BaseModel:
    return await _find_service(call).create(call.context, call.input)


async def _list_page(call: ApiCall[PageQuery]) -> Sequence[BaseModel]:
    service, query = _find_service(call), call.input
    if isinstance(query, WorkQuery):
        return await service.list(call.context, query.limit, query.before, query.filter)
    return await service.list(call.context, query.limit, query.before)


async def _read(call: ApiCall[None]) -> BaseModel:
    return await _find_service(call).get(call.context, call.id)


async def _delete(call: ApiCall[None]) -> BaseModel:
    return await _find_service(call).delete(call.context, call.id)


async def _act(call: ApiCall[BaseModel | None]) -> BaseModel:
    """Apply the verb to one record: the service has a method of this name."""
    act: Callable[..., Awaitable[BaseModel]] = getattr(_find_service(call), call.operation.verb)
    arguments = () if call.input is None else (call.input,)
    return await act(call.context, call.id, *arguments)


async def _list_events(call: ApiCall[EventsQuery]) -> Sequence[Event]:
    if not is_id(call.id, call.operation.resource.prefix):
        raise build_not_found("resource", call.id)  # below this path it is not there
    engine, began, wait_s = call.engine, time.monotonic(), call.input.wait_s
    list_events = partial(engine.events.list, call.context, call.id, after=call.input.after)
    events = await list_events(wait_s=min(wait_s, DRAIN_CHECK_S))
    left_s = wait_s - (time.monotonic() - began)
    # Ended work is answered at once; unfinished work is held as in `hold`.
    if events or left_s <= 0 or wait_s - left_s < DRAIN_CHECK_S:
        return events
    return await _wait_unless_draining(engine, list_events(wait_s=left_s)) or []


VERB_HANDLERS: dict[str, Handler[Any, Any]] = {
    "create": _create,
    "list": _list_page,
    "read": _read,
    "delete": _delete,
    "events": _list_events,
    "cancel": _act,
    "annotate": _act,
    "content": _read,
    "resume": _act,
    "rotate": _act,
    "test": _act,
    "trust": _act,
}


async def _list_capabilities(call: ApiCall[None]) -> Sequence[CapabilityRecord]:
    return call.engine.capabilities.to_records()


async def _read_capability(call: ApiCall[None]) -> CapabilityRecord:
    """Read a capability by its name."""
    registry = call.engine.capabilities
    return registry.to_record(registry.find(call.id))


async def _list_models(call: ApiCall[None]) -> Sequence[CatalogModel]:
    return call.engine.catalog.list_models()


async def _create_connection(call: ApiCall[ConnectionCreate]) -> Connection:
    """Register a pointer to a secret; sharing it at once needs the scope for sharing."""
    if call.input.share is not None:
        check_scope(call.context, providers.CONNECTIONS_SHARE)
    return await call.engine.connections.create(call.context, call.input)


async def _read_health(call: ApiCall[HealthQuery]) -> Health:
    """Read the state of the service; raise if readiness is asked for and new work is rejected."""
    if call.input.ready and (status := await call.engine.find_readiness()) != "ok":
        raise ServiceError(
            ErrorCode.UNAVAILABLE, f"The service is {status}.", retry_after=RETRY_AFTER_S
        )
    return await call.engine.get_health()


def _bind(
    operation: ApiOperation[In, Out], handler: Handler[In, Out]
) -> tuple[str, Handler[Any, Any]]:
    """Bind a handler to an operation: mypy checks its types against the table."""
    return operation.id, handler


def _bind_own() -> Iterator[tuple[str, Handler[Any, Any]]]:
    yield _bind(
        account.ACCOUNT_CREATE,
        lambda call: call.engine.accounts.sign_up(call.input, call.address),
    )
    yield _bind(account.ACCOUNT_READ, lambda call: call.engine.accounts.get_caller(call.context))
    yield _bind(
        account.BILLING_READ,
        lambda call: call.engine.billing.get(call.context, call.input.month, by=call.input.by),
    )
    yield _bind(account.KEYS_DELETE, lambda call: call.engine.keys.revoke(call.context, call.id))
    yield _bind(
        account.USAGE_LIST,
        lambda call: call.engine.usage.list(
            call.context,
            first=call.input.first,
            last=call.input.last,
            groups=call.input.groups,
        ),
    )
    yield _bind(providers.CAPABILITIES_LIST, _list_capabilities)
    yield _bind(providers.CAPABILITIES_READ, _read_capability)
    yield _bind(
        providers.CATALOG_GPUS_LIST, lambda call: call.engine.catalog.list_gpus(call.context)
    )
    yield _bind(providers.CATALOG_MODELS_LIST, _list_models)
    yield _bind(providers.CONNECTIONS_CREATE, _create_connection)
    yield _bind(
        providers.CONNECTIONS_SHARE,
        lambda call: call.engine.connections.share(call.context, call.id, call.input.accounts),
    )
    yield _bind(
        providers.CONNECTIONS_UNSHARE,
        lambda call: call.engine.connections.unshare(call.context, call.id, call.input.account_id),
    )
    yield _bind(providers.HEALTH_READ, _read_health)
    yield _bind(
        providers.PROVIDERS_LIST, lambda call: call.engine.connections.list_providers(call.context)
    )
    yield _bind(
        work.ARTIFACTS_CREATE,
        lambda call: call.engine.artifacts.create(
            call.context, call.input.file, call.input.metadata
        ),
    )
    yield _bind(work.ARTIFACTS_LINEAGE, lambda call: call.engine.lineage.get(call.context, call.id))
    yield _bind(
        work.MAPS_ROWS_CREATE,
        lambda call: call.engine.maps.rows_create(call.context, call.id, call.input),
    )
    yield _bind(
        work.MAPS_ROWS_LIST,
        lambda call: call.engine.maps.rows_list(call.context, call.id, call.input),
    )
    yield _bind(
        work.PLANS_CREATE, lambda call: call.engine.planning.create(call.context, call.input)
    )
    yield _bind(work.ROUTE_CREATE, lambda call: call.engine.runs.route(call.context, call.input))
    yield _bind(
        work.TASKS_REVIEWS_CREATE,
        lambda call: call.engine.reviews.create(call.context, call.id, call.input),
    )
    yield _bind(
        work.WORKFLOWS_FORK,
        lambda call: call.engine.reruns.fork(call.context, call.id, call.input),
    )
    yield _bind(work.WORKFLOWS_RETRY, lambda call: call.engine.reruns.retry(call.context, call.id))


OWN_HANDLERS: Mapping[str, Handler[Any, Any]] = dict(_bind_own())
