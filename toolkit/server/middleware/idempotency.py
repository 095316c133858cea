"""`Idempotency-Key`: a request that is sent again gets the same answer and has no second effect."""

import asyncio
import hashlib
import re
from dataclasses import replace

from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolkit.contract.account import answers_with_key
from toolkit.contract.errors import Detail, ErrorCode, RequestError, ToolkitError
from toolkit.contract.ids import Prefix
from toolkit.engine import Engine
from toolkit.engine.concurrency.keyed_lock import KeyedLock
from toolkit.engine.request_context import IdempotencyClaim
from toolkit.engine.services.idempotency import StoredResponse
from toolkit.server.auth import authenticate_request, check_scope
from toolkit.server.errors import render_error
from toolkit.server.http.envelope import render_resource
from toolkit.store import Content, iter_chunks

HEADER = "idempotency-key"
# A POST to these paths changes nothing, so a key that may only read may send it.
READ_ONLY_PATHS = frozenset({"/v1/route"})
_PRINTABLE = re.compile(r"[\x20-\x7e]{1,255}")
_BOUNDARY = re.compile(r'boundary="?([^";,]+)')
# These are accepted (202) and done later; all else is created (201) by the time of the answer.
_ACCEPTED_PREFIXES = frozenset({Prefix.RUN, Prefix.JOB, Prefix.WORKFLOW, Prefix.TASK, Prefix.PLAN})


def is_exempt(path: str) -> bool:
    """Tell whether a path's answers are not replayed: that would mean storing the keys in them."""
    return answers_with_key(path.removeprefix("/v1"))


class IdempotencyMiddleware:
    """ASGI middleware that answers a key's request once, and then with the same answer."""

    def __init__(self, app: ASGIApp, engine: Engine) -> None:
        self._app = app
        self._engine = engine
        self._locks = KeyedLock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        try:
            key = _read_key(Headers(scope=scope))
            if key is None or is_exempt(scope["path"]):
                await self._app(scope, receive, send)
                return
            response = await self._respond(key, scope, receive)
        except ToolkitError as error:
            response = render_error(error, scope["state"]["request_id"])
        await response(scope, receive, send)

    async def _respond(self, key: str, scope: Scope, receive: Receive) -> Response:
        """Return the answer, be it the first one or the one that was given before.

        Raises:
            RequestError: `UNAUTHENTICATED`, `FORBIDDEN`, `PAYLOAD_TOO_LARGE`,
                `IDEMPOTENCY_CONFLICT` for a key that asked for something else.
        """
        caller = await authenticate_request(scope, self._engine)
        # Otherwise a stored answer would be shown to a key that could not have asked for it.
        check_scope(caller, "read" if scope["path"] in READ_ONLY_PATHS else "write")
        body = scope["state"].get("body")
        if body is None:
            body = await _read_body(receive, self._engine.settings.body_limit_bytes)
        claim = IdempotencyClaim(
            id=f"{caller.account_id}:{hashlib.sha256(key.encode()).hexdigest()}",
            account_id=caller.account_id,
            fingerprint=await _compute_fingerprint(scope, body),
            render_response=_render_accepted,
        )
        async with self._locks.hold(claim.id):
            known = await self._engine.idempotency.find(claim)
            if known is None:
                scope["state"]["caller"] = replace(caller, claim=claim)
                response = await self._respond_first(claim, scope, receive, body)
                if not claim.is_lost:
                    return response
                known = await self._engine.idempotency.find(claim)
        return _replay_response(claim, known)

    async def _respond_first(
        self, claim: IdempotencyClaim, scope: Scope, receive: Receive, body: Content
    ) -> Response:
        """Have the request answered, and store the answer unless it is a refusal."""
        answer = _CapturedResponse()
        again = _replay_body(body) if isinstance(body, bytes) else receive
        await self._app(scope, again, answer)
        response = answer.to_response()
        if 200 <= response.status_code < 300 and not claim.is_lost:
            await self._engine.idempotency.save(
                claim, response.status_code, bytes(response.body).decode()
            )
        return response


class _CapturedResponse:
    """A response that is held back until it is complete."""

    def __init__(self) -> None:
        self._head: Message = {}
        self._body = b""

    async def __call__(self, message: Message) -> None:
        """Take the next ASGI message of it."""
        if message["type"] == "http.response.start":
            self._head = message
        else:
            self._body += message.get("body", b"")

    def to_response(self) -> Response:
        """Return the complete response."""
        response = Response(self._body, self._head["status"])
        response.raw_headers = list(self._head["headers"])
        return response


def _read_key(headers: Headers) -> str | None:
    """Read the key of a request; none where it has none.

    Raises:
        RequestError: `INVALID_REQUEST` for one that is empty or no text, and for two of them.
    """
    given = headers.getlist(HEADER)
    if not given:
        return None
    if len(given) > 1 or not _PRINTABLE.fullmatch(given[0]):
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "Send one Idempotency-Key of 1 to 255 printable characters.",
            details=[Detail("Idempotency-Key", "is given twice" if given[1:] else "is no key")],
        )
    return given[0]


async def _read_body(receive: Receive, limit: int) -> bytes:
    """Read the body, refusing it before it is read whole when it is too large."""
    chunks, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > limit:
            raise RequestError(ErrorCode.PAYLOAD_TOO_LARGE)
        more = message.get("more_body", False)
    return b"".join(chunks)


def _replay_body(body: bytes) -> Receive:
    """Return a `receive` that gives the body again, and then waits as for a disconnect."""
    sent = False

    async def receive() -> Message:
        nonlocal sent
        if sent:
            await asyncio.Event().wait()  # until the waiting task is cancelled
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def _compute_fingerprint(scope: Scope, body: Content) -> str:
    """Hash what a request asks for; a form's boundary is left out, as it is drawn anew."""
    kind, left_out = Headers(scope=scope).get("content-type", ""), b""
    boundary = _BOUNDARY.search(kind)
    if boundary is not None:
        kind, left_out = "form", boundary.group(1).encode("latin-1")
    head = f"{scope['path']}?{scope['query_string'].decode('latin-1')} {kind}\n".encode()
    if isinstance(body, bytes):
        return _hash_body(head, body, left_out)
    return await asyncio.to_thread(_hash_body, head, body, left_out)


def _hash_body(head: bytes, body: Content, left_out: bytes) -> str:
    """Hash a head and a body with SHA-256, without a given word wherever it is in the body."""
    digest, before = hashlib.sha256(head), b""
    for piece in iter_chunks(body):
        *whole, last = (before + piece).split(left_out) if left_out else (bytes(piece),)
        for part in whole:
            digest.update(part)
        # The end of a piece may be the beginning of the word.
        cut = max(0, len(last) - max(0, len(left_out) - 1))
        digest.update(last[:cut])
        before = last[cut:]
    digest.update(before)
    return digest.hexdigest()


def _render_accepted(record: BaseModel) -> tuple[int, str]:
    """Render the response of a record that was just accepted."""
    prefix = str(getattr(record, "id", "")).partition("_")[0]
    response = render_resource(record, 202 if prefix in _ACCEPTED_PREFIXES else 201)
    return response.status_code, bytes(response.body).decode()


def _replay_response(claim: IdempotencyClaim, known: StoredResponse | None) -> Response:
    """Replay the response that was given before."""
    if known is None or known.fingerprint != claim.fingerprint:
        raise RequestError(ErrorCode.IDEMPOTENCY_CONFLICT)
    return Response(
        known.body,
        known.status,
        {"Idempotency-Replayed": "true"},
        media_type="application/json",
    )
