"""Serves the vendor cloud with a ledger: bodies, times, ids and meters of all calls.

`python -m tests.crash.trials.vendor_ledger --port 9000`. A vendor would write its bill from this
ledger, in a process that survives and reads no records of the engines. `GET /_ledger` returns it.

The first part of a call's path names the engine, as in `/engine-1/openai`. Engines with equal
settings have no such part, and the ledger finds the process of their connection.
"""

import argparse
import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from glob import iglob
from pathlib import Path
from typing import Any

import uvicorn

from toolkit.sandbox import create_app

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

LEDGER_PATH = "/_ledger"
ENGINE_PREFIX = "engine-"
ID_HEADERS = (b"x-request-id", b"request-id", b"trace-id")
LOOPBACK = "0100007F"
NO_INODE = "0"  # of a connection that no process has open


class ConnectionOwners:
    """Finds the process at the other end of a connection on loopback, from /proc.

    Args:
        port: port of the server.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._owners: dict[str, str] = {}

    def find_owner(self, port: int) -> str:
        """Return the process id of a client's port, or an empty string if the process has died."""
        ends = [f"{LOOPBACK}:{port:04X}", f"{LOOPBACK}:{self._port:04X}"]
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
        inode = next((fields[9] for fields in lines if fields[1:3] == ends), NO_INODE)
        if inode != NO_INODE and not self._owners.get(inode):
            self._owners[inode] = _find_holder(f"socket:[{inode}]")
        return self._owners.get(inode, "")


def _find_holder(socket: str) -> str:
    for descriptor in iglob("/proc/[0-9]*/fd/*"):
        with suppress(OSError):  # closed, or of another user
            if os.readlink(descriptor) == socket:
                return descriptor.split("/")[2]
    return ""


class LedgerKeeper:
    """An ASGI middleware that writes an entry for each request.

    The vendor completes a call even if the caller leaves, so an entry has both times.

    Args:
        app: the cloud.
        port: port of the cloud.
    """

    def __init__(self, app: App, port: int) -> None:
        self._app = app
        self._owners = ConnectionOwners(port)
        self._entries: list[dict[str, Any]] = []

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http" or scope["path"].startswith("/_sandbox"):
            await self._app(scope, receive, send)
        elif scope["path"] == LEDGER_PATH:
            await _send_json(send, self._entries)
        else:
            await self._serve(scope, receive, send)

    async def _serve(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        began = time.monotonic()
        engine, scope = self._split_engine(scope)
        vendor, _, path = scope["path"].lstrip("/").partition("/")
        entry: dict[str, Any] = {"vendor": vendor, "path": f"/{path}", "began": began}
        entry["engine"] = engine
        self._entries.append(entry)
        body, response = bytearray(), bytearray()
        watching: list[asyncio.Task[None]] = []

        async def receive_recorded() -> Message:
            message = await receive()
            body.extend(message.get("body", b""))
            if message["type"] == "http.request" and not message.get("more_body"):
                watching.append(asyncio.create_task(watch()))
            return message

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            entry.setdefault("left_at", time.monotonic())

        async def send_recorded(message: Message) -> None:
            if message["type"] == "http.response.start":
                entry["status"] = message["status"]
                ids = [value.decode() for name, value in message["headers"] if name in ID_HEADERS]
                entry["ids"] = ids
            else:
                response.extend(message.get("body", b""))
                if not message.get("more_body"):  # from here on the engine may call again
                    entry.setdefault("left_at", time.monotonic())
            await send(message)

        try:
            await self._app(scope, receive_recorded, send_recorded)
        finally:
            for watch_task in watching:
                watch_task.cancel()
            entry |= {"ended": time.monotonic(), "body": body.decode("utf-8", "replace")}
            entry |= _read_meters(bytes(response))

    def _split_engine(
        self, scope: MutableMapping[str, Any]
    ) -> tuple[str, MutableMapping[str, Any]]:
        """Return the name of the calling engine, and the scope without the name."""
        engine, _, path = scope["path"].removeprefix("/").partition("/")
        if not engine.startswith(ENGINE_PREFIX):
            return self._owners.find_owner(scope["client"][1]), scope
        raw = scope["raw_path"].removeprefix(f"/{engine}".encode())
        return engine, {**scope, "path": f"/{path}", "raw_path": raw}


def _read_meters(response: bytes) -> dict[str, Any]:
    """Read the meters of a response."""
    try:
        answer = json.loads(response)
    except ValueError:
        return {}
    meters = {name: answer[name] for name in ("id", "model", "usage") if name in answer}
    if "extra_info" in answer:
        meters["characters"] = answer["extra_info"]["usage_characters"]
    return meters


async def _send_json(send: Send, content: object) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(content).encode()})


def main() -> None:
    """Serve until a kill."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--latency-ms", type=float, required=True)
    options = parser.parse_args()
    app: Any = LedgerKeeper(create_app(latency_ms=options.latency_ms), options.port)
    uvicorn.run(app, host="127.0.0.1", port=options.port, log_level="warning")


if __name__ == "__main__":
    main()
