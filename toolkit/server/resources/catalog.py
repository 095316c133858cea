"""`/v1/catalog`."""

from fastapi import APIRouter, Depends, Response

from toolkit.contract.catalog import CatalogModel, Gpu
from toolkit.contract.errors import ErrorCode
from toolkit.server.auth import ReadCaller, ServedEngine
from toolkit.server.http.envelope import render_page
from toolkit.server.http.query import reject_query
from toolkit.server.openapi.document import describe_route

router = APIRouter(prefix="/v1/catalog", tags=["catalog"])


@router.get(
    "/gpus",
    dependencies=[Depends(reject_query)],
    **describe_route("catalog_gpus_list", Gpu, listed=True, errors=[ErrorCode.CREDENTIALS_MISSING]),
)
async def gpus(engine: ServedEngine, caller: ReadCaller) -> Response:
    """List the GPUs of the cloud that is connected."""
    return await render_page(await engine.catalog.list_gpus(caller))


@router.get(
    "/models",
    dependencies=[Depends(reject_query)],
    **describe_route("catalog_models_list", CatalogModel, listed=True),
)
async def models(engine: ServedEngine, caller: ReadCaller) -> Response:  # noqa: ARG001 - a key is needed
    """List every vendor's models with their list prices."""
    return await render_page(engine.catalog.list_models())
