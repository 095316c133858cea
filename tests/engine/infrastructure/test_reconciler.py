"""Reconciling after a crash, a lost answer or an outage at the GPU cloud: no orphans."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from starlette.applications import Starlette

from tests.engine.fake_cloud import list_cloud_names, open_engine_on
from tests.support.engine_accounts import connect_account
from tests.support.process_kill import kill_engine
from tests.support.timing import wait_until_async
from toolkit.contract.compute import ComputeCreate
from toolkit.contract.endpoints import EndpointCreate
from toolkit.contract.errors import RequestError
from toolkit.contract.storage import StorageCreate
from toolkit.contract.templates import TemplateCreate
from toolkit.engine import Engine
from toolkit.engine.infrastructure.managed_resource import ManagedResource
from toolkit.engine.request_context import RequestContext
from toolkit.sandbox import Fault, Faults, create_app
from toolkit.settings import Settings
from toolkit.store import UpdateRow

LONG_AGO = "2020-01-01T00:00:00.000Z"


@dataclass(frozen=True)
class ResourceKind:
    """A kind of thing: its area of the engine, what asks for one, and where its vendor has it."""

    area: str
    request: Any
    path: str

    def get_managed_resource(self, engine: Engine) -> ManagedResource[Any, Any]:
        """The engine's area of it."""
        stock = getattr(engine, self.area)
        assert isinstance(stock, ManagedResource)
        return stock


STORAGE = ResourceKind("storage", StorageCreate(name="weights", size_gb=20), "network-volumes")
ENDPOINT = ResourceKind("endpoints", EndpointCreate(name="studio"), "serverless")
KINDS = [
    STORAGE,
    ResourceKind("templates", TemplateCreate(name="worker", image="example/worker:1"), "templates"),
    ResourceKind("compute", ComputeCreate(name="easel", gpu_type="NVIDIA A40"), "pods"),
    ENDPOINT,
]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.area)


@pytest.fixture
def cloud(faults: Faults) -> Starlette:
    """The cloud that all engines of a test are on."""
    return create_app(faults=faults)


@pytest.fixture
async def engine(cloud: Starlette, settings: Settings) -> AsyncIterator[Engine]:
    """The engine that lives on."""
    engine = await open_engine_on(cloud, settings)
    yield engine
    await engine.close(0)


@pytest.fixture
async def doomed(cloud: Starlette, settings: Settings, engine: Engine) -> Engine:
    """Another one on the same directory, that is going to die."""
    return await open_engine_on(cloud, settings)


async def kill_engine_during(
    engine: Engine, work: Awaitable[Any], when: Callable[[], bool]
) -> None:
    """Have an engine do something, and die once something holds: it writes nothing from then on."""
    store, write = engine.core.store, engine.core.store.write

    async def hang(*changes: Any, **options: Any) -> None:
        if when():
            await wait_forever()
        await write(*changes, **options)

    store.write = hang  # type: ignore[method-assign]
    task = asyncio.ensure_future(work)
    await wait_until_async(when)
    await kill_engine(engine)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def wait_forever(*_: object, **__: object) -> None:
    """Be at it for ever."""
    await asyncio.Event().wait()


async def get_only_record(engine: Engine, kind: ResourceKind, context: RequestContext) -> Any:
    """The one record of a kind."""
    (record,) = await kind.get_managed_resource(engine).list(context, 50, None)
    return record


async def backdate_requests(engine: Engine) -> None:
    """Have everything been asked for long ago."""
    store = engine.core.store
    for table in ("endpoints", "compute", "templates", "storage"):
        for row in await store.find_rows(table):
            spec = json.dumps({**json.loads(row["spec"]), "at": LONG_AGO})
            await store.write([UpdateRow(table, row["id"], {"spec": spec})])


async def list_statuses(engine: Engine) -> set[str]:
    """The states that records are in."""
    tables = ("endpoints", "compute", "templates", "storage")
    return {row["status"] for table in tables for row in await engine.core.store.find_rows(table)}


