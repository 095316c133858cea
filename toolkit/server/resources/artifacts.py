"""`/v1/artifacts`."""

from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from starlette.responses import StreamingResponse

from toolkit.contract.artifacts import MEDIA_TYPES, Artifact, Lineage
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.engine.concurrency.pacing import Pacer
from toolkit.server.auth import ReadCaller, ServedEngine, WriteCaller
from toolkit.server.errors import render_error
from toolkit.server.http.body import BodyLimits, check_json
from toolkit.server.http.envelope import render_page, render_resource
from toolkit.server.http.multipart import make_upload_error
from toolkit.server.http.query import parse_page_query, reject_query
from toolkit.server.http.uploads import parse_byte_range, read_upload
from toolkit.server.middleware.transfers import CHUNK_BYTES, DownloadReader
from toolkit.server.openapi.document import PAGE_PARAMS, describe_route

router = APIRouter(prefix="/v1/artifacts", tags=["artifacts"])

UPLOAD_BODY: dict[str, Any] = {
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
RANGE_HEADER: dict[str, Any] = {
    "name": "Range",
    "in": "header",
    "description": "one range of bytes; all others are passed over",
    "schema": {"type": "string"},
    "example": "bytes=0-99",
}
_PARTIAL_HEADERS = {
    "Content-Range": {"required": True, "schema": {"type": "string", "pattern": "^bytes "}}
}
_CONTENT_HEADERS = {
    name: {"required": True, "schema": {"type": "string"}}
    for name in ("Accept-Ranges", "Content-Disposition", "Content-Security-Policy", "ETag")
}
_CONTENT_TYPES: dict[str, Any] = {media_type: {} for media_type in MEDIA_TYPES}
CONTENT_RESPONSES: dict[str, dict[str, Any]] = {
    "200": {"description": "the bytes", "content": _CONTENT_TYPES, "headers": _CONTENT_HEADERS},
    "206": {
        "description": "a range of them",
        "content": _CONTENT_TYPES,
        "headers": _CONTENT_HEADERS | _PARTIAL_HEADERS,
    },
    "416": {"description": ErrorCode.INVALID_REQUEST.name, "headers": _PARTIAL_HEADERS},
}
_create_docs = describe_route(
    "artifacts_create",
    Artifact,
    status=201,
    errors=[ErrorCode.PAYLOAD_TOO_LARGE, ErrorCode.UNSUPPORTED_MEDIA_TYPE],
)
_create_docs["openapi_extra"]["requestBody"] = UPLOAD_BODY
_content_docs = describe_route("artifacts_content", None, errors=[ErrorCode.NOT_FOUND])
_content_docs["responses"] |= CONTENT_RESPONSES
_content_docs["openapi_extra"]["parameters"] = [RANGE_HEADER]


@router.post("", dependencies=[Depends(reject_query)], **_create_docs)
async def create(request: Request, engine: ServedEngine, caller: WriteCaller) -> Response:
    """Upload one as multipart, in the field `file`; its type is told from its bytes."""
    form = await read_upload(request, engine.settings.upload_limit_bytes)
    try:
        async with Pacer(caller.account_id) as pacer:
            sizes = BodyLimits.of(engine.settings)
            metadata = await check_json(form.metadata or b"{}", sizes, pacer)
    except RequestError:
        raise make_upload_error("metadata", "is not a JSON object that can be kept") from None
    artifact = await engine.artifacts.create(caller, form.file, metadata)
    return render_resource(artifact, 201)


@router.get("", **describe_route("artifacts_list", Artifact, listed=True, query=PAGE_PARAMS))
async def list_page(request: Request, engine: ServedEngine, caller: ReadCaller) -> Response:
    """List them, newest first."""
    query = parse_page_query(request)
    return await render_page(await engine.artifacts.list(caller, query.limit, query.before), query)


@router.get(
    "/{id}",
    dependencies=[Depends(reject_query)],
    **describe_route("artifacts_read", Artifact, errors=[ErrorCode.NOT_FOUND]),
)
async def read(id: str, engine: ServedEngine, caller: ReadCaller) -> Response:
    """Read what is known of one."""
    return render_resource(await engine.artifacts.get(caller, id))


@router.delete(
    "/{id}",
    dependencies=[Depends(reject_query)],
    **describe_route(
        "artifacts_delete", Artifact, errors=[ErrorCode.NOT_FOUND, ErrorCode.CONFLICT]
    ),
)
async def delete(id: str, engine: ServedEngine, caller: WriteCaller) -> Response:
    """Delete one with its bytes; the job that made it stays."""
    return render_resource(await engine.artifacts.delete(caller, id))


@router.get(
    "/{id}/lineage",
    dependencies=[Depends(reject_query)],
    **describe_route("artifacts_lineage", Lineage, errors=[ErrorCode.NOT_FOUND]),
)
async def lineage(id: str, engine: ServedEngine, caller: ReadCaller) -> Response:
    """Tell which jobs and artifacts it came from."""
    return render_resource(await engine.lineage.get(caller, id))


@router.get("/{id}/content", dependencies=[Depends(reject_query)], **_content_docs)
async def content(id: str, request: Request, engine: ServedEngine, caller: ReadCaller) -> Response:
    """Read its bytes, or a range of them."""
    artifact = await engine.artifacts.get(caller, id)
    headers = {
        "Accept-Ranges": "bytes",
        "Content-Disposition": f'attachment; filename="{artifact.filename}"',
        # A browser must not run it in this service's name, whatever it is.
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "ETag": f'"{artifact.sha256}"',
    }
    wanted = parse_byte_range(request.headers.get("range"), artifact.size_bytes)
    start, end = wanted or (0, artifact.size_bytes)
    if wanted is not None and start >= end:
        error = RequestError(ErrorCode.INVALID_REQUEST, "Ask for a range within the bytes.")
        headers = {"Content-Range": f"bytes */{artifact.size_bytes}"}
        return render_error(error, request.state.request_id, status=416, headers=headers)
    if wanted is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{artifact.size_bytes}"
    status = 200 if wanted is None else 206
    upto = min(end, start + CHUNK_BYTES)
    downloads: DownloadReader = request.app.state.downloads
    if upto < end:
        downloads.check_capacity(caller.key_id)
    # Read before the answer begins, as one that has begun cannot say that bytes are missing.
    first = await engine.artifacts.read_content(caller, id, start, upto)
    if upto >= end:
        return Response(first, status, headers, media_type=artifact.media_type)
    rest = downloads.stream_content(caller, id, first, upto, end)
    headers["Content-Length"] = str(end - start)
    return StreamingResponse(rest, status, headers, media_type=artifact.media_type)
