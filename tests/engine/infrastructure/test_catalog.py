"""The GPU catalogue: cached for a while, and optional for requests when it is unavailable."""

from collections.abc import AsyncIterator

import pytest

from tests.support.engine_accounts import connect_account
from toolkit.contract.compute import ComputeCreate
from toolkit.contract.endpoints import EndpointCreate
from toolkit.contract.errors import RequestError, ServiceError
from toolkit.engine import Engine
from toolkit.engine.infrastructure import catalog
from toolkit.engine.request_context import RequestContext
from toolkit.local import open_engine
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings

UNKNOWN = ComputeCreate(name="easel", gpu_type="NVIDIA Nothing")


@pytest.fixture
async def engine(settings: Settings, faults: Faults) -> AsyncIterator[Engine]:
    """An engine on a cloud with faults."""
    engine = await open_engine(settings, faults=faults)
    yield engine
    await engine.close(0)


@pytest.fixture
async def context(engine: Engine) -> RequestContext:
    """An account that has connected the GPU cloud."""
    return await connect_account(engine, "runpod")


def count_catalog_requests(faults: Faults) -> int:
    """Count the requests for the catalogue."""
    return sum(call.path.endswith("/catalog/gpus") for call in faults.calls)


async def test_caches_the_catalogue_by_connection(
    engine: Engine, context: RequestContext, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given several reads, then each connection fetches it once, and again when it is old."""
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
async def test_leaves_validation_to_the_vendor_without_a_catalogue(
    engine: Engine, context: RequestContext, faults: Faults, body: dict[str, object] | None
) -> None:
    """Given an unreadable catalogue, then requests are sent, and the vendor rejects a wrong GPU."""
    status = 503 if body is None else None
    faults.add(Fault("runpod", path_contains="/catalog", status=status, body=body, times=1))
    compute = await engine.compute.create(context, UNKNOWN)
    assert compute.status == "failed"
    assert compute.error is not None
    assert "gpu.id must be an id of the catalogue" in compute.error.message
    with pytest.raises(RequestError, match="GPU catalogue"):
        await engine.compute.create(context, UNKNOWN)


async def test_reports_an_outage_with_its_wait(
    engine: Engine, context: RequestContext, faults: Faults
) -> None:
    """Given an outage of the cloud, then the error is UNAVAILABLE, with the vendor's wait."""
    faults.fail("runpod", status=503, headers={"Retry-After": "3"}, times=1)
    with pytest.raises(ServiceError, match="cannot be read now") as caught:
        await engine.catalog.list_gpus(context)
    assert (caught.value.code.name, caught.value.retry_after) == ("UNAVAILABLE", 3.0)
    assert await engine.catalog.list_gpus(context)


async def test_reports_a_rejected_key(
    engine: Engine, context: RequestContext, faults: Faults
) -> None:
    """Given a key that the cloud rejects, then the error says so, because a retry is useless."""
    faults.add(Fault("runpod", refuse_key=True, times=1))
    with pytest.raises(RequestError, match="did not accept the key") as caught:
        await engine.catalog.list_gpus(context)
    assert caught.value.code.name == "CREDENTIALS_MISSING"
