"""`/v1/compute`."""

from fastapi import APIRouter, Depends, Request, Response

from toolkit.contract.compute import Compute, ComputeCreate
from toolkit.contract.errors import ErrorCode
from toolkit.server.auth import Reader, TheEngine, Writer
from toolkit.server.body import read_model
from toolkit.server.envelope import one, page
from toolkit.server.openapi import PAGED, described
from toolkit.server.paging import (
    no_query,
    page_query,
)

router = APIRouter(prefix="/v1/compute", tags=["compute"])


@router.post(
    "",
    dependencies=[Depends(no_query)],
    **described(
        "compute_create",
        Compute,
        status=201,
        body=ComputeCreate,
        errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT, ErrorCode.CREDENTIALS_MISSING],
    ),
)
async def create(request: Request, engine: TheEngine, caller: Writer) -> Response:
    """Create a GPU pod."""
    body = await read_model(request, ComputeCreate)
    return one(await engine.compute.create(caller.account_id, body, key_id=caller.key_id), 201)


@router.get("", **described("compute_list", Compute, listed=True, query=PAGED))
async def list_page(request: Request, engine: TheEngine, caller: Reader) -> Response:
    """List them, newest first."""
    query = page_query(request)
    return await page(
        await engine.compute.list(caller.account_id, query.limit, query.before), query
    )


@router.get(
    "/{id}",
    dependencies=[Depends(no_query)],
    **described("compute_read", Compute, errors=[ErrorCode.NOT_FOUND]),
)
async def read(id: str, engine: TheEngine, caller: Reader) -> Response:  # noqa: A002
    """Read one."""
    return one(await engine.compute.get(caller.account_id, id))


@router.delete(
    "/{id}",
    dependencies=[Depends(no_query)],
    **described(
        "compute_delete",
        Compute,
        errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT, ErrorCode.CREDENTIALS_MISSING],
    ),
)
async def delete(id: str, engine: TheEngine, caller: Writer) -> Response:  # noqa: A002
    """Give it back."""
    return one(await engine.compute.delete(caller.account_id, id))
