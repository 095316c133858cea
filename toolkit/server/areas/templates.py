"""`/v1/templates`."""

from fastapi import APIRouter, Depends, Request, Response

from toolkit.contract.errors import ErrorCode
from toolkit.contract.templates import Template, TemplateCreate
from toolkit.server.auth import Reader, TheEngine, Writer
from toolkit.server.body import read_model
from toolkit.server.envelope import one, page
from toolkit.server.openapi import PAGED, described
from toolkit.server.paging import no_query, page_query

router = APIRouter(prefix="/v1/templates", tags=["templates"])


@router.post(
    "",
    dependencies=[Depends(no_query)],
    **described(
        "templates_create",
        Template,
        status=201,
        body=TemplateCreate,
        errors=[ErrorCode.CREDENTIALS_MISSING],
    ),
)
async def create(request: Request, engine: TheEngine, caller: Writer) -> Response:
    """Make a template to share."""
    body = await read_model(request, TemplateCreate)
    return one(await engine.templates.create(caller.account_id, body), 201)


@router.get("", **described("templates_list", Template, listed=True, query=PAGED))
async def list_page(request: Request, engine: TheEngine, caller: Reader) -> Response:
    """List them, newest first, without the hidden ones."""
    query = page_query(request)
    return await page(
        await engine.templates.list(caller.account_id, query.limit, query.before), query
    )


@router.get(
    "/{id}",
    dependencies=[Depends(no_query)],
    **described("templates_read", Template, errors=[ErrorCode.NOT_FOUND]),
)
async def read(id: str, engine: TheEngine, caller: Reader) -> Response:  # noqa: A002
    """Read one, hidden or shared."""
    return one(await engine.templates.get(caller.account_id, id))


@router.delete(
    "/{id}",
    dependencies=[Depends(no_query)],
    **described(
        "templates_delete",
        Template,
        errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT, ErrorCode.CREDENTIALS_MISSING],
    ),
)
async def delete(id: str, engine: TheEngine, caller: Writer) -> Response:  # noqa: A002
    """Delete a shared template."""
    return one(await engine.templates.delete(caller.account_id, id))
