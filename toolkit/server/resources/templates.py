"""`/v1/templates`."""

from fastapi import APIRouter, Depends, Request, Response

from toolkit.contract.errors import ErrorCode
from toolkit.contract.templates import Template, TemplateCreate
from toolkit.server.auth import ReadCaller, ServedEngine, WriteCaller
from toolkit.server.http.body import read_model
from toolkit.server.http.envelope import render_page, render_resource
from toolkit.server.http.query import parse_page_query, reject_query
from toolkit.server.openapi.document import PAGE_PARAMS, describe_route

router = APIRouter(prefix="/v1/templates", tags=["templates"])


@router.post(
    "",
    dependencies=[Depends(reject_query)],
    **describe_route(
        "templates_create",
        Template,
        status=201,
        body=TemplateCreate,
        errors=[ErrorCode.CREDENTIALS_MISSING],
    ),
)
async def create(request: Request, engine: ServedEngine, caller: WriteCaller) -> Response:
    """Make a template to share."""
    body = await read_model(request, TemplateCreate)
    return render_resource(await engine.templates.create(caller, body), 201)


@router.get("", **describe_route("templates_list", Template, listed=True, query=PAGE_PARAMS))
async def list_page(request: Request, engine: ServedEngine, caller: ReadCaller) -> Response:
    """List them, newest first, without the hidden ones."""
    query = parse_page_query(request)
    return await render_page(await engine.templates.list(caller, query.limit, query.before), query)


@router.get(
    "/{id}",
    dependencies=[Depends(reject_query)],
    **describe_route("templates_read", Template, errors=[ErrorCode.NOT_FOUND]),
)
async def read(id: str, engine: ServedEngine, caller: ReadCaller) -> Response:
    """Read one, hidden or shared."""
    return render_resource(await engine.templates.get(caller, id))


@router.delete(
    "/{id}",
    dependencies=[Depends(reject_query)],
    **describe_route(
        "templates_delete",
        Template,
        errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT, ErrorCode.CREDENTIALS_MISSING],
    ),
)
async def delete(id: str, engine: ServedEngine, caller: WriteCaller) -> Response:
    """Delete a shared template."""
    return render_resource(await engine.templates.delete(caller, id))
