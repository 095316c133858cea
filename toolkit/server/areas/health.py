"""`/v1/health`."""

from fastapi import APIRouter, Depends, Response

from toolkit.contract.health import Health
from toolkit.server.auth import TheEngine
from toolkit.server.envelope import one
from toolkit.server.openapi import described
from toolkit.server.paging import no_query

router = APIRouter(prefix="/v1/health", tags=["health"])


@router.get("", dependencies=[Depends(no_query)], **described("health_read", Health))
async def read(engine: TheEngine) -> Response:
    """Say whether the service is there; needs no key."""
    return one(await engine.health())
