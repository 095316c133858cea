"""`/v1/health`."""

from fastapi import APIRouter, Depends, Response

from toolkit.contract.health import Health
from toolkit.server.auth import ServedEngine
from toolkit.server.http.envelope import render_resource
from toolkit.server.http.query import reject_query
from toolkit.server.openapi.document import describe_route

router = APIRouter(prefix="/v1/health", tags=["health"])


@router.get("", dependencies=[Depends(reject_query)], **describe_route("health_read", Health))
async def read(engine: ServedEngine) -> Response:
    """Say whether the service is there; needs no key."""
    return render_resource(await engine.get_health())
