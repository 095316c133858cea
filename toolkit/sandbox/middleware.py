"""The middleware of the cloud: logs each call, applies scripted faults, adds request ids."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from typing import Any

from toolkit.sandbox.faults import CallEffects, Fault, VendorCall, build_retry_headers
from toolkit.sandbox.state import SandboxState
from toolkit.sandbox.text.chat import take_ordered_text
from toolkit.sandbox.vendor_errors import build_vendor_error

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


# The header of a request's id, for vendors that do not use the usual one.
_REQUEST_ID_HEADERS = {"anthropic": b"request-id", "elevenlabs": b"request-id"}
HANG_DURATION_S = 24 * 3600.0
DRIP_PIECES = 20
PIECE_MS = 10.0  # between the pieces of a streamed text, where no fault says another pace
_STREAM_TYPES = (b"text/event-stream", b"application/vnd.amazon.eventstream")


class VendorMiddleware:
    """ASGI middleware around all vendors."""

    def __init__(self, app: App, state: SandboxState) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request, or pass on one that is for no vendor."""
        vendor = self._find_vendor(scope)
        if vendor is None:
            await self._app(scope, receive, send)
            return
        body = await _read_body(receive)
        call = self._log_call(vendor, scope, body)
        scope["sandbox_call"] = call
        weather = self._state.faults.draw_effects(vendor, call.path)
        scope["sandbox_price_factor"] = weather.price_factor
        scope["sandbox_service_tier"] = weather.service_tier
        take_ordered_text.set(partial(self._state.faults.take_text, vendor))
        call.fault = weather.fault.summarize() if weather.fault else ""
        delay_ms = self._state.latency_ms + weather.delay_ms
        if delay_ms > 0:
            await asyncio.sleep(delay_ms / 1000)
        wrapped_send = self._wrap_send(send, vendor, call)
        wrapped_send = _pace_stream(wrapped_send, weather.piece_ms or PIECE_MS)
        fault = weather.fault
        if fault is None:
            await self._app(scope, _replay_body(body, receive), wrapped_send)
        elif fault.mangle == "drop":
            await _drop_connection(scope, send)
        elif fault.mangle == "hang":
            await asyncio.sleep(HANG_DURATION_S)
        elif fault.mangle is not None:
            whole = _BufferedAnswer()
            await self._app(scope, _replay_body(body, receive), whole)
            await _send_mangled(fault, whole, call, wrapped_send)
        else:
            await self._send_fault(fault, weather, call, wrapped_send)

    def _find_vendor(self, scope: MutableMapping[str, Any]) -> str | None:
        if scope["type"] != "http":
            return None
        path = str(scope["path"])
        for vendor, prefix in self._state.vendor_paths.items():
            if path == prefix or path.startswith(prefix + "/"):
                return vendor
        return None

    def _log_call(self, vendor: str, scope: MutableMapping[str, Any], body: bytes) -> VendorCall:
        path = str(scope["path"])[len(self._state.vendor_paths[vendor]) :] or "/"
        query = bytes(scope.get("query_string", b"")).decode("latin-1")
        method = str(scope["method"])
        digest = self._state.compute_digest(
            vendor, method, path, query, _normalize_body(scope, body)
        )
        call = VendorCall(len(self._state.calls) + 1, vendor, method, path, digest)
        call.at_s = round(self._state.faults.get_elapsed_s(), 4)
        self._state.calls.append(call)
        return call

    async def _send_fault(
        self, fault: Fault, weather: CallEffects, call: VendorCall, send: Send
    ) -> None:
        """Send a fault's answer, in the vendor's own format unless the fault has a body."""
        status = 200 if fault.status is None else fault.status
        if fault.refuse_key:
            status = 401
        if weather.retry_after_s is not None:
            status = 429
        headers: dict[str, str] = {}
        if fault.body is None:
            body, headers, status = build_vendor_error(call.vendor, status, call.digest[:32])
        elif isinstance(fault.body, str):
            body = fault.body.encode()
            html = fault.body.lstrip().startswith("<")
            headers["content-type"] = "text/html" if html else "application/json"
        else:
            body = json.dumps(fault.body).encode()
            headers["content-type"] = "application/json"
        if weather.retry_after_s is not None:
            headers |= build_retry_headers(weather.retry_after_s)
        headers |= {name.lower(): value for name, value in fault.headers.items()}
        headers["content-length"] = str(len(body))
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        await send({"type": "http.response.body", "body": body})

    def _wrap_send(self, send: Send, vendor: str, call: VendorCall) -> Send:
        request_id = self._state.compute_fresh_digest("request", call.digest)[:32]

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                call.status = int(message["status"])
                call.took_ms = round((self._state.faults.get_elapsed_s() - call.at_s) * 1000, 2)
                present = {name.lower() for name, _ in message["headers"]}
                name = _REQUEST_ID_HEADERS.get(vendor, b"x-request-id")
                extra = [(name, f"req_{request_id}".encode())]
                if vendor == "minimax":
                    extra.append((b"trace-id", request_id.encode()))
                message["headers"] = [
                    *message["headers"],
                    *((name, value) for name, value in extra if name not in present),
                ]
            await send(message)

        return send_with_id


def _pace_stream(send: Send, piece_ms: float) -> Send:
    """Wait before each piece of a streamed answer but the first, as a model takes time to write."""
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


def _normalize_body(scope: MutableMapping[str, Any], body: bytes) -> bytes:
    # A client draws a random multipart boundary: the same upload must still be the same request.
    for name, value in scope["headers"]:
        if name == b"content-type" and b"boundary=" in value:
            return body.replace(value.split(b"boundary=", 1)[1].strip(b'"'), b"")
    return body


async def _read_body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        parts.append(message.get("body", b""))
        more = bool(message.get("more_body", False))
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


async def _send_mangled(
    fault: Fault, held: "_BufferedAnswer", call: VendorCall, send: Send
) -> None:
    """Send a vendor's own answer, mangled."""
    body = held.body
    if fault.mangle == "truncate":
        body = body[: len(body) // 2]
    elif fault.mangle == "garbage":
        body = hashlib.shake_256(call.digest.encode()).digest(len(body) or 64)
    kept = [(name, value) for name, value in held.headers if name.lower() != b"content-length"]
    headers = [*kept, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": held.status, "headers": headers})
    pieces = DRIP_PIECES if fault.mangle == "drip" else 1
    size = max(1, -(-len(body) // pieces))
    for start in range(0, len(body), size):
        if pieces > 1:
            await asyncio.sleep(fault.drip_s / pieces)
        piece = body[start : start + size]
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


class _BufferedAnswer:
    """A buffer that holds an answer back until it is complete."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""

    async def __call__(self, message: Message) -> None:
        """Add a part of it."""
        if message["type"] == "http.response.start":
            self.status, self.headers = int(message["status"]), list(message["headers"])
        else:
            self.body += message.get("body", b"")


async def _drop_connection(scope: MutableMapping[str, Any], send: Send) -> None:
    # httpx's in-process transport has no wire to cut (its scope names no ASGI spec_version), so
    # the caller gets the very exception that a cut wire would have given it.
    if "spec_version" not in scope.get("asgi", {}):
        import httpx

        raise httpx.RemoteProtocolError("the sandbox dropped the connection")
    headers = [(b"content-type", b"application/json"), (b"content-length", b"4096")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b'{"', "more_body": True})
