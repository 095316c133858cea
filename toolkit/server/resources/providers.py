"""`/v1/providers`."""

from fastapi import APIRouter, Depends, Response

from toolkit.contract.health import Provider
from toolkit.server.auth import ReadCaller, ServedEngine
from toolkit.server.http.envelope import render_page
from toolkit.server.http.query import reject_query
from toolkit.server.openapi.document import describe_route

router = APIRouter(prefix="/v1/providers", tags=["providers"])


@router.get(
    "",
    dependencies=[Depends(reject_query)],
    **describe_route("providers_list", Provider, listed=True),
)
async def list_all(engine: ServedEngine, caller: ReadCaller) -> Response:
    """List the vendor catalogue."""
    return await render_page(await engine.providers.list(caller))
