"""Operations of the OpenAPI document: shared errors, headers, parameters and examples.

Method and path decide them: who may ask, which ids there are, how requests are repeated, which
headers each answer has, and which errors can occur.
"""

from typing import Any

from toolkit.contract.base import ErrorEnvelope
from toolkit.contract.errors import ErrorCode
from toolkit.contract.ids import Prefix, build_id_pattern
from toolkit.server.http.query import find_id_prefix
from toolkit.server.middleware.idempotency import is_exempt
from toolkit.server.openapi.examples import EXAMPLE_REQUEST_ID, EXAMPLES

SCHEMA_REF = "#/components/schemas/{model}"
SUCCESS = "success"
PUBLIC_OPERATIONS = {("/v1/account", "post"), ("/v1/health", "get")}
STORELESS_PATHS = {"/v1/health"}  # answers whatever the store does
CAPABILITY_ID = r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+(@[0-9]+)?$"
# One line for each resource; a document has those of the resources that are served.
TAGS = {
    "account": "The caller's account, and the keys that open it.",
    "agents": "Named objectives with what they may use, to be run again.",
    "artifacts": "What jobs yield and callers upload: records, and bytes.",
    "billing": "What each vendor bills the caller.",
    "capabilities": "What can be asked for, with the schemas of input and output.",
    "catalog": "The GPUs and models that vendors offer, with list prices.",
    "compute": "GPU pods, rented by the hour.",
    "connections": "Pointers to secrets that the caller keeps.",
    "endpoints": "Serverless GPU endpoints.",
    "health": "Whether the service is there.",
    "jobs": "The one unit of execution, and work on a compute.",
    "plans": "What a task would do, without doing it.",
    "providers": "The vendors that can be connected.",
    "runs": "One capability, executed once; and the choice that a run would get.",
    "storage": "Network volumes.",
    "tasks": "An objective that is planned, carried out and reviewed.",
    "templates": "Container images shared between endpoints.",
    "usage": "What work has cost.",
    "workflows": "Graphs of capabilities, executed in order of dependence.",
}


def _build_header(text: str, pattern: str | None = None, *, always: bool = True) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    if pattern is not None:
        schema["pattern"] = pattern
    return {"description": text, "required": always, "schema": schema}


REQUEST_ID = _build_header("finds the request in the log", build_id_pattern(Prefix.REQUEST))
RETRY_AFTER = _build_header("seconds to wait before trying again", "^[0-9]+$")
WWW_AUTHENTICATE = _build_header("how to authenticate", "^Bearer$")
REPLAYED_HEADER = _build_header(
    "there where the answer is that of an earlier request", "^true$", always=False
)
APPLIED_HEADER = _build_header(
    "how long the answer was held at most", "^wait=[0-9]+$", always=False
)

# Proxies strip spaces at either end of a header.
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "sent again with the same key, a request has its first answer for 24 hours",
    "schema": {
        "type": "string",
        "minLength": 1,
        "maxLength": 255,
        "pattern": r"^[!-~]([ -~]*[!-~])?$",
    },
}
PREFER = {
    "name": "Prefer",
    "in": "header",
    "description": "`wait=N` holds the answer for up to N seconds, at most 60; as with every"
    " preference, what is none is passed over, and Preference-Applied says what was done",
    "schema": {"type": "string"},
}
LAST_EVENT_ID = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "the id of the last event that a stream gave",
    "schema": {"type": "string", "pattern": "^[0-9]{1,15}$"},
}

SHARED_PARAMETERS = (IDEMPOTENCY_KEY, PREFER, LAST_EVENT_ID)


def complete_document(document: dict[str, Any]) -> dict[str, Any]:
    """Complete the document with all that follows from methods and paths."""
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    components["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer", "description": "a key, `sk_live_…`"}
    }
    used: set[str] = set()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            used.update(operation.get("tags", ()))
            _hoist_body_schema(operation, schemas)
            operation["responses"].pop("422", None)  # FastAPI's own, which never comes
            _describe_parameters(path, operation)
            _add_errors(path, method, operation)
            _describe_headers(method, path, operation)
            _add_examples(operation)
    error = ErrorEnvelope.model_json_schema(mode="serialization", ref_template=SCHEMA_REF)
    schemas |= {**error.pop("$defs"), "ErrorEnvelope": error}
    _share_components(document)
    document["tags"] = [tag for tag in document.get("tags", ()) if tag["name"] in used]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    return document


