"""Operations over HTTP: a request is read, carried out and answered by the table."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.operations.definitions import ApiOperation
from toolkit.engine import Engine
from toolkit.server.calls import ANONYMOUS, ApiCall
from toolkit.server.handlers import accept, dispatch, hold
from toolkit.server.http.body import check_media_type, read_bytes
from toolkit.server.http.downloads import DownloadReader
from toolkit.server.http.events import respond_events
from toolkit.server.http.idempotency import IdempotentResponder, read_idempotency_key
from toolkit.server.http.responses import render_page, render_resource
from toolkit.server.http.uploads import UploadReader
from toolkit.server.load_shedding import InFlightLimit
from toolkit.server.operations import admit, answer_page, take_body
from toolkit.store import Content, FileSection

MAX_WAIT_S = 60
MAX_DIGITS = 16  # of a number that is parsed at all
# A preference (RFC 7240), its value and its parameters: a comma in quotes does not end it.
_PREFERENCE = re.compile(
    r"""(?:^|,)\s*(?P<name>[^\s,;="]+)\s*(?:=\s*(?P<value>"[^"]*"|[^\s,;"]*))?"""
    r"""(?:"[^"]*"|[^,"])*+"""
)


class OperationResponder:
    """Answers requests for operations: the only path from HTTP to a handler and back."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._idempotent = IdempotentResponder(engine)
        self._uploads = UploadReader(engine)
        self._downloads = DownloadReader(engine)
        # Without a bound, requests for work queue in the event loop, and each waits for all.
        # An account gets half of the places, so that its burst leaves room for other accounts.
        self._accepting = InFlightLimit(
            max(1, engine.settings.max_admitting // 2),
            ErrorCode.UNAVAILABLE,
            "The server cannot accept more requests for work at once: retry in a moment.",
            retry_after_s=1.0,
            in_all=engine.settings.max_admitting,
        )

    async def respond(self, operation: ApiOperation[Any, Any], request: Request) -> Response:
        """Answer one HTTP request for an operation: check the caller, read the body, carry it out.

        Raises:
            RequestError: if the request is rejected.
            ServiceError: if it cannot be answered now.
        """
        address = request.client.host if request.client else ""
        call = await admit(
            ApiCall(operation, self._engine, ANONYMOUS, None, request.state.match.id, address),
            read_bearer(request) if operation.scope is not None else "",
            request.query_params.multi_items() if request.scope["query_string"] else (),
            partial(setattr, request.state, "caller"),
        )
        key = read_idempotency_key(request.headers) if operation.method == "POST" else None
        if not operation.replays:
            key = None  # an invalid key was rejected all the same
        if operation.uploads:
            async with self._uploads.receive(request, call.context) as file:
                return await self._answer_once(request, call, file, key)
        body = await self._receive_body(request, operation, is_compared=key is not None)
        return await self._answer_once(request, call, body, key)

    async def _receive_body(
        self, request: Request, operation: ApiOperation[Any, Any], *, is_compared: bool
    ) -> bytes:
        """Receive the body as it was sent; empty if nothing needs it, `{}` if it was left out.

        It is needed as input, or to compare requests with one idempotency key.
        """
        if operation.body is None and not is_compared:
            return b""
        if operation.body is not None and not operation.may_omit_body:
            check_media_type(request, "application/json")
        body = await read_bytes(request, self._engine.settings.body_limit_bytes)
        if operation.may_omit_body:
            if body:
                check_media_type(request, "application/json")
            body = body or b"{}"
        return body

    async def _answer_once(
        self, request: Request, call: ApiCall[Any], body: Content, key: str | None
    ) -> Response:
        """Answer a request; with an idempotency key, a repetition gets the first answer again."""
        answer = partial(self._answer, request, body)
        if key is None:
            return await answer(call)
        return await self._idempotent.respond(request, call, key, body, answer)

    async def _answer(self, request: Request, body: Content, call: ApiCall[Any]) -> Response:
        """Have the operation carried out, and render its result."""
        operation = call.operation
        if operation.holds:
            return await self._answer_work(request, call, body)
        if operation.form == "events":
            return await respond_events(request, call)
        call = await self._take_input(request, call, body)
        result = await dispatch(call)
        if operation.form == "bytes":
            return await self._downloads.respond(request, call.context, result)
        if operation.form == "page":
            return render_page(await answer_page(call, result), operation.status)
        return render_resource(result, operation.status)

    async def _take_input(
        self, request: Request, call: ApiCall[Any], body: Content
    ) -> ApiCall[Any]:
        """Take the body as the input of a call: of an upload, the file and its metadata."""
        if isinstance(body, FileSection):
            return replace(call, input=await self._uploads.parse(request, body, call.context))
        return await take_body(call, bytes(body))

    async def _answer_work(self, request: Request, call: ApiCall[Any], body: Content) -> Response:
        """Answer with work, accepted or read: at once, or held as `Prefer: wait` asks for it."""
        account_id, preferred = call.context.account_id, read_preferences(request)
        seconds = parse_wait_s(preferred.get("wait", ""))
        applied = [] if seconds is None else [f"wait={seconds}"]
        begin: Callable[[ApiCall[Any]], Awaitable[Any]] = dispatch if seconds is None else accept
        if call.operation.method == "POST":
            if "stream" in preferred:
                applied.append("stream")
                call = replace(call, context=replace(call.context, watches_text=True))
            self._accepting.check(account_id)
            with self._accepting.hold(account_id):
                work = await begin(await self._take_input(request, call, body))
        else:
            work = call.id if seconds is not None else await dispatch(call)
        if seconds is not None:
            work = await hold(call, work, seconds)
        headers = {"Preference-Applied": ", ".join(applied)} if applied else {}
        return render_resource(work, call.operation.status, headers)


def read_bearer(request: Request) -> str:
    """Return the key that a request carries.

    Raises:
        RequestError: `UNAUTHENTICATED` if it cannot be a key.
    """
    kind, _, key = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not key.isascii() or not key.startswith("sk_live_"):
        raise RequestError(ErrorCode.UNAUTHENTICATED)
    return key.strip()


def read_preferences(request: Request) -> dict[str, str]:
    """Read the preferences of a request, by name; of equal names the first counts."""
    preferences: dict[str, str] = {}
    for preference in _PREFERENCE.finditer(", ".join(request.headers.getlist("prefer"))):
        preferences.setdefault(preference["name"].lower(), (preference["value"] or "").strip('"'))
    return preferences


def parse_wait_s(value: str) -> int | None:
    """Parse the N of `Prefer: wait=N`, at most MAX_WAIT_S; None if it is no number of seconds.

    A preference that cannot be met is ignored, not rejected (RFC 7240, 2); `Preference-Applied` in
    the response reports the applied preference.
    """
    if not re.fullmatch(r"\d+", value, re.A):
        return None
    return min(int(value), MAX_WAIT_S) if len(value) <= MAX_DIGITS else MAX_WAIT_S
