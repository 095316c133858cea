"""`/v1/capabilities`."""

from fastapi import APIRouter, Depends, Response

from toolkit.contract.capabilities import Capability
from toolkit.contract.errors import ErrorCode
from toolkit.server.auth import Reader, TheEngine
from toolkit.server.envelope import one, page
from toolkit.server.openapi import described
from toolkit.server.paging import no_query

router = APIRouter(
    prefix="/v1/capabilities", tags=["capabilities"], dependencies=[Depends(no_query)]
)


@router.get("", **described("capabilities_list", Capability, listed=True))
async def list_all(engine: TheEngine, caller: Reader) -> Response:  # noqa: ARG001 - lets in
    """List every capability, in registry order."""
    return await page(engine.capabilities.list())


@router.get("/{id}", **described("capabilities_read", Capability, errors=[ErrorCode.NOT_FOUND]))
async def read(id: str, engine: TheEngine, caller: Reader) -> Response:  # noqa: A002, ARG001
    """Read one, by `id` or `id@version`."""
    return one(engine.capabilities.get(id))
