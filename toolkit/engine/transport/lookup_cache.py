"""The cache of public services' answers, kept for as long as their headers allow.

hishel knows the rules (RFC 9111); the answers are here. It is loaded by the first look-up.
"""

import time
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from email.utils import formatdate, parsedate_to_datetime
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    import hishel

MAX_CACHE_BYTES = 16 * 1024 * 1024
# An answer without any of these headers does not say how long it may be kept.
CACHE_HEADERS = frozenset({"cache-control", "expires", "etag", "last-modified"})
CONDITIONS = ("if-none-match", "if-modified-since")
ENTRY_OVERHEAD_BYTES = 4096  # of an answer without its body and the values of its headers
ENCODING = "latin-1"  # of headers, because it maps each byte to a character

SendLookup = Callable[[httpx.Request], Awaitable[httpx.Response]]
# The address and the headers: other headers make another look-up, regardless of `Vary`.
LookupKey = tuple[str, tuple[tuple[bytes, bytes], ...]]


@dataclass(slots=True)
class StoredAnswer:
    """An answer that may be used again: the headers of request and answer, and the body."""

    entry: "hishel.Entry"
    body: bytes


class LookupCache:
    """A private cache of GET requests to public services, in this process's memory.

    No account's key goes with them, so all accounts share the answers. An answer is used while its
    headers say that it is fresh, then only if the service says that it has not changed. Past
    `max_bytes` the least recently used answers are evicted.

    Args:
        max_bytes: maximum bytes of all answers together.
    """

    def __init__(self, max_bytes: int = MAX_CACHE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._size = 0
        self._answers: OrderedDict[LookupKey, StoredAnswer] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of cached answers."""
        return len(self._answers)

    async def fetch(self, request: httpx.Request, send: SendLookup) -> httpx.Response:
        """Return a fresh answer from the cache, or else the service's answer.

        Args:
            request: the look-up.
            send: asks the service and reads the whole answer.
        """
        key = str(request.url), tuple(request.headers.raw)
        answer = self._answers.get(key)
        response = await send(request) if answer is None else None
        if response is not None and CACHE_HEADERS.isdisjoint(response.headers):
            return response
        import hishel

        lookup = hishel.Request(request.method, str(request.url), _group_headers(request.headers))
        idle = hishel.IdleClient(hishel.CacheOptions(shared=False))
        state: hishel.AnyState = idle.next(lookup, [] if answer is None else [answer.entry])
        if response is not None and isinstance(state, hishel.CacheMiss):
            state = state.next(_describe_response(response))
        while True:
            match state:
                case hishel.CacheMiss() | hishel.NeedRevalidation():
                    response = await send(_add_conditions(request, state.request))
                    state = state.next(_describe_response(response))
                case hishel.InvalidateEntries():
                    self._drop(key)
                    state = state.next()
                case hishel.NeedToBeUpdated() if answer is not None:
                    answer.entry = state.updating_entries[-1]
                    state = state.next()
                case hishel.FromCache() if answer is not None:
                    if key in self._answers:  # it may have gone while the service was asked
                        self._answers.move_to_end(key)
                    return _make_response(request, state.entry.response, answer.body)
                case hishel.StoreAndUse() if response is not None:
                    self._drop(key)
                    entry = hishel.Entry(uuid.uuid4(), lookup, state.response)
                    self._keep(key, StoredAnswer(entry, response.content))
                    return response
                case hishel.CouldNotBeStored() if response is not None:
                    self._drop(key)
                    return response
                case _:
                    raise TypeError(f"{type(state).__name__} is not a state of a look-up")

    def _keep(self, key: LookupKey, answer: StoredAnswer) -> None:
        size = _measure_answer(answer)
        if size > self._max_bytes:
            return
        self._answers[key] = answer
        self._size += size
        while self._size > self._max_bytes:
            _, oldest = self._answers.popitem(last=False)
            self._size -= _measure_answer(oldest)

    def _drop(self, key: LookupKey) -> None:
        answer = self._answers.pop(key, None)
        if answer is not None:
            self._size -= _measure_answer(answer)


def _measure_answer(answer: StoredAnswer) -> int:
    headers = answer.entry.response.headers
    return len(answer.body) + ENTRY_OVERHEAD_BYTES + sum(map(len, headers.values()))


def _group_headers(headers: httpx.Headers) -> "hishel.Headers":
    """Group headers by name, as hishel takes them; any bytes may stand in them."""
    import hishel

    groups: dict[str, list[str]] = {}
    for name, value in headers.raw:
        groups.setdefault(name.decode(ENCODING).lower(), []).append(value.decode(ENCODING))
    return hishel.Headers({**groups})


def _describe_response(response: httpx.Response) -> "hishel.Response":
    """Describe an answer to hishel, dated at the earlier of its `Date` and now less its `Age`."""
    import hishel

    headers = _group_headers(response.headers)
    age = response.headers.get("age", "")
    timestamp = time.time() - (int(age[:9]) if age.isascii() and age.isdigit() else 0)
    with suppress(ValueError, OverflowError):  # without a valid date: now
        timestamp = min(timestamp, parsedate_to_datetime(headers.pop("date", "")).timestamp())
    headers["date"] = formatdate(timestamp, usegmt=True)
    return hishel.Response(response.status_code, headers)


def _add_conditions(request: httpx.Request, lookup: "hishel.Request") -> httpx.Request:
    """Return the request with headers by which the service may answer "not modified"."""
    conditions = [
        (name.encode(ENCODING), lookup.headers[name].encode(ENCODING))
        for name in CONDITIONS
        if name in lookup.headers
    ]
    return httpx.Request(request.method, request.url, headers=[*request.headers.raw, *conditions])


def _make_response(
    request: httpx.Request, cached_response: "hishel.Response", body: bytes
) -> httpx.Response:
    headers = [
        (name.encode(ENCODING), value.encode(ENCODING))
        for name in cached_response.headers
        for value in cached_response.headers.get_list(name) or ()
    ]
    return httpx.Response(
        cached_response.status_code, headers=headers, content=body, request=request
    )
