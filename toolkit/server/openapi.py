"""The OpenAPI document: every body, answer and error of every route, from the contract's models."""

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from toolkit.contract.base import Envelope, ErrorEnvelope, PageEnvelope
from toolkit.contract.errors import ErrorCode
from toolkit.server.idempotency import excepted

REF = "#/components/schemas/{model}"
_ANY = (
    ErrorCode.INVALID_REQUEST,
    ErrorCode.UNAUTHENTICATED,
    ErrorCode.FORBIDDEN,
    ErrorCode.RATE_LIMITED,
    ErrorCode.INTERNAL,
    ErrorCode.UNAVAILABLE,
)
_BODY = (ErrorCode.PAYLOAD_TOO_LARGE, ErrorCode.UNSUPPORTED_MEDIA_TYPE)
OPEN_PATHS = {("/v1/account", "post"), ("/v1/health", "get")}


def described(
    operation_id: str,
    answer: type[BaseModel] | None,
    *,
    status: int = 200,
    listed: bool = False,
    body: type[BaseModel] | None = None,
    query: Sequence[tuple[str, str]] = (),
    errors: Sequence[ErrorCode] = (),
) -> dict[str, Any]:
    """What a route says of itself, as arguments of FastAPI's decorators.

    Args:
        operation_id: such as `runs_create`.
        answer: the resource in the envelope; none for an answer that is no JSON.
        status: of success.
        listed: whether the answer is a page of them.
        body: the request body.
        query: names and descriptions of the query parameters.
        errors: codes beside those that every route can answer with.
    """
    responses: dict[int | str, dict[str, Any]] = {}
    if answer is not None:
        wrapped: Any = PageEnvelope[answer] if listed else Envelope[answer]  # type: ignore[valid-type]
        responses[status] = {"model": wrapped, "description": "success"}
    for code in (*_ANY, *(_BODY if body else ()), *errors):
        known = responses.setdefault(
            code.http_status or 500, {"model": ErrorEnvelope, "description": ""}
        )
        names = [*filter(None, known["description"].split(", ")), code.name]
        known["description"] = ", ".join(dict.fromkeys(names))
    extra: dict[str, Any] = {
        "parameters": [
            {"name": name, "in": "query", "description": text, "schema": {"type": "string"}}
            for name, text in query
        ]
    }
    if body is not None:
        schema = body.model_json_schema(ref_template=REF)
        extra["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema}},
        }
    return {
        "operation_id": operation_id,
        "status_code": status,
        "response_model": None,
        "responses": responses,
        "openapi_extra": extra,
    }


PAGED = (("limit", "1 to 200, 50 by default"), ("cursor", "the next_cursor of the page before"))
POLLED = (("after", "the number of the last event seen"), ("wait", "seconds to hold, at most 30"))


def install_openapi(app: FastAPI) -> None:
    """Serve a document in which the bodies that are read by hand are described too."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(
                title=app.title,
                version=app.version,
                description=app.description,
                routes=app.routes,
            )
            _finish(made)
            app.openapi_schema = made
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # FastAPI's documented way


def _with_key(operation: dict[str, Any]) -> None:
    """Say that a request may carry an idempotency key."""
    operation.setdefault("parameters", []).append(
        {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "sent again with the same key, a request has its first answer",
            "schema": {"type": "string", "minLength": 1, "maxLength": 255},
        }
    )
    schema = {"$ref": REF.format(model="ErrorEnvelope")}
    operation["responses"]["422"] = {
        "description": ErrorCode.IDEMPOTENCY_CONFLICT.name,
        "content": {"application/json": {"schema": schema}},
    }


def _with_stream(operation: dict[str, Any]) -> None:
    """Say that events also come as server-sent events, and how a broken stream goes on."""
    operation["responses"]["200"]["content"]["text/event-stream"] = {"schema": {"type": "string"}}
    operation.setdefault("parameters", []).append(
        {
            "name": "Last-Event-ID",
            "in": "header",
            "description": "the id of the last event that a stream gave",
            "schema": {"type": "string"},
        }
    )


def _finish(document: dict[str, Any]) -> None:
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body is not None:
                schemas.update(body["schema"].pop("$defs", {}))
            operation["responses"].pop("422", None)
            if path.endswith("/events"):
                _with_stream(operation)
            if method == "post" and not excepted(path):
                _with_key(operation)
            if (path, method) not in OPEN_PATHS:
                operation["security"] = [{"key": []}]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
