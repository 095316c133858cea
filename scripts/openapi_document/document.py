"""The OpenAPI document: every body, response and error of every operation, from the table."""

from functools import cache
from typing import Any

from scripts.openapi_document.examples import EXAMPLE_REQUEST_ID, EXAMPLES
from scripts.openapi_document.headers import (
    APPLIED_HEADER,
    IDEMPOTENCY_KEY,
    LAST_EVENT_ID,
    PREFER,
    RANGE,
    RATE_LIMIT_POLICY,
    REPLAYED_HEADER,
    REQUEST_ID,
    RETRY_AFTER,
    WWW_AUTHENTICATE,
)
from scripts.openapi_document.schemas import build_schemas, get_envelope, make_schema_ref
from toolkit.contract.artifacts import MEDIA_TYPES
from toolkit.contract.base import ErrorEnvelope
from toolkit.contract.errors import ErrorCode
from toolkit.contract.operations.definitions import ApiOperation
from toolkit.contract.operations.table import OPERATIONS

_SHARED_PARAMETERS = (IDEMPOTENCY_KEY, PREFER, LAST_EVENT_ID)
_UPLOAD_BODY: dict[str, Any] = {
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
_PARTIAL_HEADERS = {
    "Content-Range": {"required": True, "schema": {"type": "string", "pattern": "^bytes "}}
}
_CONTENT_HEADERS = {
    name: {"required": True, "schema": {"type": "string"}}
    for name in ("Accept-Ranges", "Content-Disposition", "Content-Security-Policy", "ETag")
}
_CONTENT_TYPES: dict[str, Any] = {media_type: {} for media_type in MEDIA_TYPES}
_CONTENT_RESPONSES: dict[str, dict[str, Any]] = {
    "200": {"description": "the bytes", "content": _CONTENT_TYPES, "headers": _CONTENT_HEADERS},
    "206": {
        "description": "a range of the bytes",
        "content": _CONTENT_TYPES,
        "headers": _CONTENT_HEADERS | _PARTIAL_HEADERS,
    },
    "307": {
        "description": "a temporary address of the bytes that needs no key: only of a service that"
        " is configured for it (`artifact_reads`)",
        "headers": {
            name: {"required": True, "schema": {"type": "string"}} for name in ("Location", "ETag")
        },
    },
}


@cache
def build_openapi() -> dict[str, Any]:
    """Build the document; the server serves a copy of it, `toolkit/server/openapi.json`."""
    paths: dict[str, dict[str, Any]] = {}
    tags: dict[str, str] = {}
    for operation in OPERATIONS:
        described = _describe_operation(operation)
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
        tags[operation.resource.tag] = operation.resource.about
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Capability Routing Service",
            "description": "Ask for versioned capabilities; each is routed to a provider you own.",
            "version": "1",
        },
        "paths": paths,
        "components": {
            "schemas": build_schemas(),
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "a key, `sk_live_…`"}
            },
        },
        "tags": [{"name": name, "description": about} for name, about in tags.items()],
    }
    _share_components(document)
    return document


def _describe_operation(operation: ApiOperation[Any, Any]) -> dict[str, Any]:
    """Describe an operation: its parameters and body, and every response."""
    described: dict[str, Any] = {
        "tags": [operation.resource.tag],
        "summary": operation.verb.replace("_", " ").capitalize(),
        "description": operation.summary,
        "operationId": operation.id,
        "parameters": _describe_parameters(operation),
    }
    if operation.uploads:
        described["requestBody"] = _UPLOAD_BODY
    elif operation.body is not None:
        content: dict[str, Any] = {"schema": make_schema_ref(operation.body)}
        if operation.body.__name__ in EXAMPLES:
            content["example"] = EXAMPLES[operation.body.__name__]
        described["requestBody"] = {
            "required": not operation.may_omit_body,
            "content": {"application/json": content},
        }
    described["responses"] = {**_describe_success(operation), **_describe_errors(operation)}
    described["security"] = [] if operation.scope is None else [{"key": []}]
    return described


