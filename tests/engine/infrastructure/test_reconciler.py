"""Reconciliation after a crash, a lost answer or an outage of the GPU cloud: no orphans."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from starlette.applications import Starlette

from tests.engine.fake_cloud import open_engine_on
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
from toolkit.sandbox.wires.runpod import RunPodAccount
from toolkit.settings import Settings
from toolkit.store import Row, UpdateRow

TABLES = ("endpoints", "compute", "templates", "storage")
LONG_AGO = "2020-01-01T00:00:00.000Z"


@dataclass(frozen=True)
class ResourceKind:
    """A kind of resource.

    Attributes:
        area: the engine's service of this kind.
        request: a request that creates a resource.
        path: the vendor's path of this kind.
    """

    area: str
    request: Any
    path: str

    def find_area(self, engine: Engine) -> Any:
        """Find an engine's service of this kind."""
        return getattr(engine, self.area)

    @property
    def adopted_status(self) -> str:
        """The status of a resource that is found at the vendor."""
        return "creating" if self.area == "compute" else "ready"


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
    """A cloud, an account that has connected it, and an engine."""

    cloud: Starlette
    faults: Faults
    settings: Settings
    engine: Engine
    context: RequestContext

    async def open_engine(self) -> Engine:
        """Open another engine on the same directory and cloud."""
        return await open_engine_on(self.cloud, self.settings)

    def list_names(self) -> dict[str, list[str]]:
        """List the names of resources at the cloud, by kind."""
        items = self.cloud.state.sandbox.get_records(RunPodAccount).items
        return {
            kind: [str(record["name"]) for record in records.values()]
            for kind, records in items.items()
            if records
        }

    async def leave_volume(self) -> None:
        """Have an engine die once the cloud has made a volume, before that is recorded."""
        doomed = await self.open_engine()
        work = doomed.storage.create(self.context, STORAGE.request)
        await kill_engine_during(doomed, work, lambda: "network-volumes" in self.list_names())

    async def reconcile(self) -> bool:
        """Reconcile once; return whether anything is left for later."""
        return await self.engine.reconciler.reconcile()

    async def find_record(self, kind: ResourceKind = STORAGE, engine: Engine | None = None) -> Any:
        """Find the only record of a kind."""
        (record,) = await kind.find_area(engine or self.engine).list(self.context, 50, None)
        return record

    async def find_row(self) -> Row:
        """Find the row of the only volume."""
        (row,) = await self.engine.core.store.find_rows("storage")
        return row

    async def backdate_requests(self) -> None:
        """Make all requests to the vendor old."""
        store = self.engine.core.store
        for table in TABLES:
            for row in await store.find_rows(table):
                spec = json.dumps({**json.loads(row["spec"]), "at": LONG_AGO})
                await store.write([UpdateRow(table, row["id"], {"spec": spec})])

    async def list_statuses(self) -> set[str]:
        """List the statuses of all records."""
        store = self.engine.core.store
        return {row["status"] for table in TABLES for row in await store.find_rows(table)}


async def kill_engine_during(
    engine: Engine, work: Awaitable[Any], when: Callable[[], bool]
) -> None:
    """Have an engine do some work, and die when a condition holds, before its next write."""
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
async def test_fails_a_record_whose_request_was_never_sent(
    scene: Scene, kind: ResourceKind
) -> None:
    """Given a crash before the vendor's part, then the record fails once that is certain."""
    scene.faults.add(Fault("runpod", path_contains=f"/{kind.path}", mangle="hang", times=None))
    doomed, calls = await scene.open_engine(), scene.faults.calls
    work = kind.find_area(doomed).create(scene.context, kind.request)
    await kill_engine_during(doomed, work, lambda: any(c.path.endswith(kind.path) for c in calls))
    scene.faults.clear()
    assert await scene.reconcile() is True
    assert (await scene.find_record(kind)).status == "creating"  # the vendor may still be at work
    await scene.backdate_requests()
    await scene.reconcile()
    failed = await scene.find_record(kind)
    assert (failed.status, failed.error.code) == ("failed", "PROVIDER_UNAVAILABLE")
    assert "nothing was created" in failed.error.message
    assert await scene.reconcile() is False
    assert scene.list_names() == {}
    assert await scene.list_statuses() <= {"failed", "deleted"}


