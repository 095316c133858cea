"""`/v1/route`."""

from fastapi import APIRouter, Depends, Request, Response

from toolkit.contract.errors import ErrorCode
from toolkit.contract.runs import Route, RunCreate
from toolkit.server.auth import ReadCaller, ServedEngine
from toolkit.server.http.body import read_model
from toolkit.server.http.envelope import render_resource
from toolkit.server.http.query import reject_query
from toolkit.server.openapi.document import describe_route

router = APIRouter(prefix="/v1/route", tags=["runs"])


@router.post(
    "",
    dependencies=[Depends(reject_query)],
    **describe_route(
        "route_create",
        Route,
        body=RunCreate,
        errors=[
            ErrorCode.NOT_FOUND,
            ErrorCode.PROVIDER_NOT_ALLOWED,
            ErrorCode.TARGET_UNSUPPORTED,
            ErrorCode.CAPABILITY_UNAVAILABLE,
        ],
    ),
)
async def preview(request: Request, engine: ServedEngine, caller: ReadCaller) -> Response:
    """Tell which provider and model a run would take, and why; nothing is spent."""
    body = await read_model(request, RunCreate)
    return render_resource(await engine.runs.route(caller, body))
