"""The `aws-s3` wire: the objects that jobs of Bedrock read and write."""

from datetime import UTC, datetime
from email.utils import format_datetime
from hashlib import md5, sha256
from xml.etree.ElementTree import Element, SubElement, tostring  # nosec B405 - it only writes

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from toolkit.sandbox.json_http import RefusalError, build_checked_routes
from toolkit.sandbox.state import EPOCH, SandboxState
from toolkit.sandbox.vendor_paths import ACCESS_KEY, BUCKET, SIGNING_KEY
from toolkit.sandbox.wires.aws_signature import S3, SignatureRefusalError, check_signature

CHANGED_AT = datetime.fromtimestamp(EPOCH, UTC)  # of each object
_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
# The names that S3 has for refusals of a signature.
_CODES = {
    "AccessDeniedException": "AccessDenied",
    "IncompleteSignatureException": "AuthorizationHeaderMalformed",
    "UnrecognizedClientException": "InvalidAccessKeyId",
    "InvalidSignatureException": "SignatureDoesNotMatch",
}


class S3RefusalError(RefusalError):
    """A refusal in the format of S3, which is XML."""

    def build_response(self, _request: Request) -> Response:
        """Build the response, whose error has a code and a message."""
        return Response(str(self.body), self.status, self.headers, "application/xml")


def refuse(status: int, code: str, message: str) -> RefusalError:
    """Make a refusal in the vendor's format."""
    error = Element("Error")
    _add_members(error, Code=code, Message=message)
    return S3RefusalError(tostring(error, "unicode"), status)


class Bucket(dict[str, bytes]):
    """The objects of the bucket, by their keys."""


def build_routes(state: SandboxState) -> list[BaseRoute]:
    """Build the routes of the bucket and its objects, with the bucket in the path."""
    bucket = state.get_records(Bucket)

    async def put_object(request: Request) -> Response:
        data = await request.body()
        bucket[str(request.path_params["key"])] = data
        return Response(headers={"etag": _compute_etag(data)})

    async def get_object(request: Request) -> Response:
        data = bucket.get(str(request.path_params["key"]))
        if data is None:
            raise refuse(404, "NoSuchKey", "The specified key does not exist.")
        headers = {
            "etag": _compute_etag(data),
            "last-modified": format_datetime(CHANGED_AT, usegmt=True),
        }
        return Response(data, 200, headers, "application/octet-stream")

    async def delete_object(request: Request) -> Response:
        bucket.pop(str(request.path_params["key"]), None)
        return Response(status_code=204)

    async def list_objects(request: Request) -> Response:
        query = request.query_params
        if query.get("list-type") != "2":
            raise refuse(501, "NotImplemented", "Only ListObjectsV2 is simulated.")
        prefix, limit = query.get("prefix", ""), int(query.get("max-keys", 1_000))
        after = query.get("continuation-token") or query.get("start-after") or ""
        keys = sorted(key for key in bucket if key.startswith(prefix) and key > after)
        return _describe_list(bucket, prefix, keys, limit)

    return build_checked_routes(
        _check_request,
        (
            ("GET", "/{bucket}", list_objects),
            ("PUT", "/{bucket}/{key:path}", put_object),
            ("GET", "/{bucket}/{key:path}", get_object),
            ("DELETE", "/{bucket}/{key:path}", delete_object),
        ),
    )


async def _check_request(request: Request) -> None:
    """Check the signature of a request, the digest of its body, and its bucket."""
    try:
        await check_signature(request, ACCESS_KEY, SIGNING_KEY, S3)
    except SignatureRefusalError as refusal:
        raise refuse(403, _CODES[refusal.name], refusal.message) from None
    digest = sha256(await request.body()).hexdigest()
    if request.headers.get("x-amz-content-sha256") != digest:
        message = "The provided 'x-amz-content-sha256' header does not match the content."
        raise refuse(400, "XAmzContentSHA256Mismatch", message)
    if request.path_params["bucket"] != BUCKET:
        raise refuse(404, "NoSuchBucket", "The specified bucket does not exist.")


def _describe_list(bucket: Bucket, prefix: str, keys: list[str], limit: int) -> Response:
    """Describe a page of objects."""
    page, root = keys[:limit], Element("ListBucketResult", {"xmlns": _NAMESPACE})
    _add_members(root, Name=BUCKET, Prefix=prefix, KeyCount=len(page), MaxKeys=limit)
    _add_members(root, IsTruncated=str(len(keys) > limit).lower())
    if len(keys) > limit:
        _add_members(root, NextContinuationToken=page[-1])
    for key in page:
        etag, size = _compute_etag(bucket[key]), len(bucket[key])
        entry, changed_at = SubElement(root, "Contents"), CHANGED_AT.isoformat()
        _add_members(entry, Key=key, LastModified=changed_at, ETag=etag, Size=size)
    return Response(tostring(root, "utf-8", xml_declaration=True), media_type="application/xml")


def _compute_etag(data: bytes) -> str:
    return f'"{md5(data, usedforsecurity=False).hexdigest()}"'


def _add_members(element: Element, **members: object) -> None:
    for name, value in members.items():
        SubElement(element, name).text = str(value)
