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
from toolkit.engine.request_context import RequestContext
from toolkit.sandbox import Fault, Faults, create_app
from toolkit.settings import Settings
from toolkit.store import Row, UpdateRow

TABLES = ("endpoints", "compute", "templates", "storage")
LONG_AGO = "2020-01-01T00:00:00.000Z"


@dataclass(frozen=True)
class ResourceKind:
    """A kind of thing: its area of the engine, what asks for one, and where its vendor has it."""

    area: str
    request: Any
    path: str

    def find_area(self, engine: Engine) -> Any:
        """The engine's area of it."""
        return getattr(engine, self.area)


STORAGE = ResourceKind("storage", StorageCreate(name="weights", size_gb=20), "network-volumes")
KINDS = [
    STORAGE,
    ResourceKind("templates", TemplateCreate(name="worker", image="example/worker:1"), "templates"),
    ResourceKind("compute", ComputeCreate(name="easel", gpu_type="NVIDIA A40"), "pods"),
    ResourceKind("endpoints", EndpointCreate(name="studio"), "serverless"),
]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.area)


@dataclass
class Scene:
    """A cloud, an account that has connected it, and the engine that lives on."""

    cloud: Starlette
    faults: Faults
    settings: Settings
    engine: Engine
    context: RequestContext

    async def open_engine(self) -> Engine:
        """Open another engine on the same directory and cloud."""
        return await open_engine_on(self.cloud, self.settings)

    def list_names(self) -> dict[str, list[str]]:
        """The names at the cloud."""
        return list_cloud_names(self.cloud)

    async def leave_made(self) -> None:
        """Have an engine die once the cloud has made a volume, before that is written."""
        doomed = await self.open_engine()
        work = doomed.storage.create(self.context, STORAGE.request)
        await kill_engine_during(doomed, work, lambda: "network-volumes" in self.list_names())

    async def reconcile(self) -> bool:
        """Reconcile what can be; whether some of it is left for later."""
        return await self.engine.reconciler.reconcile()

    async def find_record(self, kind: ResourceKind = STORAGE, engine: Engine | None = None) -> Any:
        """The one record of a kind."""
        (record,) = await kind.find_area(engine or self.engine).list(self.context, 50, None)
        return record

    async def find_row(self) -> Row:
        """The row of the one volume."""
        (row,) = await self.engine.core.store.find_rows("storage")
        return row

    async def backdate_requests(self) -> None:
        """Have everything been asked for long ago."""
        store = self.engine.core.store
        for table in TABLES:
            for row in await store.find_rows(table):
                spec = json.dumps({**json.loads(row["spec"]), "at": LONG_AGO})
                await store.write([UpdateRow(table, row["id"], {"spec": spec})])

    async def list_statuses(self) -> set[str]:
        """The states that records are in."""
        store = self.engine.core.store
        return {row["status"] for table in TABLES for row in await store.find_rows(table)}


async def kill_engine_during(
    engine: Engine, work: Awaitable[Any], when: Callable[[], bool]
) -> None:
    """Have an engine do something, and die once something holds: it writes nothing from then on."""
    store, write = engine.core.store, engine.core.store.write

    async def hang(*changes: Any, **options: Any) -> None:
        if when():
            await asyncio.Event().wait()
        await write(*changes, **options)

    store.write = hang  # type: ignore[method-assign]
    task = asyncio.ensure_future(work)
    await wait_until_async(when)
    await kill_engine(engine)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def scene(faults: Faults, settings: Settings) -> AsyncIterator[Scene]:
    """A cloud, and an engine on it."""
    cloud = create_app(faults=faults)
    engine = await open_engine_on(cloud, settings)
    yield Scene(cloud, faults, settings, engine, await connect_account(engine, "runpod"))
    await engine.close(0)


@each_kind
async def test_killed_before_the_vendor_did_it(scene: Scene, kind: ResourceKind) -> None:
    """Given a record whose request never came through, then it fails once that is certain."""
    scene.faults.add(Fault("runpod", path_contains=f"/{kind.path}", mangle="hang", times=None))
    doomed, calls = await scene.open_engine(), scene.faults.calls
    work = kind.find_area(doomed).create(scene.context, kind.request)
    await kill_engine_during(doomed, work, lambda: any(c.path.endswith(kind.path) for c in calls))
    scene.faults.clear()
    assert await scene.reconcile() is True
    assert (await scene.find_record(kind)).status == "creating"  # the vendor may be at it still
    await scene.backdate_requests()
    await scene.reconcile()
    failed = await scene.find_record(kind)
    assert (failed.status, failed.error.code) == ("failed", "PROVIDER_UNAVAILABLE")
    assert "nothing was created" in failed.error.message
    assert await scene.reconcile() is False
    assert scene.list_names() == {}
    assert await scene.list_statuses() <= {"failed", "deleted"}


