"""`/v1/storage`."""

from fastapi import APIRouter, Depends, Request, Response

from toolkit.contract.errors import ErrorCode
from toolkit.contract.storage import Storage, StorageCreate
from toolkit.server.auth import Reader, TheEngine, Writer
from toolkit.server.body import read_model
from toolkit.server.envelope import one, page
from toolkit.server.openapi import PAGED, described
from toolkit.server.paging import no_query, page_query

router = APIRouter(prefix="/v1/storage", tags=["storage"])


@router.post(
    "",
    dependencies=[Depends(no_query)],
    **described(
        "storage_create",
        Storage,
        status=201,
        body=StorageCreate,
        errors=[ErrorCode.CREDENTIALS_MISSING],
    ),
)
async def create(request: Request, engine: TheEngine, caller: Writer) -> Response:
    """Rent a network volume."""
    body = await read_model(request, StorageCreate)
    return one(await engine.storage.create(caller.account_id, body, key_id=caller.key_id), 201)


@router.get("", **described("storage_list", Storage, listed=True, query=PAGED))
async def list_page(request: Request, engine: TheEngine, caller: Reader) -> Response:
    """List them, newest first."""
    query = page_query(request)
    return await page(
        await engine.storage.list(caller.account_id, query.limit, query.before), query
    )


@router.get(
    "/{id}",
    dependencies=[Depends(no_query)],
    **described("storage_read", Storage, errors=[ErrorCode.NOT_FOUND]),
)
async def read(id: str, engine: TheEngine, caller: Reader) -> Response:  # noqa: A002
    """Read one."""
    return one(await engine.storage.get(caller.account_id, id))


@router.delete(
    "/{id}",
    dependencies=[Depends(no_query)],
    **described(
        "storage_delete",
        Storage,
        errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT, ErrorCode.CREDENTIALS_MISSING],
    ),
)
async def delete(id: str, engine: TheEngine, caller: Writer) -> Response:  # noqa: A002
    """Delete a volume, with all that is on it."""
    return one(await engine.storage.delete(caller.account_id, id))