def _describe_parameters(operation: ApiOperation[Any, Any]) -> list[dict[str, Any]]:
    """Describe the parameters in the path, the query and the headers of a request."""
    parameters: list[dict[str, Any]] = []
    if "{id}" in operation.path:
        schema = {"type": "string", "pattern": operation.resource.id_pattern}
        place = {"name": "id", "in": "path", "required": True}
        parameters.append({**place, "schema": schema, "description": "its id"})
    parameters += [
        {"name": item.name, "in": "query", "description": item.text, "schema": item.schema}
        for item in (operation.query.PARAMETERS if operation.query is not None else ())
    ]
    headers = (
        (RANGE, operation.form == "bytes"),
        (LAST_EVENT_ID, operation.form == "events"),
        (IDEMPOTENCY_KEY, operation.replays),
        (PREFER, operation.holds),
    )
    return parameters + [header for header, is_read in headers if is_read]


def _describe_success(operation: ApiOperation[Any, Any]) -> dict[str, Any]:
    """Describe the successful responses."""
    if operation.form == "bytes":
        return {
            status: {**described, "headers": {**described["headers"], "X-Request-Id": REQUEST_ID}}
            for status, described in _CONTENT_RESPONSES.items()
        }
    headers = {"X-Request-Id": REQUEST_ID}
    if operation.replays:
        headers["Idempotency-Replayed"] = REPLAYED_HEADER
    if operation.holds:
        headers["Preference-Applied"] = APPLIED_HEADER
    content: dict[str, Any] = {"schema": make_schema_ref(get_envelope(operation))}
    example = EXAMPLES.get(operation.answer.__name__)
    if example is not None and operation.form == "record":
        head = {member: example[member] for member in ("id", "status") if member in example}
        content["example"] = {**head, "data": example}
    elif example is not None:
        content["example"] = {
            "data": {"items": [example], "count": 1, "total": 1, "next_cursor": None}
        }
    described = {"description": "success", "content": {"application/json": content}}
    return {str(operation.status): {**described, "headers": headers}}


def _describe_errors(operation: ApiOperation[Any, Any]) -> dict[str, Any]:
    """Describe the errors by status; each names its codes, and the first code is the example.

    The schema is the same for all, because client generators make a class of each schema.
    """
    codes: dict[int, dict[str, ErrorCode]] = {}
    for code in operation.errors:
        codes.setdefault(code.http_status or 500, {})[code.name] = code
    if operation.form == "bytes":
        codes[416] = {ErrorCode.INVALID_REQUEST.name: ErrorCode.INVALID_REQUEST}
    return {str(status): _describe_error(status, codes[status]) for status in sorted(codes)}


def _describe_error(status: int, codes: dict[str, ErrorCode]) -> dict[str, Any]:
    headers = {"X-Request-Id": REQUEST_ID}
    if status == 401:
        headers["WWW-Authenticate"] = WWW_AUTHENTICATE
    if status in (429, 503):
        headers["Retry-After"] = RETRY_AFTER
    if status == 429:
        headers["RateLimit-Policy"] = RATE_LIMIT_POLICY
    if status == 416:
        headers |= _PARTIAL_HEADERS
    code = next(iter(codes.values()))
    error = {"code": code.name, "message": code.hint, "request_id": EXAMPLE_REQUEST_ID}
    content = {"schema": make_schema_ref(ErrorEnvelope), "example": {"error": error}}
    return {
        "description": ", ".join(codes),
        "content": {"application/json": content},
        "headers": headers,
    }


def _share_components(document: dict[str, Any]) -> None:
    """Move parameters, headers and errors that many operations share into components."""
    components = document["components"]
    headers = components["headers"] = {}
    parameters = components["parameters"] = {}
    errors = components["responses"] = {}
    for operations in document["paths"].values():
        for operation in operations.values():
            for i, parameter in enumerate(references := operation["parameters"]):
                if parameter in _SHARED_PARAMETERS:
                    parameters[parameter["name"]] = parameter
                    references[i] = {"$ref": f"#/components/parameters/{parameter['name']}"}
            for status, response in operation["responses"].items():
                response["headers"]["X-Request-Id"] = {"$ref": "#/components/headers/X-Request-Id"}
                if int(status) >= 400:
                    name = ".".join((status, *response["description"].split(", ")))
                    errors[name] = response
                    operation["responses"][status] = {"$ref": f"#/components/responses/{name}"}
    headers["X-Request-Id"] = REQUEST_ID