@each_kind
async def test_killed_before_the_answer_was_written(scene: Scene, kind: ResourceKind) -> None:
    """Given a thing that was made as the process died, then it is adopted, and can be deleted."""
    doomed = await scene.open_engine()
    work = kind.find_area(doomed).create(scene.context, kind.request)
    await kill_engine_during(doomed, work, lambda: kind.path in scene.list_names())
    assert await scene.reconcile() is False
    adopted = await scene.find_record(kind)
    assert adopted.status == ("creating" if kind.area == "compute" else "ready")
    deleted = await kind.find_area(scene.engine).delete(scene.context, adopted.id)
    assert deleted.status == "deleted"
    await scene.reconcile()
    assert scene.list_names() == {}
    assert await scene.list_statuses() == {"deleted"}


@each_kind
@pytest.mark.parametrize("vendor_did_it", [False, True])
async def test_killed_while_deleting(scene: Scene, kind: ResourceKind, vendor_did_it: bool) -> None:
    """Given a deletion that was cut off before or after the vendor's part, then it is finished."""
    doomed, area = await scene.open_engine(), kind.find_area(scene.engine)
    record_id = (await kind.find_area(doomed).create(scene.context, kind.request)).id
    if not vendor_did_it:
        fault = Fault("runpod", path_contains=f"/{kind.path}/", mangle="hang", times=None)
        scene.faults.add(fault)

    def has_come_so_far() -> bool:
        if vendor_did_it:
            return scene.list_names() == {}
        return any(call.method == "DELETE" for call in scene.faults.calls)

    work = kind.find_area(doomed).delete(scene.context, record_id)
    await kill_engine_during(doomed, work, has_come_so_far)
    scene.faults.clear()
    assert (await area.get(scene.context, record_id)).status == "deleting"
    assert await scene.reconcile() is False
    with pytest.raises(RequestError, match=record_id):
        await area.get(scene.context, record_id)
    assert scene.list_names() == {}


async def test_what_is_under_way_elsewhere_is_left_alone(scene: Scene) -> None:
    """Given a creation that another living process is at, then nobody settles it, however old."""
    scene.faults.add(Fault("runpod", path_contains="/network-volumes", delay_ms=300, times=1))
    other = await scene.open_engine()
    task = asyncio.create_task(other.storage.create(scene.context, STORAGE.request))
    await wait_until_async(lambda: bool(scene.faults.calls))
    row = await scene.find_row()
    assert scene.engine.storage.is_abandoned(row) is False
    assert other.storage.is_abandoned(row) is False
    await scene.reconcile()
    assert (await scene.find_record()).status == "creating"
    with pytest.raises(RequestError, match="still creating it"):
        await scene.engine.storage.delete(scene.context, row["id"])
    assert (await task).status == "ready"
    assert len(scene.list_names()["network-volumes"]) == 1
    await other.close(0)


async def test_only_one_of_two_takes_a_record_over(scene: Scene) -> None:
    """Given a record whose process has gone, then of two that would settle it one may."""
    other = await scene.open_engine()
    await scene.leave_made()
    row = await scene.find_row()
    took = [await one.storage.take_over(row) for one in (scene.engine, other)]
    assert took == [True, False]
    await other.reconciler.reconcile()
    assert (await scene.find_record()).status == "creating"
    await scene.reconcile()
    assert (await scene.find_record(engine=other)).status == "ready"
    await other.close(0)


@each_kind
async def test_an_answer_that_was_lost(scene: Scene, kind: ResourceKind) -> None:
    """Given an answer that cannot be read, then the thing is not lost: the vendor's list has it."""
    scene.faults.add(Fault("runpod", path_contains=f"/{kind.path}", mangle="truncate", times=1))
    area = kind.find_area(scene.engine)
    made = await area.create(scene.context, kind.request)
    assert (made.status, made.status_detail) == ("creating", "unconfirmed")
    await scene.reconcile()
    found = await scene.find_record(kind)
    assert found.status == ("creating" if kind.area == "compute" else "ready")
    assert found.status_detail is None
    await area.delete(scene.context, found.id)
    await scene.reconcile()
    assert scene.list_names() == {}


async def test_a_connection_that_was_lost(scene: Scene) -> None:
    """Given a request that got no answer, then it fails once the vendor can be done with it."""
    scene.faults.add(Fault("runpod", path_contains="/network-volumes", mangle="drop", times=1))
    await scene.engine.storage.create(scene.context, STORAGE.request)
    assert await scene.reconcile() is True
    assert (await scene.find_record()).status == "creating"
    await scene.backdate_requests()
    assert await scene.reconcile() is False
    assert (await scene.find_record()).status == "failed"


async def test_a_refusal_is_no_riddle(scene: Scene) -> None:
    """Given an endpoint that the vendor refuses, then it failed, and nothing is left there."""
    scene.faults.add(Fault("runpod", path_contains="/serverless", status=422, times=1))
    made = await scene.engine.endpoints.create(scene.context, EndpointCreate(name="studio"))
    assert made.status == "failed"
    assert await scene.reconcile() is False
    assert scene.list_names() == {}
    assert (await scene.engine.endpoints.delete(scene.context, made.id)).deleted


