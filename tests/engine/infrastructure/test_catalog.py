"""The GPU catalogue: asked for once in a while, and no obstacle when it cannot be read."""

from collections.abc import AsyncIterator

import pytest
from starlette.applications import Starlette

from tests.engine.fake_cloud import open_engine_on
from tests.support.engine_accounts import connect_account
from toolkit.contract.compute import ComputeCreate
from toolkit.contract.endpoints import EndpointCreate
from toolkit.contract.errors import RequestError, ServiceError
from toolkit.engine import Engine
from toolkit.engine.infrastructure import catalog
from toolkit.sandbox import Fault, Faults, create_app
from toolkit.settings import Settings

UNKNOWN = ComputeCreate(name="easel", gpu_type="NVIDIA Nothing")


@pytest.fixture
async def engine(settings: Settings, faults: Faults) -> AsyncIterator[Engine]:
    """An engine on a cloud of its own."""
    cloud: Starlette = create_app(faults=faults)
    engine = await open_engine_on(cloud, settings)
    yield engine
    await engine.close(0)


def count_catalog_requests(faults: Faults) -> int:
    """Count the requests for the catalogue."""
    return sum(call.path.endswith("/catalog/gpus") for call in faults.calls)


async def test_it_is_kept_for_a_while(
    engine: Engine, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given several uses, then each connection asks once, and again when it is old."""
    context = await connect_account(engine, "runpod")
    first = await engine.catalog.list_gpus(context)
    await engine.catalog.list_gpus(context)
    await engine.compute.create(context, ComputeCreate(name="easel", gpu_type=first[0].id))
    await engine.endpoints.create(context, EndpointCreate(gpu_ids=first[0].pool))
    assert count_catalog_requests(faults) == 1
    await connect_account(engine, "runpod")  # another connection may be to another account
    await engine.catalog.list_gpus(context)
    assert count_catalog_requests(faults) == 2
    monkeypatch.setattr(catalog, "CACHE_TTL_S", -1.0)
    await engine.catalog.list_gpus(context)
    assert count_catalog_requests(faults) == 3


@pytest.mark.parametrize("body", [None, {"gpus": []}])
async def test_a_catalogue_that_cannot_be_read_refuses_nothing(
    engine: Engine, faults: Faults, body: dict[str, object] | None
) -> None:
    """Given no catalogue, then the request goes through, and the vendor says what it thinks."""
    context = await connect_account(engine, "runpod")
    status = 503 if body is None else None
    fault = Fault("runpod", path_contains="/catalog", status=status, body=body, times=1)
    faults.add(fault)
    compute = await engine.compute.create(context, UNKNOWN)
    assert compute.status == "failed"
    assert compute.error is not None
    assert "gpu.id must be an id of the catalogue" in compute.error.message
    with pytest.raises(RequestError, match="GPU catalogue"):
        await engine.compute.create(context, UNKNOWN)


async def test_a_cloud_that_does_not_answer(engine: Engine, faults: Faults) -> None:
    """Given an outage, then the catalogue is unavailable for now, with the vendor's wait."""
    context = await connect_account(engine, "runpod")
    faults.fail("runpod", status=503, headers={"Retry-After": "3"}, times=1)
    with pytest.raises(ServiceError, match="cannot be read now") as failed:
        await engine.catalog.list_gpus(context)
    assert (failed.value.code.name, failed.value.retry_after) == ("UNAVAILABLE", 3.0)
    assert await engine.catalog.list_gpus(context)


async def test_a_key_that_is_not_taken(engine: Engine, faults: Faults) -> None:
    """Given a key that the cloud refuses, then it says so, as trying again would not help."""
    context = await connect_account(engine, "runpod")
    faults.add(Fault("runpod", refuse_key=True, times=1))
    with pytest.raises(RequestError, match="did not accept the key") as refused:
        await engine.catalog.list_gpus(context)
    assert refused.value.code.name == "CREDENTIALS_MISSING"