@each_kind
@pytest.mark.parametrize("cause", ["crash", "lost answer"])
async def test_adopts_a_resource_whose_creation_was_not_recorded(
    scene: Scene, kind: ResourceKind, cause: str
) -> None:
    """Given a resource at the vendor that has no record of its end, then it is adopted."""
    area = kind.find_area(scene.engine)
    if cause == "crash":
        doomed = await scene.open_engine()
        work = kind.find_area(doomed).create(scene.context, kind.request)
        await kill_engine_during(doomed, work, lambda: kind.path in scene.list_names())
    else:
        scene.faults.add(Fault("runpod", path_contains=f"/{kind.path}", mangle="truncate", times=1))
        created = await area.create(scene.context, kind.request)
        assert (created.status, created.status_detail) == ("creating", "unconfirmed")
    assert await scene.reconcile() is False
    adopted = await scene.find_record(kind)
    assert (adopted.status, adopted.status_detail) == (kind.adopted_status, None)
    assert (await area.delete(scene.context, adopted.id)).status == "deleted"
    await scene.reconcile()
    assert scene.list_names() == {}
    assert await scene.list_statuses() == {"deleted"}


@each_kind
@pytest.mark.parametrize("is_done", [False, True])
async def test_finishes_a_deletion_after_a_crash(
    scene: Scene, kind: ResourceKind, is_done: bool
) -> None:
    """Given a crash before or after the vendor's part of a deletion, then it is finished."""
    doomed, area = await scene.open_engine(), kind.find_area(scene.engine)
    record_id = (await kind.find_area(doomed).create(scene.context, kind.request)).id
    if not is_done:
        fault = Fault("runpod", path_contains=f"/{kind.path}/", mangle="hang", times=None)
        scene.faults.add(fault)

    def is_crash_due() -> bool:
        if is_done:
            return scene.list_names() == {}
        return any(call.method == "DELETE" for call in scene.faults.calls)

    work = kind.find_area(doomed).delete(scene.context, record_id)
    await kill_engine_during(doomed, work, is_crash_due)
    scene.faults.clear()
    assert (await area.get(scene.context, record_id)).status == "deleting"
    assert await scene.reconcile() is False
    with pytest.raises(RequestError, match=record_id):
        await area.get(scene.context, record_id)
    assert scene.list_names() == {}


async def test_leaves_work_of_a_living_process_alone(scene: Scene) -> None:
    """Given a creation that another living process works on, then no engine settles it."""
    scene.faults.add(Fault("runpod", path_contains="/network-volumes", delay_ms=300, times=1))
    second = await scene.open_engine()
    task = asyncio.create_task(second.storage.create(scene.context, STORAGE.request))
    await wait_until_async(lambda: bool(scene.faults.calls))
    row = await scene.find_row()
    assert scene.engine.storage.is_abandoned(row) is False
    assert second.storage.is_abandoned(row) is False
    await scene.reconcile()
    assert (await scene.find_record()).status == "creating"
    with pytest.raises(RequestError, match="still creating it"):
        await scene.engine.storage.delete(scene.context, row["id"])
    assert (await task).status == "ready"
    assert len(scene.list_names()["network-volumes"]) == 1
    await second.close(0)


async def test_a_single_engine_takes_a_record_over(scene: Scene) -> None:
    """Given a record of a dead process, when two engines would settle it, then the first does."""
    second = await scene.open_engine()
    await scene.leave_volume()
    row = await scene.find_row()
    takeovers = [await engine.storage.take_over(row) for engine in (scene.engine, second)]
    assert takeovers == [True, False]
    await second.reconciler.reconcile()
    assert (await scene.find_record()).status == "creating"
    await scene.reconcile()
    assert (await scene.find_record(engine=second)).status == "ready"
    await second.close(0)


async def test_fails_a_creation_without_an_answer(scene: Scene) -> None:
    """Given a request without an answer, then the record fails once the vendor must be done."""
    scene.faults.add(Fault("runpod", path_contains="/network-volumes", mangle="drop", times=1))
    await scene.engine.storage.create(scene.context, STORAGE.request)
    assert await scene.reconcile() is True
    assert (await scene.find_record()).status == "creating"
    await scene.backdate_requests()
    assert await scene.reconcile() is False
    assert (await scene.find_record()).status == "failed"