async def test_a_look_does_not_undo_a_deletion(scene: Scene) -> None:
    """Given a pod that is read while it is deleted, then it stays deleted, whatever was seen."""
    pods = scene.engine.compute
    pod = await pods.create(scene.context, ComputeCreate(name="easel", gpu_type="NVIDIA A40"))
    scene.faults.add(Fault("runpod", path_contains="/pods/", delay_ms=100, times=1))
    look = asyncio.create_task(pods.get(scene.context, pod.id))
    calls = scene.faults.calls
    await wait_until_async(lambda: calls[-1].method == "GET" and "/pods/" in calls[-1].path)
    await pods.delete(scene.context, pod.id)
    await look
    assert await pods.list(scene.context, 50, None) == []


async def test_a_refusal_tells_our_ids(scene: Scene) -> None:
    """Given a refusal that names a volume by the vendor's id, then the record names it by ours."""
    volume = await scene.engine.storage.create(scene.context, STORAGE.request)
    detail = f"{(await scene.find_row())['vendor_id']} is full."
    body = {"title": "Bad Request", "status": 400, "detail": detail}
    scene.faults.add(Fault("runpod", path_contains="/serverless", status=400, body=body, times=1))
    request = EndpointCreate(storage_id=volume.id)
    made = await scene.engine.endpoints.create(scene.context, request)
    assert made.error is not None
    assert f"{volume.id} is full" in made.error.message
    # What failed does not use it.
    assert (await scene.engine.storage.delete(scene.context, volume.id)).deleted


@pytest.mark.parametrize("obstacle", ["an outage", "no connection"])
async def test_what_cannot_be_asked_about_is_settled_later(scene: Scene, obstacle: str) -> None:
    """Given a vendor that does not answer, or is not connected, then nothing is concluded yet."""
    await scene.leave_made()
    await scene.backdate_requests()
    connections = scene.engine.connections
    if obstacle == "an outage":
        scene.faults.fail("runpod", status=503)
    else:
        for connection in await connections.list(scene.context, 50, None):
            await connections.delete(scene.context, connection.id)
    assert await scene.reconcile() is True
    assert (await scene.find_record()).status == "creating"
    scene.faults.clear()
    await connect_account(scene.engine, "runpod")  # by an equal pointer
    assert await scene.reconcile() is False
    assert (await scene.find_record()).status == "ready"


async def test_a_deletion_during_an_outage(scene: Scene) -> None:
    """Given a vendor that does not answer, then the deletion is tried again until it is done."""
    made = await scene.engine.storage.create(scene.context, STORAGE.request)
    scene.faults.fail("runpod", status=503, times=1)
    with pytest.raises(RequestError, match="deletion is retried") as refused:
        await scene.engine.storage.delete(scene.context, made.id)
    assert refused.value.code.name == "CONFLICT"
    assert (await scene.find_record()).status == "deleting"
    assert await scene.reconcile() is False
    assert scene.list_names() == {}


async def test_a_deletion_that_is_refused(scene: Scene) -> None:
    """Given a vendor that will not, then the record stands as before, and its id is not told."""
    made = await scene.engine.storage.create(scene.context, STORAGE.request)
    vendor_id = (await scene.find_row())["vendor_id"]
    body = {"title": "Conflict", "status": 409, "detail": f"{vendor_id} is in use."}
    fault = Fault("runpod", path_contains="/network-volumes/", status=409, body=body, times=1)
    scene.faults.add(fault)
    with pytest.raises(RequestError, match="is in use") as refused:
        await scene.engine.storage.delete(scene.context, made.id)
    assert vendor_id not in refused.value.message
    assert made.id in refused.value.message
    assert (await scene.find_record()).status == "ready"
    assert await scene.reconcile() is False
    assert len(scene.list_names()["network-volumes"]) == 1


async def test_opening_settles_by_itself(scene: Scene) -> None:
    """Given what a dead process left, then an engine that opens settles it without being asked."""
    await scene.leave_made()
    late = await scene.open_engine()

    async def is_ready() -> bool:
        return bool((await scene.find_record(engine=late)).status == "ready")

    await wait_until_async(is_ready)
    await late.close(0)


async def test_real_things_are_not_settled_in_the_sandbox(scene: Scene) -> None:
    """Given what was left at the real cloud, then an engine in the sandbox does not touch it."""
    await scene.leave_made()
    await scene.backdate_requests()
    row = await scene.find_row()
    real = row["spec"].replace('"sandbox": true', '"sandbox": false')
    await scene.engine.core.store.write([UpdateRow("storage", row["id"], {"spec": real})])
    assert await scene.reconcile() is False
    assert (await scene.find_record()).status == "creating"