def _hoist_body_schema(operation: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Put the schema of a body among the components, with its example beside where it is used."""
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body is None:
        return
    schema = body["schema"]
    schemas.update(schema.pop("$defs", {}))
    name = schema["title"]
    schemas[name] = schema
    body["schema"] = {"$ref": SCHEMA_REF.format(model=name)}
    if name in EXAMPLES:
        body["example"] = EXAMPLES[name]


def _describe_parameters(path: str, operation: dict[str, Any]) -> None:
    """Describe the ids that a path takes."""
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "path":
            prefix = find_id_prefix(path)
            pattern = build_id_pattern(prefix) if prefix is not None else None
            if path.startswith("/v1/capabilities/"):
                pattern = CAPABILITY_ID
            parameter["schema"] = {"type": "string", **({"pattern": pattern} if pattern else {})}
            parameter["description"] = "its id"
    if path.endswith("/events"):
        operation.setdefault("parameters", []).append(LAST_EVENT_ID)


def _add_errors(path: str, method: str, operation: dict[str, Any]) -> None:
    """Add the errors that follow from the path and method."""
    if (path, method) not in PUBLIC_OPERATIONS:
        operation["security"] = [{"key": []}]
        add_error_responses(operation["responses"], ErrorCode.UNAUTHENTICATED, ErrorCode.FORBIDDEN)
    else:
        operation["security"] = []
    if "{" in path:
        add_error_responses(operation["responses"], ErrorCode.NOT_FOUND)
    if path not in STORELESS_PATHS:
        add_error_responses(operation["responses"], ErrorCode.UNAVAILABLE)
    if method == "post" and not is_exempt(path):
        operation.setdefault("parameters", []).append(IDEMPOTENCY_KEY)
        add_error_responses(
            operation["responses"], ErrorCode.IDEMPOTENCY_CONFLICT, ErrorCode.PAYLOAD_TOO_LARGE
        )
    if operation.pop("x-holds", False):
        operation["parameters"].append(PREFER)


def add_error_responses(responses: dict[str, Any], *codes: ErrorCode) -> None:
    """Add errors to the answers of an operation, by their status."""
    for code in codes:
        known = responses.setdefault(str(code.http_status), {"description": ""})
        names = [*filter(None, known["description"].split(", ")), code.name]
        known["description"] = ", ".join(dict.fromkeys(names))


def _describe_headers(method: str, path: str, operation: dict[str, Any]) -> None:
    """Describe the headers of each answer."""
    for status, response in operation["responses"].items():
        headers = response["headers"] = {**response.get("headers", {}), "X-Request-Id": REQUEST_ID}
        if status == "401":
            headers["WWW-Authenticate"] = WWW_AUTHENTICATE
        if status in ("429", "503"):
            headers["Retry-After"] = RETRY_AFTER
        if status.startswith("2") and method == "post" and not is_exempt(path):
            headers["Idempotency-Replayed"] = REPLAYED_HEADER
        if status.startswith("2") and PREFER in operation.get("parameters", ()):
            headers["Preference-Applied"] = APPLIED_HEADER


def _add_examples(operation: dict[str, Any]) -> None:
    """Add an example to each answer, and the possible codes to each error."""
    for status, response in operation["responses"].items():
        if int(status) >= 400:
            first = response["description"].partition(", ")[0]
            response["content"] = {"application/json": _describe_error(ErrorCode[first])}
            continue
        content = response.get("content", {}).get("application/json")
        if content is not None and "$ref" in content.get("schema", ()):
            example = _find_example(content["schema"]["$ref"].rpartition("/")[2])
            if example is not None:
                content["example"] = example


def _describe_error(code: ErrorCode) -> dict[str, Any]:
    """Describe the content of an error, by an example.

    The schema is the same for all: generators of clients make a class of each. The description
    names the codes.
    """
    error = {"code": code.name, "message": code.hint, "request_id": EXAMPLE_REQUEST_ID}
    return {
        "schema": {"$ref": SCHEMA_REF.format(model="ErrorEnvelope")},
        "example": {"error": error},
    }


def _share_components(document: dict[str, Any]) -> None:
    """Move what many operations share into components: parameters, headers and errors."""
    components = document["components"]
    headers = components["headers"] = {}
    parameters = components["parameters"] = {}
    errors = components["responses"] = {}
    for operations in document["paths"].values():
        for operation in operations.values():
            for i, parameter in enumerate(given := operation.get("parameters", [])):
                if parameter in SHARED_PARAMETERS:
                    parameters[parameter["name"]] = parameter
                    given[i] = {"$ref": f"#/components/parameters/{parameter['name']}"}
            responses = operation["responses"]
            for status, response in sorted(responses.items()):
                for name, header in response["headers"].items():
                    if header is REQUEST_ID:
                        headers[name] = header
                        response["headers"][name] = {"$ref": f"#/components/headers/{name}"}
                del responses[status]
                responses[status] = response
                if int(status) >= 400:
                    name = ".".join((status, *response["description"].split(", ")))
                    errors[name] = response
                    responses[status] = {"$ref": f"#/components/responses/{name}"}


def _find_example(wrapped: str) -> dict[str, Any] | None:
    """Find the example of an envelope, by the name of its schema: `Envelope_Run_`."""
    envelope, _, name = wrapped.removesuffix("_").partition("_")
    known = EXAMPLES.get(name)
    if known is None:
        return None
    if envelope == "PageEnvelope":
        return {"data": {"items": [known], "count": 1, "next_cursor": None}}
    beside = {member: known[member] for member in ("id", "status") if member in known}
    return {**beside, "data": known}