async def test_a_read_does_not_undo_a_deletion(scene: Scene) -> None:
    """Given a pod that is read while it is deleted, then it stays deleted."""
    pods = scene.engine.compute
    pod = await pods.create(scene.context, ComputeCreate(name="easel", gpu_type="NVIDIA A40"))
    scene.faults.add(Fault("runpod", path_contains="/pods/", delay_ms=100, times=1))
    read = asyncio.create_task(pods.get(scene.context, pod.id))
    calls = scene.faults.calls
    await wait_until_async(lambda: calls[-1].method == "GET" and "/pods/" in calls[-1].path)
    await pods.delete(scene.context, pod.id)
    await read
    assert await pods.list(scene.context, 50, None) == []


async def test_records_a_rejected_creation_with_our_ids(scene: Scene) -> None:
    """Given a rejection that names a volume by the vendor's id, then the record has our id."""
    volume = await scene.engine.storage.create(scene.context, STORAGE.request)
    detail = f"{(await scene.find_row())['vendor_id']} is full."
    body = {"title": "Bad Request", "status": 400, "detail": detail}
    scene.faults.add(Fault("runpod", path_contains="/serverless", status=400, body=body, times=1))
    request = EndpointCreate(storage_id=volume.id)
    endpoint = await scene.engine.endpoints.create(scene.context, request)
    assert endpoint.status == "failed"
    assert endpoint.error is not None
    assert f"{volume.id} is full" in endpoint.error.message
    assert await scene.reconcile() is False
    assert scene.list_names().keys() == {"network-volumes"}
    # A failed endpoint does not use its volume.
    assert (await scene.engine.storage.delete(scene.context, volume.id)).deleted
    assert (await scene.engine.endpoints.delete(scene.context, endpoint.id)).deleted


@pytest.mark.parametrize("obstacle", ["an outage", "no connection"])
async def test_settles_a_record_once_the_vendor_answers(scene: Scene, obstacle: str) -> None:
    """Given a vendor that is down or not connected, then nothing is concluded until it answers."""
    await scene.leave_volume()
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


async def test_retries_a_deletion_after_an_outage(scene: Scene) -> None:
    """Given a vendor that does not answer, then the deletion is retried until it is done."""
    volume = await scene.engine.storage.create(scene.context, STORAGE.request)
    scene.faults.fail("runpod", status=503, times=1)
    with pytest.raises(RequestError, match="deletion is retried") as caught:
        await scene.engine.storage.delete(scene.context, volume.id)
    assert caught.value.code.name == "CONFLICT"
    assert (await scene.find_record()).status == "deleting"
    assert await scene.reconcile() is False
    assert scene.list_names() == {}


async def test_restores_a_record_whose_deletion_is_rejected(scene: Scene) -> None:
    """Given a vendor that rejects a deletion, then the record is as before; errors have our id."""
    volume = await scene.engine.storage.create(scene.context, STORAGE.request)
    vendor_id = (await scene.find_row())["vendor_id"]
    body = {"title": "Conflict", "status": 409, "detail": f"{vendor_id} is in use."}
    fault = Fault("runpod", path_contains="/network-volumes/", status=409, body=body, times=1)
    scene.faults.add(fault)
    with pytest.raises(RequestError, match="is in use") as caught:
        await scene.engine.storage.delete(scene.context, volume.id)
    assert vendor_id not in caught.value.message
    assert volume.id in caught.value.message
    assert (await scene.find_record()).status == "ready"
    assert await scene.reconcile() is False
    assert len(scene.list_names()["network-volumes"]) == 1


async def test_reconciles_when_an_engine_opens(scene: Scene) -> None:
    """Given an unfinished creation of a dead process, when an engine opens, then it settles it."""
    await scene.leave_volume()
    engine = await scene.open_engine()

    async def is_ready() -> bool:
        return bool((await scene.find_record(engine=engine)).status == "ready")

    await wait_until_async(is_ready)
    await engine.close(0)


async def test_the_sandbox_leaves_real_resources_alone(scene: Scene) -> None:
    """Given an unfinished creation at the real cloud, then an engine of the sandbox leaves it."""
    await scene.leave_volume()
    await scene.backdate_requests()
    row = await scene.find_row()
    real = row["spec"].replace('"sandbox": true', '"sandbox": false')
    await scene.engine.core.store.write([UpdateRow("storage", row["id"], {"spec": real})])
    assert await scene.reconcile() is False
    assert (await scene.find_record()).status == "creating"
