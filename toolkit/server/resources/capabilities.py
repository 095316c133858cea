"""`/v1/capabilities`."""

from fastapi import APIRouter, Depends, Response

from toolkit.contract.capabilities import CapabilityRecord
from toolkit.contract.errors import ErrorCode
from toolkit.server.auth import ReadCaller, ServedEngine
from toolkit.server.http.envelope import render_page, render_resource
from toolkit.server.http.query import reject_query
from toolkit.server.openapi.document import describe_route

router = APIRouter(
    prefix="/v1/capabilities", tags=["capabilities"], dependencies=[Depends(reject_query)]
)


@router.get("", **describe_route("capabilities_list", CapabilityRecord, listed=True))
async def list_all(engine: ServedEngine, caller: ReadCaller) -> Response:  # noqa: ARG001 - lets in
    """List every capability, in registry order."""
    return await render_page(engine.capabilities.list())


@router.get(
    "/{id}", **describe_route("capabilities_read", CapabilityRecord, errors=[ErrorCode.NOT_FOUND])
)
async def read(id: str, engine: ServedEngine, caller: ReadCaller) -> Response:  # noqa: ARG001
    """Read one, by `id` or `id@version`."""
    return render_resource(engine.capabilities.get(id))
