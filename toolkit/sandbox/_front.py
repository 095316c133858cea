"""The front door of the cloud: logs each call, plays scripted faults, adds the ids of requests."""

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from toolkit.sandbox import VENDOR_PATHS
from toolkit.sandbox._state import Call, Fault, SandboxState

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class FrontDoor:
    """ASGI middleware around all vendors."""

    def __init__(self, app: App, state: SandboxState) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request, or pass on what is no vendor's."""
        vendor = _vendor(scope)
        if vendor is None:
            await self._app(scope, receive, send)
            return
        body = await _read(receive)
        call = self._log(vendor, scope, body)
        scope["sandbox_call"] = call
        fault = self._state.take_fault(vendor, call.path)
        delay = self._state.latency_ms + (fault.delay_ms if fault else 0.0)
        if delay > 0:
            await asyncio.sleep(delay / 1000)
        marked = self._marking(send, vendor, call)
        if fault is not None and fault.drop:
            await _drop(scope, send)
        elif fault is not None and fault.answers():
            await _play(fault, marked)
        else:
            await self._app(scope, _replay(body, receive), marked)

    def _log(self, vendor: str, scope: MutableMapping[str, Any], body: bytes) -> Call:
        path = str(scope["path"])[len(VENDOR_PATHS[vendor]) :] or "/"
        query = bytes(scope.get("query_string", b"")).decode("latin-1")
        method = str(scope["method"])
        digest = self._state.digest(vendor, method, path, query, _stable(scope, body))
        call = Call(len(self._state.calls) + 1, vendor, method, path, digest)
        self._state.calls.append(call)
        return call

    def _marking(self, send: Send, vendor: str, call: Call) -> Send:
        request_id = self._state.fresh("request", call.digest)[:32]

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                call.status = int(message["status"])
                present = {name.lower() for name, _ in message["headers"]}
                extra = [(b"x-request-id", f"req_{request_id}".encode())]
                if vendor == "minimax":
                    extra.append((b"trace-id", request_id.encode()))
                message["headers"] = [
                    *message["headers"],
                    *((name, value) for name, value in extra if name not in present),
                ]
            await send(message)

        return marked


def _vendor(scope: MutableMapping[str, Any]) -> str | None:
    if scope["type"] != "http":
        return None
    path = str(scope["path"])
    for vendor, prefix in VENDOR_PATHS.items():
        if path == prefix or path.startswith(prefix + "/"):
            return vendor
    return None


def _stable(scope: MutableMapping[str, Any], body: bytes) -> bytes:
    # A client draws a random multipart boundary: the same upload must still be the same request.
    for name, value in scope["headers"]:
        if name == b"content-type" and b"boundary=" in value:
            return body.replace(value.split(b"boundary=", 1)[1].strip(b'"'), b"")
    return body


async def _read(receive: Receive) -> bytes:
    parts: list[bytes] = []
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        parts.append(message.get("body", b""))
        more = bool(message.get("more_body", False))
    return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


async def _play(fault: Fault, send: Send) -> None:
    headers = {name.lower(): value for name, value in fault.headers.items()}
    if isinstance(fault.body, str):
        body = fault.body.encode()
        html = fault.body.lstrip().startswith("<")
        headers.setdefault("content-type", "text/html" if html else "application/json")
    else:
        body = json.dumps({} if fault.body is None else fault.body).encode()
        headers.setdefault("content-type", "application/json")
    headers["content-length"] = str(len(body))
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    status = 200 if fault.status is None else fault.status
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


async def _drop(scope: MutableMapping[str, Any], send: Send) -> None:
    # httpx's in-process transport has no wire to cut (its scope names no ASGI spec_version), so
    # the caller gets the very exception that a cut wire would have given it.
    if "spec_version" not in scope.get("asgi", {}):
        import httpx

        raise httpx.RemoteProtocolError("the sandbox dropped the connection")
    headers = [(b"content-type", b"application/json"), (b"content-length", b"4096")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b'{"', "more_body": True})
