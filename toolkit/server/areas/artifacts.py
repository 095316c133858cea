"""`/v1/artifacts`."""

from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from starlette.responses import StreamingResponse

from toolkit.contract.artifacts import MEDIA_TYPES, Artifact, Lineage
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.engine.pacing import Pacer
from toolkit.server.auth import Reader, TheEngine, Writer
from toolkit.server.body import Sizes, check_json
from toolkit.server.envelope import one, page
from toolkit.server.errors import error_response
from toolkit.server.forms import refused
from toolkit.server.openapi import PAGED, described
from toolkit.server.paging import no_query, page_query
from toolkit.server.transfers import CHUNK_BYTES, Downloads
from toolkit.server.uploads import byte_range, read_upload

router = APIRouter(prefix="/v1/artifacts", tags=["artifacts"])

UPLOAD: dict[str, Any] = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["file"],
                "properties": {
                    "file": {"type": "string", "format": "binary", "minLength": 1},
                    "metadata": {"type": "object", "description": "as JSON"},
                },
                "additionalProperties": False,
            }
        }
    },
}
RANGE: dict[str, Any] = {
    "name": "Range",
    "in": "header",
    "description": "one range of bytes; all others are passed over",
    "schema": {"type": "string"},
    "example": "bytes=0-99",
}
_PART = {"Content-Range": {"required": True, "schema": {"type": "string", "pattern": "^bytes "}}}
_WHOLE = {
    name: {"required": True, "schema": {"type": "string"}}
    for name in ("Accept-Ranges", "Content-Disposition", "Content-Security-Policy", "ETag")
}
_CONTENT: dict[str, Any] = {media_type: {} for media_type in MEDIA_TYPES}
BYTES: dict[str, dict[str, Any]] = {
    "200": {"description": "the bytes", "content": _CONTENT, "headers": _WHOLE},
    "206": {"description": "a range of them", "content": _CONTENT, "headers": _WHOLE | _PART},
    "416": {"description": ErrorCode.INVALID_REQUEST.name, "headers": _PART},
}
_create = described(
    "artifacts_create",
    Artifact,
    status=201,
    errors=[ErrorCode.PAYLOAD_TOO_LARGE, ErrorCode.UNSUPPORTED_MEDIA_TYPE],
)
_create["openapi_extra"]["requestBody"] = UPLOAD
_content = described("artifacts_content", None, errors=[ErrorCode.NOT_FOUND])
_content["responses"] |= BYTES
_content["openapi_extra"]["parameters"] = [RANGE]


@router.post("", dependencies=[Depends(no_query)], **_create)
async def create(request: Request, engine: TheEngine, caller: Writer) -> Response:
    """Upload one as multipart, in the field `file`; its type is told from its bytes."""
    form = await read_upload(request, engine.settings.upload_limit_bytes)
    try:
        async with Pacer(caller.account_id) as pacer:
            sizes = Sizes.of(engine.settings)
            metadata = await check_json(form.metadata or b"{}", sizes, pacer)
    except RequestError:
        raise refused("metadata", "is not a JSON object that can be kept") from None
    artifact = await engine.artifacts.create(caller.account_id, form.file, metadata)
    return one(artifact, 201)


@router.get("", **described("artifacts_list", Artifact, listed=True, query=PAGED))
async def list_page(request: Request, engine: TheEngine, caller: Reader) -> Response:
    """List them, newest first."""
    query = page_query(request)
    return await page(
        await engine.artifacts.list(caller.account_id, query.limit, query.before), query
    )


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
        # A browser must not run it in this service's name, whatever it is.
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "ETag": f'"{artifact.sha256}"',
    }
    wanted = byte_range(request.headers.get("range"), artifact.size_bytes)
    start, end = wanted or (0, artifact.size_bytes)
    if wanted is not None and start >= end:
        error = RequestError(ErrorCode.INVALID_REQUEST, "Ask for a range within the bytes.")
        headers = {"Content-Range": f"bytes */{artifact.size_bytes}"}
        return error_response(error, request.state.request_id, status=416, headers=headers)
    if wanted is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{artifact.size_bytes}"
    status = 200 if wanted is None else 206
    upto = min(end, start + CHUNK_BYTES)
    downloads: Downloads = request.app.state.downloads
    if upto < end:
        downloads.check(caller.key_id)
    # Read before the answer begins, as one that has begun cannot say that bytes are missing.
    first = await engine.artifacts.content(caller.account_id, id, start, upto)
    if upto >= end:
        return Response(first, status, headers, media_type=artifact.media_type)
    rest = downloads.read_on(caller, id, first, upto, end)
    headers["Content-Length"] = str(end - start)
    return StreamingResponse(rest, status, headers, media_type=artifact.media_type)
