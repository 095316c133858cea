"""The OpenAPI document: every body, answer and error of every route, from the contract's models."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from starlette.routing import BaseRoute

from toolkit.contract.base import Envelope, PageEnvelope
from toolkit.contract.errors import ErrorCode
from toolkit.server.http.query import DEFAULT_LIMIT, MAX_EVENT_NUMBER, MAX_LIMIT, MAX_POLL_S
from toolkit.server.openapi.operations import (
    SCHEMA_REF,
    SUCCESS,
    TAGS,
    add_error_responses,
    complete_document,
)

_COMMON_ERRORS = (ErrorCode.INVALID_REQUEST, ErrorCode.RATE_LIMITED, ErrorCode.INTERNAL)
_BODY_ERRORS = (ErrorCode.PAYLOAD_TOO_LARGE, ErrorCode.UNSUPPORTED_MEDIA_TYPE)


@dataclass(frozen=True, slots=True)
class QueryParam:
    """A query parameter: its name, what it is for, and the schema of its values."""

    name: str
    text: str
    schema: dict[str, Any] = field(default_factory=lambda: {"type": "string"})


PAGE_PARAMS = (
    QueryParam(
        "limit",
        "how many items at most",
        {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
    ),
    QueryParam(
        "cursor", "the next_cursor of the page before", {"type": "string", "format": "cursor"}
    ),
)
POLL_PARAMS = (
    QueryParam(
        "after",
        "the number of the last event seen",
        {"type": "integer", "minimum": 0, "maximum": MAX_EVENT_NUMBER, "default": 0},
    ),
    QueryParam(
        "wait",
        "how many seconds to hold while there is none",
        {"type": "integer", "minimum": 0, "maximum": MAX_POLL_S, "default": 0},
    ),
)


def describe_route(
    operation_id: str,
    answer: type[BaseModel] | None,
    *,
    status: int = 200,
    listed: bool = False,
    body: type[BaseModel] | None = None,
    query: Sequence[QueryParam] = (),
    errors: Sequence[ErrorCode] = (),
    holds: bool = False,
) -> dict[str, Any]:
    """Describe a route, as arguments of FastAPI's decorators.

    Args:
        operation_id: resource and verb, such as `runs_create`.
        answer: the model in the envelope; none for an answer that is no JSON.
        status: the status of success.
        listed: whether the answer is a page of them.
        body: the request body.
        query: the query parameters.
        errors: codes beside those that follow from the method and path, which are added to the
            document: of keys, ids, bodies and `Idempotency-Key`.
        holds: whether `Prefer: wait=N` holds the answer.
    """
    responses: dict[str, Any] = {}
    if answer is not None:
        wrapped: Any = PageEnvelope[answer] if listed else Envelope[answer]  # type: ignore[valid-type]
        responses[str(status)] = {"model": wrapped, "description": SUCCESS}
    add_error_responses(responses, *_COMMON_ERRORS, *(_BODY_ERRORS if body else ()), *errors)
    extra: dict[str, Any] = {
        "parameters": [
            {"name": one.name, "in": "query", "description": one.text, "schema": one.schema}
            for one in query
        ],
        "x-holds": holds,
    }
    if body is not None:
        schema = body.model_json_schema(ref_template=SCHEMA_REF)
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


def build_document(routes: Sequence[BaseRoute]) -> dict[str, Any]:
    """Build the document of some routes, and of the bodies that they read by hand."""
    made = get_openapi(
        title="Capability Routing Service",
        version="1",
        description="Ask for versioned capabilities; each is routed to a provider you own.",
        routes=routes,
        tags=[{"name": name, "description": text} for name, text in TAGS.items()],
    )
    return complete_document(made)
