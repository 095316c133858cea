"""Serves the vendor cloud with a ledger of its own: what was asked, when, and what it comes to.

`python -m tests.crash.trials.vendor_ledger --port 9000`. It is what a vendor would write its bill
by, in a process that survives; nothing that an engine believes is in it. `GET /_ledger` shows it.

An engine is told from others by the first word of the path that it calls, as in `/engine-1/openai`,
which its settings give it; or by its process, where several have the same settings.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn

from tests.crash.trials.connection_owners import ConnectionOwners
from toolkit.sandbox import create_app

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

LEDGER_PATH = "/_ledger"
ENGINE_PREFIX = "engine-"
ID_HEADERS = (b"x-request-id", b"request-id", b"trace-id")


class LedgerKeeper:
    """An ASGI middleware that writes an entry for each request, from its first byte to its answer.

    Also when the caller hung up, if it did: the vendor carries the call out all the same.

    Args:
        app: the cloud.
        port: where it is served.
    """

    def __init__(self, app: App, port: int) -> None:
        self._app = app
        self._owners = ConnectionOwners(port)
        self._entries: list[dict[str, Any]] = []

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request."""
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
        asked, answered = bytearray(), bytearray()
        watching: list[asyncio.Task[None]] = []

        async def receive_recorded() -> Message:
            message = await receive()
            asked.extend(message.get("body", b""))
            if message["type"] == "http.request" and not message.get("more_body"):
                watching.append(asyncio.create_task(watch()))
            return message

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            entry.setdefault("left", time.monotonic())

        async def send_recorded(message: Message) -> None:
            if message["type"] == "http.response.start":
                entry["status"] = message["status"]
                ids = [value.decode() for name, value in message["headers"] if name in ID_HEADERS]
                entry["ids"] = ids
            else:
                answered.extend(message.get("body", b""))
                if not message.get("more_body"):  # from here on its engine may call anew
                    entry.setdefault("left", time.monotonic())
            await send(message)

        try:
            await self._app(scope, receive_recorded, send_recorded)
        finally:
            for each in watching:
                each.cancel()
            entry |= {"ended": time.monotonic(), "asked": asked.decode("utf-8", "replace")}
            entry |= _read_meters(bytes(answered))

    def _split_engine(
        self, scope: MutableMapping[str, Any]
    ) -> tuple[str, MutableMapping[str, Any]]:
        """Tell which engine asks, and what the cloud is asked for."""
        engine, _, rest = scope["path"].removeprefix("/").partition("/")
        if not engine.startswith(ENGINE_PREFIX):
            return self._owners.find_owner(scope["client"][1]), scope
        raw = scope["raw_path"].removeprefix(f"/{engine}".encode())
        return engine, {**scope, "path": f"/{rest}", "raw_path": raw}


def _read_meters(answered: bytes) -> dict[str, Any]:
    """Read what an answer says that it was metered by."""
    try:
        answer = json.loads(answered)
    except ValueError:
        return {}
    found = {name: answer[name] for name in ("id", "model", "usage") if name in answer}
    if "extra_info" in answer:
        found["characters"] = answer["extra_info"]["usage_characters"]
    return found


async def _send_json(send: Send, content: object) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(content).encode()})


def main() -> None:
    """Serve until it is killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--latency-ms", type=float, required=True)
    given = parser.parse_args()
    app: Any = LedgerKeeper(create_app(latency_ms=given.latency_ms), given.port)
    uvicorn.run(app, host="127.0.0.1", port=given.port, log_level="warning")


if __name__ == "__main__":
    main()
