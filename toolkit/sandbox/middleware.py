"""The middleware of the cloud: logs each call, applies scripted faults, adds request ids."""

import asyncio
import hashlib
from functools import partial
from uuid import UUID

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolkit.sandbox.faults import CallEffects, Fault, VendorCall, build_retry_headers
from toolkit.sandbox.json_http import RefusalError
from toolkit.sandbox.state import SandboxState, get_call
from toolkit.sandbox.text.chat import take_ordered_text
from toolkit.sandbox.wires import load_wire

HANG_DURATION_S = 24 * 3600.0
DRIP_PIECES = 20
PIECE_MS = 10.0  # delay between the pieces of a streamed text, unless a fault sets another
_STREAM_TYPES = (b"text/event-stream", b"application/vnd.amazon.eventstream")
_MESSAGES = {
    401: "The API key is not valid.",
    402: "The account is out of credit.",
    403: "The key may not do this.",
    404: "No such resource.",
    409: "The request is not valid for the current status.",
    429: "Rate limit reached.",
    503: "The service is not available.",
    529: "Overloaded.",
}
_MINIMAX_CODES = {401: 1004, 402: 1008, 429: 1002, 500: 1000, 503: 1033}
_ELEVENLABS_STATUSES = {
    401: "invalid_api_key",
    402: "quota_exceeded",
    429: "too_many_concurrent_requests",
}
_AWS_TYPES = {
    400: "ValidationException",
    401: "UnrecognizedClientException",
    402: "ServiceQuotaExceededException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
    529: "ServiceUnavailableException",
}
_S3_CODES = {403: "AccessDenied", 404: "NoSuchKey", 429: "SlowDown", 503: "SlowDown"}
# Statuses that Bedrock never sends, and their replacements.
_AWS_STATUSES = {401: 403, 402: 400, 529: 503}


class BufferedAnswer:
    """A buffer that collects an answer until it is complete."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""

    async def __call__(self, message: Message) -> None:
        """Add a part of the answer."""
        if message["type"] == "http.response.start":
            self.status, self.headers = int(message["status"]), list(message["headers"])
        else:
            self.body += message.get("body", b"")


class VendorMiddleware:
    """ASGI middleware around all vendors."""

    def __init__(self, app: ASGIApp, state: SandboxState) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a vendor, and pass on other requests."""
        vendor = self._find_vendor(scope)
        if vendor is None:
            await self._app(scope, receive, send)
            return
        body = await _read_body(receive)
        path = str(scope["path"])[len(self._state.vendor_paths[vendor]) :] or "/"
        # Drawn before the call is logged: a fault that is ordered after a reader has seen the
        # call in the log affects later calls only.
        batch_id, custom_id = scope.get("sandbox_item", ("", ""))
        effects = self._state.faults.draw_effects(vendor, path, custom_id)
        scope["sandbox_effects"] = effects
        call = self._log_call(vendor, path, scope, body)
        call.batch_id, call.custom_id = batch_id, custom_id
        scope["sandbox_call"] = call
        call.fault = effects.fault.summarize() if effects.fault else ""
        take_ordered_text.set(partial(self._state.faults.take_text, vendor))
        delay_ms = effects.delay_ms + (0.0 if custom_id else self._state.latency_ms)
        if delay_ms > 0:
            await asyncio.sleep(delay_ms / 1000)
        wrapped_send = self._wrap_send(send, call)
        wrapped_send = _pace_stream(wrapped_send, effects.piece_ms or PIECE_MS)
        fault = effects.fault
        if fault is None:
            await self._app(scope, _replay_body(body, receive), wrapped_send)
        elif fault.mangle == "drop":
            await _drop_connection(scope, send)
        elif fault.mangle == "hang":
            await asyncio.sleep(HANG_DURATION_S)
        elif fault.mangle is not None:
            answer = BufferedAnswer()
            await self._app(scope, _replay_body(body, receive), answer)
            await _send_mangled(fault, answer, call, wrapped_send)
        else:
            response = _build_fault_response(fault, effects, Request(scope))
            await response(scope, receive, wrapped_send)

    def _find_vendor(self, scope: Scope) -> str | None:
        if scope["type"] != "http":
            return None
        path = str(scope["path"])
        for vendor, prefix in self._state.vendor_paths.items():
            if path == prefix or path.startswith(prefix + "/"):
                return vendor
        return None

    def _log_call(self, vendor: str, path: str, scope: Scope, body: bytes) -> VendorCall:
        query = bytes(scope.get("query_string", b"")).decode("latin-1")
        method = str(scope["method"])
        digest = self._state.compute_digest(
            vendor, method, path, query, _normalize_body(scope, body)
        )
        request_id = self._state.compute_fresh_digest("request", digest)[:32]
        call = VendorCall(len(self._state.calls) + 1, vendor, method, path, digest, request_id)
        call.at_s = round(self._state.faults.get_elapsed_s(), 4)
        self._state.calls.append(call)
        return call

    def _wrap_send(self, send: Send, call: VendorCall) -> Send:
        id_headers = _build_id_headers(call)

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                call.status = int(message["status"])
                call.took_ms = round((self._state.faults.get_elapsed_s() - call.at_s) * 1000, 2)
                present = {name.lower() for name, _ in message["headers"]}
                added = [pair for pair in id_headers.items() if pair[0] not in present]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        return send_with_id


