"""`Idempotency-Key`: a request that is sent again gets the same answer and has no second effect."""

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from toolkit.contract.errors import Detail, ErrorCode, RequestError, ServiceError
from toolkit.engine import Engine
from toolkit.engine.request_context import IdempotencyClaim, Outcome
from toolkit.server.calls import ApiCall
from toolkit.store import Content, iter_chunks

HEADER = "idempotency-key"
_PRINTABLE = re.compile(r"[\x20-\x7e]{1,255}")
_BOUNDARY = re.compile(r'boundary="?([^";,]+)')


class IdempotentResponder:
    """Answers the first request with an idempotency key, and later repeats that answer."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # By claim; a lock exists while a request holds it or waits for it.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def respond(
        self,
        request: Request,
        call: ApiCall[Any],
        key: str,
        body: Content,
        respond_first: Callable[[ApiCall[Any]], Awaitable[Response]],
    ) -> Response:
        """Return the first response, or the stored response of an earlier request.

        Args:
            request: the request.
            call: call that it asks for.
            key: idempotency key that it carries.
            body: its body, as it was sent.
            respond_first: carries out the call; its response is stored unless it is a refusal.

        Raises:
            RequestError: `IDEMPOTENCY_CONFLICT` for a key that asked for something else.
        """
        account_id = call.context.account_id
        claim = IdempotencyClaim(
            id=f"{account_id}:{hashlib.sha256(key.encode()).hexdigest()}",
            account_id=account_id,
            fingerprint=await _compute_fingerprint(request, body),
            accepted_code=call.operation.status,
        )
        claiming = replace(call, context=replace(call.context, claim=claim))
        async with self._locks.setdefault(claim.id, asyncio.Lock()):
            stored_outcome = await self._engine.idempotency.find(claim)
            if stored_outcome is None:
                try:
                    response = await respond_first(claiming)
                except ServiceError:
                    if not claim.is_lost:
                        raise
                else:
                    if not claim.is_lost:
                        outcome = Outcome(response.status_code, bytes(response.body).decode())
                        await self._engine.idempotency.save(claim, outcome)
                    if not claim.is_lost:
                        return response
                stored_outcome = await self._engine.idempotency.find(claim)
        return _replay_response(stored_outcome)


def read_idempotency_key(headers: Headers) -> str | None:
    """Read the idempotency key of a request. Returns None if there is no key.

    Raises:
        RequestError: `INVALID_REQUEST` for a key that is empty or no text, and for two keys.
    """
    keys = headers.getlist(HEADER)
    if not keys:
        return None
    if len(keys) > 1 or not _PRINTABLE.fullmatch(keys[0]):
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "Send one Idempotency-Key of 1 to 255 printable characters.",
            details=[
                Detail("Idempotency-Key", "is given twice" if keys[1:] else "is not a valid key")
            ],
        )
    return keys[0]


async def _compute_fingerprint(request: Request, body: Content) -> str:
    """Hash path, query, media type and body of a request, without a form's random boundary."""
    kind, left_out = request.headers.get("content-type", ""), b""
    boundary = _BOUNDARY.search(kind)
    if boundary is not None:
        kind, left_out = "form", boundary.group(1).encode("latin-1")
    path, query = request.scope["path"], request.scope["query_string"].decode("latin-1")
    head = f"{path}?{query} {kind}\n".encode()
    if isinstance(body, bytes):
        return _hash_body(head, body, left_out)
    return await asyncio.to_thread(_hash_body, head, body, left_out)


def _hash_body(head: bytes, body: Content, left_out: bytes) -> str:
    """Hash a head and a body with SHA-256, without a given word wherever it is in the body."""
    digest, before = hashlib.sha256(head), b""
    for piece in iter_chunks(body):
        *parts, last = (before + piece).split(left_out) if left_out else (bytes(piece),)
        for part in parts:
            digest.update(part)
        # The end of a piece may be the beginning of the word.
        cut = max(0, len(last) - max(0, len(left_out) - 1))
        digest.update(last[:cut])
        before = last[cut:]
    digest.update(before)
    return digest.hexdigest()


def _replay_response(outcome: Outcome | None) -> Response:
    if outcome is None:
        raise RequestError(ErrorCode.IDEMPOTENCY_CONFLICT)
    return Response(
        outcome.document,
        outcome.code,
        {"Idempotency-Replayed": "true"},
        media_type="application/json",
    )
