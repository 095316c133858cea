"""Rates of requests, such as those of one API key, by all engines of a deployment together."""

import asyncio
import math
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import partial

from toolkit.contract.errors import ServiceError
from toolkit.engine.concurrency.token_buckets import MAX_BUCKETS, TokenBuckets, UnitPace
from toolkit.engine.limits.deployment import Deployment
from toolkit.store import LimitDocument

# An engine takes as many requests in advance as it recently used in this time, and gives unused
# requests back.
CHUNK_S = 0.5
# Maximum part of a burst that an engine takes in advance, so that others get their part.
MAX_CHUNK_SHARE = 8


@dataclass(slots=True)
class _Advance:
    """The requests of a name that this engine has taken in advance; times are monotonic.

    Attributes:
        taken_at: time at which it last took requests.
        available: number of them that may still be used, until `expires_at`.
        requests: number of requests since then.
        used_until: time until which the shared bucket is used up, as known.
        refused_until: time of the next possible request after none was left.
        lock: the lock held by the request that takes more; all others wait for it.
    """

    taken_at: float
    available: int = 0
    expires_at: float = 0.0
    requests: int = 0
    used_until: float = 0.0
    refused_until: float = 0.0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class RequestRates:
    """The rate of requests of each name: a number a second, and a burst after a pause.

    Args:
        kind: kind of the names, such as `requests`.
        per_s: requests a second.
        burst: requests at once after a pause.
        deployment: the engines.
    """

    def __init__(self, kind: str, per_s: float, burst: int, deployment: Deployment) -> None:
        self._kind = kind
        self._deployment = deployment
        self._pace = UnitPace(per_s, float(burst))
        self._max_chunk = max(1, burst // MAX_CHUNK_SHARE)
        self._buckets = TokenBuckets(self._pace)
        self._advances: OrderedDict[str, _Advance] = OrderedDict()
        deployment.watch_engines(self._note_engines)

    async def acquire_delay_s(self, name: str) -> float:
        """Count a request and return 0, or return the seconds until there may be one."""
        if self._deployment.is_alone:
            if advance := self._advances.pop(name, None):  # continue from the shared bucket
                self._buckets.set_used(
                    name, advance.used_until - advance.available / self._pace.per_s
                )
            return self._buckets.acquire_delay_s(name)
        advance = self._find_advance(name)
        advance.requests += 1
        async with advance.lock:
            at = time.monotonic()
            if not advance.available or at >= advance.expires_at:
                if advance.refused_until > at:
                    return advance.refused_until - at
                try:
                    wait_s = await self._take(name, advance)
                except ServiceError:
                    return self._buckets.acquire_delay_s(name)  # this engine's own buckets
                if wait_s:
                    advance.refused_until = time.monotonic() + wait_s
                    return wait_s
            advance.available -= 1
            return 0.0

    def _note_engines(self) -> None:
        """Publish the used requests to the other engines if this engine was alone."""
        if self._deployment.is_alone:
            return
        for name, spent in self._buckets.drain_all().items():
            change = partial(self._take_shared, 0, -spent)
            self._deployment.change_row_later(f"{self._kind}:{name}", change)

    def _find_advance(self, name: str) -> _Advance:
        advance = self._advances.pop(name, None) or _Advance(time.monotonic() - CHUNK_S)
        self._advances[name] = advance
        if len(self._advances) > MAX_BUCKETS:
            self._advances.popitem(last=False)
        return advance

    async def _take(self, name: str, advance: _Advance) -> float:
        """Take requests in advance; return 0, or the seconds until the next if none is left."""
        at = time.monotonic()
        recent = advance.requests * CHUNK_S / max(at - advance.taken_at, 1e-3)
        chunk = max(1, min(self._max_chunk, math.ceil(recent)))
        unused, advance.available = advance.available, 0
        advance.requests, advance.taken_at = 0, at
        advance.available, wait_s, used_until = await self._deployment.change_row(
            f"{self._kind}:{name}", partial(self._take_shared, chunk, unused)
        )
        advance.used_until = self._deployment.to_local(used_until)
        advance.expires_at = time.monotonic() + CHUNK_S * 2
        return wait_s

    def _take_shared(
        self, chunk: int, unused: float, document: LimitDocument, at: float
    ) -> tuple[int, float, float]:
        """Take requests in the shared row; return the result of `UnitPace.take_now`.

        Args:
            chunk: the maximum number to take.
            unused: number taken earlier and given back; negative for requests that were used while
                this engine was alone and are not counted yet.
            document: the document of the row.
            at: the store's time.
        """
        used_until: float | None = document.get("used_until")
        if unused:
            used_until = self._pace.find_start(used_until, at) - unused / self._pace.per_s
        count, wait_s, document["used_until"] = self._pace.take_now(used_until, at, chunk)
        return count, wait_s, document["used_until"]