def _build_fault_response(fault: Fault, effects: CallEffects, request: Request) -> Response:
    """Build a fault's answer, in the vendor's own format unless the fault has a body."""
    status = 200 if fault.status is None else fault.status
    if fault.refuse_key:
        status = 401
    if effects.retry_after_s is not None:
        status = 429
    if fault.body is None:
        response = build_vendor_error(get_call(request).vendor, status).build_response(request)
    elif isinstance(fault.body, str):
        kind = "text/html" if fault.body.lstrip().startswith("<") else "application/json"
        response = Response(fault.body, status, {"content-type": kind})
    else:
        response = JSONResponse(fault.body, status)
    if effects.retry_after_s is not None:
        response.headers.update(build_retry_headers(effects.retry_after_s))
    response.headers.update(fault.headers)
    return response


def _build_id_headers(call: VendorCall) -> dict[bytes, bytes]:
    """Build the headers in which a vendor sends its id of a request."""
    usual = f"req_{call.request_id}".encode()
    match call.vendor:
        case "anthropic":
            return {b"request-id": usual[:28]}
        case "elevenlabs":
            return {b"request-id": usual}
        case "aws" | "aws-bedrock":
            return {
                b"x-amzn-requestid": str(UUID(call.request_id)).encode(),
                b"x-request-id": usual,
            }
        case "minimax":
            return {b"trace-id": call.digest[:32].encode(), b"x-request-id": usual}
    return {b"x-request-id": usual}


def _pace_stream(send: Send, piece_ms: float) -> Send:
    """Delay each piece of a streamed answer except the first, as a model takes time to write."""
    is_stream, is_first = False, True

    async def send_slowly(message: Message) -> None:
        nonlocal is_stream, is_first
        if message["type"] == "http.response.start":
            kinds = [value for name, value in message["headers"] if name == b"content-type"]
            is_stream = bool(kinds) and kinds[0].startswith(_STREAM_TYPES)
        elif is_stream and message.get("body"):
            if not is_first:
                await asyncio.sleep(piece_ms / 1000)
            is_first = False
        await send(message)

    return send_slowly


def _normalize_body(scope: Scope, body: bytes) -> bytes:
    # Clients draw random multipart boundaries, but equal uploads must have the same digest.
    for name, value in scope["headers"]:
        if name == b"content-type" and b"boundary=" in value:
            return body.replace(value.split(b"boundary=", 1)[1].strip(b'"'), b"")
    return body


async def _read_body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    has_more = True
    while has_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        parts.append(message.get("body", b""))
        has_more = bool(message.get("more_body", False))
    return b"".join(parts)


def _replay_body(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


async def _send_mangled(fault: Fault, answer: BufferedAnswer, call: VendorCall, send: Send) -> None:
    """Send a vendor's own answer, mangled."""
    body = answer.body
    if fault.mangle == "truncate":
        body = body[: len(body) // 2]
    elif fault.mangle == "garbage":
        body = hashlib.shake_256(call.digest.encode()).digest(len(body) or 64)
    fields = [(name, value) for name, value in answer.headers if name.lower() != b"content-length"]
    headers = [*fields, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    pieces = DRIP_PIECES if fault.mangle == "drip" else 1
    size = max(1, -(-len(body) // pieces))
    for start in range(0, len(body), size):
        if pieces > 1:
            await asyncio.sleep(fault.drip_s / pieces)
        piece = body[start : start + size]
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _drop_connection(scope: Scope, send: Send) -> None:
    # An in-process transport has no connection to cut (its scope names no ASGI spec_version), so
    # the caller gets the same exception as from a cut connection.
    if "spec_version" not in scope.get("asgi", {}):
        import httpx

        raise httpx.RemoteProtocolError("the sandbox dropped the connection")
    headers = [(b"content-type", b"application/json"), (b"content-length", b"4096")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b'{"', "more_body": True})


def build_vendor_error(wire: str, status: int) -> RefusalError:
    """Build an error as a vendor sends it.

    If a vendor does not use the status, the error has the vendor's status. MiniMax's errors come
    with HTTP 200, and Bedrock has neither 401 nor 402 nor 529.
    """
    words = _MESSAGES.get(status, "The server had an error while processing your request.")
    refusal: RefusalError
    match wire:
        case "anthropic":
            refusal = load_wire(wire).AnthropicRefusalError(status, words)
        case "aws" | "aws-bedrock":
            name = _AWS_TYPES.get(status, "InternalServerException")
            refusal = load_wire("aws").refuse(_AWS_STATUSES.get(status, status), name, words)
        case "aws-s3":
            refusal = load_wire(wire).refuse(status, _S3_CODES.get(status, "InternalError"), words)
        case "elevenlabs":
            name = _ELEVENLABS_STATUSES.get(status, "internal_error")
            refusal = load_wire(wire).refuse(status, name, words)
        case "google" | "runpod" | "runpod-jobs" | "vertex-token":
            refusal = load_wire(wire).refuse(status, words)
        case "minimax" if status in _MINIMAX_CODES:
            refusal = load_wire(wire).MiniMaxRefusalError(_MINIMAX_CODES[status], words)
        case "vertex":
            refusal = load_wire("google").refuse(status, words)
        case _:
            refusal = load_wire("openai").refuse(status, words)
    return refusal
