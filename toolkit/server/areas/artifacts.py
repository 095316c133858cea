"""`/v1/artifacts`."""

from typing import Any

from fastapi import APIRouter, Depends, Request, Response

from toolkit.contract.artifacts import Artifact, Lineage
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.server.auth import Reader, TheEngine, Writer
from toolkit.server.body import Sizes, check_json
from toolkit.server.envelope import one, page
from toolkit.server.forms import refused
from toolkit.server.openapi import PAGED, described
from toolkit.server.paging import no_query, page_query
from toolkit.server.uploads import byte_range, media_type_of, read_upload

router = APIRouter(prefix="/artifacts", tags=["artifacts"])

UPLOAD: dict[str, Any] = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["file"],
                "properties": {
                    "file": {"type": "string", "format": "binary"},
                    "metadata": {"type": "string", "description": "a JSON object"},
                },
            }
        }
    },
}
_create = described(
    "artifacts_create",
    Artifact,
    status=201,
    errors=[ErrorCode.PAYLOAD_TOO_LARGE, ErrorCode.UNSUPPORTED_MEDIA_TYPE],
)
_create["openapi_extra"]["requestBody"] = UPLOAD
_content = described("artifacts_content", None, errors=[ErrorCode.NOT_FOUND])
_content["responses"][200] = {"description": "the bytes", "content": {"*/*": {}}}
_content["responses"][206] = {"description": "a range of the bytes", "content": {"*/*": {}}}
_content["responses"][416] = {"description": "a range that is not there"}


@router.post("", dependencies=[Depends(no_query)], **_create)
async def create(request: Request, engine: TheEngine, caller: Writer) -> Response:
    """Upload one as multipart, in the field `file`; its type is told from its bytes."""
    data, described_by = await read_upload(request, engine.settings.upload_limit_bytes)
    try:
        metadata = check_json((described_by or "{}").encode(), Sizes.of(engine.settings))
    except (RequestError, UnicodeEncodeError):
        raise refused("metadata", "is not a JSON object that can be kept") from None
    artifact = await engine.artifacts.create(caller.account_id, data, media_type_of(data), metadata)
    return one(artifact, 201)


@router.get("", **described("artifacts_list", Artifact, listed=True, query=PAGED))
async def list_page(request: Request, engine: TheEngine, caller: Reader) -> Response:
    """List them, newest first."""
    query = page_query(request)
    return page(await engine.artifacts.list(caller.account_id, query.limit, query.before), query)


@router.get(
    "/{id}",
    dependencies=[Depends(no_query)],
    **described("artifacts_read", Artifact, errors=[ErrorCode.NOT_FOUND]),
)
async def read(id: str, engine: TheEngine, caller: Reader) -> Response:  # noqa: A002
    """Read what is known of one."""
    return one(await engine.artifacts.get(caller.account_id, id))


@router.delete(
    "/{id}",
    dependencies=[Depends(no_query)],
    **described("artifacts_delete", Artifact, errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT]),
)
async def delete(id: str, engine: TheEngine, caller: Writer) -> Response:  # noqa: A002
    """Delete one with its bytes; the job that made it stays."""
    return one(await engine.artifacts.delete(caller.account_id, id))


@router.get(
    "/{id}/lineage",
    dependencies=[Depends(no_query)],
    **described("artifacts_lineage", Lineage, errors=[ErrorCode.NOT_FOUND]),
)
async def lineage(id: str, engine: TheEngine, caller: Reader) -> Response:  # noqa: A002
    """Tell which jobs and artifacts it came from."""
    return one(await engine.lineage.get(caller.account_id, id))


@router.get("/{id}/content", dependencies=[Depends(no_query)], **_content)
async def content(id: str, request: Request, engine: TheEngine, caller: Reader) -> Response:  # noqa: A002
    """Read its bytes, or a range of them."""
    artifact = await engine.artifacts.get(caller.account_id, id)
    headers = {
        "Accept-Ranges": "bytes",
        "Content-Disposition": f'attachment; filename="{artifact.filename}"',
        # Whatever it is, a browser must not run it in this service's name.
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "ETag": f'"{artifact.sha256}"',
    }
    wanted = byte_range(request.headers.get("range"), artifact.size_bytes)
    if wanted is None:
        data = await engine.artifacts.content(caller.account_id, id)
        return Response(data, 200, headers, media_type=artifact.media_type)
    start, end = wanted
    if start >= end:
        headers["Content-Range"] = f"bytes */{artifact.size_bytes}"
        return Response(b"", 416, headers)
    headers["Content-Range"] = f"bytes {start}-{end - 1}/{artifact.size_bytes}"
    data = await engine.artifacts.content(caller.account_id, id, start, end)
    return Response(data, 206, headers, media_type=artifact.media_type)
