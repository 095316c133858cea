"""Headers of requests and answers, as the OpenAPI document has them."""

from typing import Any

from toolkit.contract.ids import Prefix, build_id_pattern


def _build_header(text: str, pattern: str | None = None, *, always: bool = True) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    if pattern is not None:
        schema["pattern"] = pattern
    return {"description": text, "required": always, "schema": schema}


REQUEST_ID = _build_header("finds the request in the log", build_id_pattern(Prefix.REQUEST))
RETRY_AFTER = _build_header("seconds to wait before trying again", "^[0-9]+$")
RATE_LIMIT_POLICY = _build_header(
    "the limit of the key, if that refused the request: `q` requests in `w` seconds",
    '^"key";q=[0-9]+;w=[0-9]+$',
    always=False,
)
WWW_AUTHENTICATE = _build_header("how to authenticate", "^Bearer$")
REPLAYED_HEADER = _build_header(
    "there where the answer is that of an earlier request", "^true$", always=False
)
APPLIED_HEADER = _build_header(
    "how long the answer was held at most, and whether texts are streamed",
    "^(wait=[0-9]+(, stream)?|stream)$",
    always=False,
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
    "description": "`wait=N` holds the answer for up to N seconds, at most 60; `stream` has texts"
    " come as they are written, as `event: delta` on the event stream; as with every preference,"
    " what is none is passed over, and Preference-Applied says what was done",
    "schema": {"type": "string"},
}
LAST_EVENT_ID = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "the id of the last event that a stream gave",
    "schema": {"type": "string", "pattern": "^[0-9]{1,15}$"},
}
RANGE = {
    "name": "Range",
    "in": "header",
    "description": "one range of bytes; all others are passed over",
    "schema": {"type": "string"},
    "example": "bytes=0-99",
}
