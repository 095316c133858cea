"""`/v1/catalog`."""

from fastapi import APIRouter, Depends, Response

from toolkit.contract.catalog import CatalogModel, Gpu
from toolkit.contract.errors import ErrorCode
from toolkit.server.auth import Reader, TheEngine
from toolkit.server.envelope import page
from toolkit.server.openapi import described
from toolkit.server.paging import no_query

router = APIRouter(prefix="/v1/catalog", tags=["catalog"])


@router.get(
    "/gpus",
    dependencies=[Depends(no_query)],
    **described("catalog_gpus_list", Gpu, listed=True, errors=[ErrorCode.CREDENTIALS_MISSING]),
)
async def gpus(engine: TheEngine, caller: Reader) -> Response:
    """List the GPUs of the cloud that is connected."""
    return await page(await engine.catalog.gpus(caller.account_id))


@router.get(
    "/models",
    dependencies=[Depends(no_query)],
    **described("catalog_models_list", CatalogModel, listed=True),
)
async def models(engine: TheEngine, caller: Reader) -> Response:  # noqa: ARG001 - a key is needed
    """List every vendor's models with their list prices."""
    return await page(engine.catalog.models())