@each_kind
async def test_killed_before_the_vendor_did_it(
    engine: Engine, doomed: Engine, cloud: Starlette, faults: Faults, kind: ResourceKind
) -> None:
    """Given a record whose request never came through, then it fails once that is certain."""
    context = await connect_account(engine, "runpod")
    faults.add(Fault("runpod", path_contains=f"/{kind.path}", mangle="hang", times=None))
    work = kind.get_managed_resource(doomed).create(context, kind.request)  # type: ignore[attr-defined]
    asked = lambda: any(c.path.endswith(kind.path) for c in faults.calls)  # noqa: E731
    await kill_engine_during(doomed, work, asked)
    faults.clear()
    assert await engine.reconciler.reconcile() is True
    assert (
        await get_only_record(engine, kind, context)
    ).status == "creating"  # the vendor may be at it still
    await backdate_requests(engine)
    await engine.reconciler.reconcile()
    failed = await get_only_record(engine, kind, context)
    assert (failed.status, failed.error.code) == ("failed", "PROVIDER_UNAVAILABLE")
    assert "nothing was made" in failed.error.message
    assert await engine.reconciler.reconcile() is False
    assert list_cloud_names(cloud) == {}
    assert await list_statuses(engine) <= {"failed", "deleted"}


@each_kind
async def test_killed_before_the_answer_was_written(
    engine: Engine,
    doomed: Engine,
    cloud: Starlette,
    kind: ResourceKind,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given a thing that was made as the process died, then it is adopted, and can be deleted."""
    context = await connect_account(engine, "runpod")
    work = kind.get_managed_resource(doomed).create(context, kind.request)  # type: ignore[attr-defined]
    await kill_engine_during(doomed, work, lambda: kind.path in list_cloud_names(cloud))
    assert await engine.reconciler.reconcile() is False
    adopted = await get_only_record(engine, kind, context)
    assert adopted.status == ("creating" if kind.area == "compute" else "ready")
    assert (await kind.get_managed_resource(engine).delete(context, adopted.id)).status == "deleted"
    await engine.reconciler.reconcile()
    assert list_cloud_names(cloud) == {}
    assert await list_statuses(engine) == {"deleted"}


@each_kind
@pytest.mark.parametrize("vendor_did_it", [False, True])
async def test_killed_while_deleting(
    engine: Engine,
    doomed: Engine,
    cloud: Starlette,
    faults: Faults,
    kind: ResourceKind,
    vendor_did_it: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given a deletion that was cut off before or after the vendor's part, then it is finished."""
    context = await connect_account(engine, "runpod")
    made = await kind.get_managed_resource(doomed).create(context, kind.request)  # type: ignore[attr-defined]
    record_id = made.id
    if vendor_did_it:
        when = lambda: list_cloud_names(cloud) == {}  # noqa: E731
    else:
        faults.add(Fault("runpod", path_contains=f"/{kind.path}/", mangle="hang", times=None))
        when = lambda: any(c.method == "DELETE" for c in faults.calls)  # noqa: E731
    await kill_engine_during(
        doomed, kind.get_managed_resource(doomed).delete(context, record_id), when
    )
    faults.clear()
    assert (await kind.get_managed_resource(engine).get(context, record_id)).status == "deleting"
    assert await engine.reconciler.reconcile() is False
    with pytest.raises(RequestError, match=record_id):
        await kind.get_managed_resource(engine).get(context, record_id)
    assert list_cloud_names(cloud) == {}


async def test_what_is_under_way_elsewhere_is_left_alone(
    engine: Engine, doomed: Engine, cloud: Starlette, faults: Faults
) -> None:
    """Given a creation that another living process is at, then nobody settles it, however old."""
    context = await connect_account(engine, "runpod")
    faults.add(Fault("runpod", path_contains="/network-volumes", delay_ms=300, times=1))
    task = asyncio.create_task(doomed.storage.create(context, STORAGE.request))
    await wait_until_async(lambda: bool(faults.calls))
    store = engine.core.store
    (row,) = await store.find_rows("storage")
    assert engine.storage.is_abandoned(row) is False
    assert doomed.storage.is_abandoned(row) is False
    await engine.reconciler.reconcile()
    assert (await get_only_record(engine, STORAGE, context)).status == "creating"
    with pytest.raises(RequestError, match="still being made"):
        await engine.storage.delete(context, row["id"])
    assert (await task).status == "ready"
    assert len(list_cloud_names(cloud)["network-volumes"]) == 1
    await doomed.close(0)


async def test_only_one_of_two_takes_a_record_over(
    engine: Engine, doomed: Engine, cloud: Starlette, settings: Settings
) -> None:
    """Given a record whose process has gone, then of two that would settle it one may."""
    context = await connect_account(engine, "runpod")
    other = await open_engine_on(cloud, settings)
    work = doomed.storage.create(context, STORAGE.request)
    await kill_engine_during(doomed, work, lambda: "network-volumes" in list_cloud_names(cloud))
    (row,) = await engine.core.store.find_rows("storage")
    took = [await one.storage.take_over(row) for one in (engine, other)]
    assert took == [True, False]
    await other.reconciler.reconcile()
    assert (await get_only_record(engine, STORAGE, context)).status == "creating"
    await engine.reconciler.reconcile()
    assert (await get_only_record(other, STORAGE, context)).status == "ready"
    await other.close(0)


@each_kind
async def test_an_answer_that_was_lost(
    engine: Engine, cloud: Starlette, faults: Faults, kind: ResourceKind
) -> None:
    """Given an answer that cannot be read, then the thing is not lost: the vendor's list has it."""
    context = await connect_account(engine, "runpod")
    faults.add(Fault("runpod", path_contains=f"/{kind.path}", mangle="truncate", times=1))
    made = await kind.get_managed_resource(engine).create(context, kind.request)  # type: ignore[attr-defined]
    assert (made.status, made.status_detail) == ("creating", "unconfirmed")
    await engine.reconciler.reconcile()
    found = await get_only_record(engine, kind, context)
    assert found.status == ("creating" if kind.area == "compute" else "ready")
    assert found.status_detail is None
    await kind.get_managed_resource(engine).delete(context, found.id)
    await engine.reconciler.reconcile()
    assert list_cloud_names(cloud) == {}


async def test_a_connection_that_was_lost(engine: Engine, faults: Faults) -> None:
    """Given a request that got no answer, then it fails once the vendor can be done with it."""
    context = await connect_account(engine, "runpod")
    faults.add(Fault("runpod", path_contains="/network-volumes", mangle="drop", times=1))
    await engine.storage.create(context, STORAGE.request)
    assert await engine.reconciler.reconcile() is True
    assert (await get_only_record(engine, STORAGE, context)).status == "creating"
    await backdate_requests(engine)
    assert await engine.reconciler.reconcile() is False
    assert (await get_only_record(engine, STORAGE, context)).status == "failed"


async def test_a_refusal_is_no_riddle(engine: Engine, cloud: Starlette, faults: Faults) -> None:
    """Given an endpoint that the vendor refuses, then it failed, and nothing is left there."""
    context = await connect_account(engine, "runpod")
    faults.add(Fault("runpod", path_contains="/serverless", status=422, times=1))
    made = await engine.endpoints.create(context, ENDPOINT.request)
    assert made.status == "failed"
    assert list_cloud_names(cloud) == {}
    assert await engine.reconciler.reconcile() is False
    assert list_cloud_names(cloud) == {}
    assert (await engine.endpoints.delete(context, made.id)).deleted


async def test_a_look_does_not_undo_a_deletion(engine: Engine, faults: Faults) -> None:
    """Given a pod that is read while it is deleted, then it stays deleted, whatever was seen."""
    context = await connect_account(engine, "runpod")
    pod = await engine.compute.create(context, KINDS[2].request)
    faults.add(Fault("runpod", path_contains="/pods/", delay_ms=100, times=1))
    look = asyncio.create_task(engine.compute.get(context, pod.id))
    await wait_until_async(
        lambda: faults.calls[-1].method == "GET" and "/pods/" in faults.calls[-1].path
    )
    await engine.compute.delete(context, pod.id)
    await look
    assert await engine.compute.list(context, 50, None) == []


async def test_a_refusal_tells_our_ids(engine: Engine, faults: Faults) -> None:
    """Given a refusal that names a volume by the vendor's id, then the record names it by ours."""
    context = await connect_account(engine, "runpod")
    volume = await engine.storage.create(context, STORAGE.request)
    (row,) = await engine.core.store.find_rows("storage")
    detail = f"{row['vendor_id']} is full."
    body = {"title": "Bad Request", "status": 400, "detail": detail}
    faults.add(Fault("runpod", path_contains="/serverless", status=400, body=body, times=1))
    made = await engine.endpoints.create(context, EndpointCreate(storage_id=volume.id))
    assert made.error is not None
    assert f"{volume.id} is full" in made.error.message
    assert (await engine.storage.delete(context, volume.id)).deleted  # what failed does not use it


async def test_a_vendor_that_is_out_of_reach(
    engine: Engine, doomed: Engine, cloud: Starlette, faults: Faults
) -> None:
    """Given an outage, then what was left is tried again later, and settled when it is over."""
    context = await connect_account(engine, "runpod")
    work = doomed.storage.create(context, STORAGE.request)
    await kill_engine_during(doomed, work, lambda: "network-volumes" in list_cloud_names(cloud))
    faults.fail("runpod", status=503)
    assert await engine.reconciler.reconcile() is True
    assert (await get_only_record(engine, STORAGE, context)).status == "creating"
    faults.clear()
    assert await engine.reconciler.reconcile() is False
    assert (await get_only_record(engine, STORAGE, context)).status == "ready"


async def test_a_vendor_that_is_connected_no_more(
    engine: Engine, doomed: Engine, cloud: Starlette
) -> None:
    """Given no connection, then nothing is concluded; an equal pointer lets it be settled."""
    context = await connect_account(engine, "runpod")
    work = doomed.storage.create(context, STORAGE.request)
    await kill_engine_during(doomed, work, lambda: "network-volumes" in list_cloud_names(cloud))
    for connection in await engine.connections.list(context, 50, None):
        await engine.connections.delete(context, connection.id)
    await backdate_requests(engine)
    assert await engine.reconciler.reconcile() is True
    assert (await get_only_record(engine, STORAGE, context)).status == "creating"
    await connect_account(engine, "runpod")
    assert await engine.reconciler.reconcile() is False
    assert (await get_only_record(engine, STORAGE, context)).status == "ready"


async def test_a_deletion_during_an_outage(
    engine: Engine, cloud: Starlette, faults: Faults
) -> None:
    """Given a vendor that does not answer, then the deletion is tried again until it is done."""
    context = await connect_account(engine, "runpod")
    made = await engine.storage.create(context, STORAGE.request)
    faults.fail("runpod", status=503, times=1)
    with pytest.raises(RequestError, match="tried again") as refused:
        await engine.storage.delete(context, made.id)
    assert refused.value.code.name == "CONFLICT"
    assert (await get_only_record(engine, STORAGE, context)).status == "deleting"
    assert await engine.reconciler.reconcile() is False
    assert list_cloud_names(cloud) == {}


async def test_a_deletion_that_is_refused(engine: Engine, cloud: Starlette, faults: Faults) -> None:
    """Given a vendor that will not, then the record stands as before, and its id is not told."""
    context = await connect_account(engine, "runpod")
    made = await engine.storage.create(context, STORAGE.request)
    (row,) = await engine.core.store.find_rows("storage")
    body = {"title": "Conflict", "status": 409, "detail": f"{row['vendor_id']} is in use."}
    faults.add(Fault("runpod", path_contains="/network-volumes/", status=409, body=body, times=1))
    with pytest.raises(RequestError, match="is in use") as refused:
        await engine.storage.delete(context, made.id)
    assert row["vendor_id"] not in refused.value.message
    assert made.id in refused.value.message
    assert (await get_only_record(engine, STORAGE, context)).status == "ready"
    assert await engine.reconciler.reconcile() is False
    assert len(list_cloud_names(cloud)["network-volumes"]) == 1


async def test_opening_settles_by_itself(
    engine: Engine, doomed: Engine, cloud: Starlette, settings: Settings
) -> None:
    """Given what a dead process left, then an engine that opens settles it without being asked."""
    context = await connect_account(engine, "runpod")
    work = doomed.storage.create(context, STORAGE.request)
    await kill_engine_during(doomed, work, lambda: "network-volumes" in list_cloud_names(cloud))
    late = await open_engine_on(cloud, settings)

    async def is_ready() -> bool:
        return bool((await get_only_record(late, STORAGE, context)).status == "ready")

    await wait_until_async(is_ready)
    await late.close(0)


async def test_real_things_are_not_settled_in_the_sandbox(
    engine: Engine, doomed: Engine, cloud: Starlette
) -> None:
    """Given what was left at the real cloud, then an engine in the sandbox does not touch it."""
    context = await connect_account(engine, "runpod")
    work = doomed.storage.create(context, STORAGE.request)
    await kill_engine_during(doomed, work, lambda: "network-volumes" in list_cloud_names(cloud))
    await backdate_requests(engine)
    store = engine.core.store
    (row,) = await store.find_rows("storage")
    real = row["spec"].replace('"sandbox": true', '"sandbox": false')
    await store.write([UpdateRow("storage", row["id"], {"spec": real})])
    assert await engine.reconciler.reconcile() is False
    assert (await get_only_record(engine, STORAGE, context)).status == "creating"
