"""`/v1/providers`."""

from fastapi import APIRouter, Depends, Response

from toolkit.contract.health import Provider
from toolkit.server.auth import Reader, TheEngine
from toolkit.server.envelope import page
from toolkit.server.openapi import described
from toolkit.server.paging import no_query

router = APIRouter(prefix="/v1/providers", tags=["providers"])


@router.get(
    "",
    dependencies=[Depends(no_query)],
    **described("providers_list", Provider, listed=True),
)
async def list_all(engine: TheEngine, caller: Reader) -> Response:
    """List the vendor catalogue."""
    return await page(await engine.providers.list(caller.account_id))
