"""Headers of requests and responses in the OpenAPI document."""

from typing import Any

from toolkit.contract.ids import Prefix, build_id_pattern


def _build_header(text: str, pattern: str | None = None, *, always: bool = True) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    if pattern is not None:
        schema["pattern"] = pattern
    return {"description": text, "required": always, "schema": schema}


REQUEST_ID = _build_header(
    "id of the request, as in the server's log", build_id_pattern(Prefix.REQUEST)
)
RETRY_AFTER = _build_header("seconds to wait before trying again", "^[0-9]+$")
RATE_LIMIT_POLICY = _build_header(
    "the limit of the key, if it was exceeded: `q` requests in `w` seconds",
    '^"key";q=[0-9]+;w=[0-9]+$',
    always=False,
)
WWW_AUTHENTICATE = _build_header("how to authenticate", "^Bearer$")
REPLAYED_HEADER = _build_header(
    "`true` if the response is that of an earlier request", "^true$", always=False
)
APPLIED_HEADER = _build_header(
    "maximum time for which the response was held, and whether texts are streamed",
    "^(wait=[0-9]+(, stream)?|stream)$",
    always=False,
)

# Proxies strip spaces at either end of a header.
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "a request that is sent again with the same key within 24 hours returns the"
    " first response",
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
    "description": "`wait=N` holds the response for up to N seconds, at most 60; `stream` sends"
    " answers as they are written, as `event: delta`, `reasoning_delta` and `tool_call_delta`"
    " on the event stream; unknown preferences are ignored, and Preference-Applied names the"
    " applied preferences",
    "schema": {"type": "string"},
}
LAST_EVENT_ID = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "id of the last event that the client received",
    "schema": {"type": "string", "pattern": "^[0-9]{1,15}$"},
}
RANGE = {
    "name": "Range",
    "in": "header",
    "description": "one range of bytes; other ranges are ignored",
    "schema": {"type": "string"},
    "example": "bytes=0-99",
}
