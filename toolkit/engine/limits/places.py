"""Places: how many calls of a connection the engines of a deployment may have in flight."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from toolkit.contract.errors import ServiceError
from toolkit.engine.concurrency.fair_semaphore import FairSemaphore
from toolkit.engine.limits.deployment import Deployment, SharedRow
from toolkit.store import LimitDocument

# The interval at which an engine asks again for places that other engines hold.
RETRY_INTERVAL_S = 0.05
# An engine at its fair share asks again only after this many intervals, because other engines'
# demand is read with all changes anyway.
CONTENT_INTERVALS = 5
# With fewer places than engines, each engine keeps a place for this long, then the next has it.
TURN_S = 0.5
# An engine without a sign of life for this long, and not found by others, has no places.
SILENCE_S = 1.0


class PlaceClaim(NamedTuple):
    """An engine's claim to places, as stored in the row.

    Attributes:
        held: number of places that the engine may use.
        wanted: number of places that it could use.
        since: store time at which it got its first place or began to wait for it.
        at: store time of the claim.
    """

    held: int
    wanted: int
    since: float
    at: float


def share_fairly(limit: int, wanted: Mapping[str, int], order: Sequence[str]) -> dict[str, int]:
    """Share places by max-min fairness: spare places go to engines that want more.

    >>> share_fairly(8, {"a": 1, "b": 9, "c": 5}, ["a", "b", "c"])
    {'a': 1, 'b': 4, 'c': 3}
    """
    shares = dict.fromkeys(order, 0)
    left = limit
    while left > 0:
        open_to_more = [engine for engine in order if shares[engine] < wanted[engine]]
        if not open_to_more:
            break
        each = max(1, left // len(open_to_more))
        for engine in open_to_more:
            more = min(each, wanted[engine] - shares[engine], left)
            shares[engine] += more
            left -= more
    return shares


@dataclass(frozen=True, slots=True)
class PlaceShare:
    """An engine's share of the places.

    Attributes:
        held: number of places that the engine holds.
        fair: its fair share, given the wishes of all engines.
        is_contended: whether another engine has less than its fair share, or too many are held.
    """

    held: int
    fair: int
    is_contended: bool


def find_share(claims: Mapping[str, PlaceClaim], engine: str, limit: int, at: float) -> PlaceShare:
    """Find the places that an engine holds and its fair share, given all claims."""
    order = sorted(claims, key=lambda one: _make_turn_key(one, claims[one], at))
    fair = share_fairly(limit, {one: claims[one].wanted for one in claims}, order)
    lacking = any(claims[one].held < fair[one] for one in claims if one != engine)
    # An engine that others considered dead may be back.
    lacking |= sum(claim.held for claim in claims.values()) > limit
    return PlaceShare(claims[engine].held, fair[engine], lacking)


def _make_turn_key(engine: str, claim: PlaceClaim, at: float) -> tuple[bool, bool, float, str]:
    has_turn = claim.held > 0 and at - claim.since < TURN_S
    return not has_turn, claim.held > 0, claim.since, engine


class SharedPlaces(SharedRow):
    """The places of a connection; this engine's part is the limit of a semaphore.

    Args:
        row_id: id of the row that the engines share.
        limit: number of places of the connection.
        semaphore: the semaphore that admits as many calls as this engine holds places.
        deployment: the engines.
    """

    def __init__(
        self, row_id: str, limit: int, semaphore: FairSemaphore, deployment: Deployment
    ) -> None:
        super().__init__(row_id, deployment)
        self._limit = limit
        self._semaphore = semaphore
        self._share = PlaceShare(0, 0, is_contended=False)
        self._asked_for = 0  # places, as last published to the others
        # The most places wanted at once since the last tick, and in the interval before it.
        self._peak = self._earlier_peak = 0
        self._asking: asyncio.Task[None] | None = None
        self._is_shared = not deployment.is_alone
        semaphore.set_limit(0 if self._is_shared else limit)

    def set_limit(self, limit: int) -> None:
        """Set the number of places for all engines."""
        self._limit = limit
        self._asked_for = min(self._asked_for, self._share.held)  # was for the old limit
        if not self._is_shared:
            self._semaphore.set_limit(limit)

    async def acquire(self, group: str) -> None:
        """Wait for a place; groups are served round-robin."""
        if self._is_shared:
            self._peak = max(self._peak, self._count_wanted() + 1)
            if self._semaphore.is_full:
                self._ask()
        await self._semaphore.acquire(group)
        while await self._deployment.catch_up():
            self._semaphore.release(group)
            await self._semaphore.acquire(group)

    def release(self, group: str) -> None:
        """Release a place; if other engines lack places, they get it."""
        self._semaphore.release(group)
        if self._is_shared and self._is_to_shrink():
            self._ask()

    def _count_wanted(self) -> int:
        return self._semaphore.used_count + self._semaphore.waiting_count

    def _find_wanted(self) -> int:
        return max(self._peak, self._earlier_peak, self._count_wanted())

    def _find_target(self) -> int:
        """Find the number of places that this engine should hold."""
        wanted = self._find_wanted()
        if self._share.is_contended:
            return min(wanted, self._share.fair)
        return wanted + wanted // 2  # some in advance, so that not every call must ask

    def _is_to_shrink(self) -> bool:
        """Check whether places are held that others lack, or many more than are wanted."""
        most = self._find_target() if self._share.is_contended else self._find_wanted() * 2
        return self._share.held > max(self._semaphore.used_count, most)

    def _ask(self) -> None:
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask_until_satisfied())

    async def _ask_until_satisfied(self) -> None:
        """Publish the number of wanted places until the engine holds as many as it may."""
        try:
            while self._is_shared:
                await self._exchange()
                if not (self._semaphore.is_full and self._semaphore.waiting_count):
                    break
                await self._pause()
        finally:
            self._asking = None

    async def _pause(self) -> None:
        """Pause before asking the others again: longer if this engine has its share."""
        for _ in range(CONTENT_INTERVALS):
            await asyncio.sleep(RETRY_INTERVAL_S)
            if self._may_get_more() or self._is_to_shrink():
                break

    def _may_get_more(self) -> bool:
        """Check whether this engine might get more places at once."""
        held = self._share.held
        # It holds all that it asked for, and wants more by now.
        has_new_wish = held >= self._asked_for < self._find_wanted()
        return held < max(1, self._share.fair) or has_new_wish

    async def _exchange(self) -> None:
        """Give back places that are not needed, and take the needed places that are free."""
        semaphore, target = self._semaphore, self._find_target()
        # Lower the limit first: another engine may take a place before this engine knows.
        semaphore.set_limit(min(semaphore.limit, target))
        kept = max(semaphore.limit, semaphore.used_count)
        wanted = self._find_wanted() if self._share.is_contended else target
        self._asked_for = wanted
        change = partial(self._claim, kept, semaphore.used_count, wanted)
        try:
            share = await self._change(change)
        except ServiceError:
            # Other engines' places are unknown without the store: each takes an equal share.
            part = max(1, self._limit // len(self._deployment.engines))
            share = PlaceShare(part, part, is_contended=True)
        if self._is_shared:
            self._share = share
            semaphore.set_limit(min(share.held, share.fair) if share.is_contended else share.held)

    def _claim(
        self, kept: int, used: int, wanted: int, document: LimitDocument, at: float
    ) -> PlaceShare:
        """Claim places in the shared row.

        Places that are kept stay this engine's, unless others considered it dead meanwhile.
        """
        me = self._deployment.engine_id
        limits = document["limits"] = self._read_limits(document)
        limit = max(limits.values())
        wanted = min(wanted, limit)
        claims = self._read_claims(document, at)
        before = claims.get(me)
        if before is None:
            kept = used
        since = at if before is None or (before.held > 0) != (kept > 0) else before.since
        claims[me] = PlaceClaim(kept, max(wanted, kept), since, at)
        share = find_share(claims, me, limit, at)
        free = limit - sum(claim.held for claim in claims.values())
        held = kept + max(0, min(share.fair - kept, free))
        if held and not kept:
            since = at
        claims[me] = PlaceClaim(held, max(wanted, held), since, at)
        if not claims[me].wanted:
            del claims[me]
        document["places"] = claims
        return PlaceShare(held, share.fair, share.is_contended)

    def _read_limits(self, document: LimitDocument) -> dict[str, int]:
        """Read the number of places that each present engine states; this engine's is current.

        The largest applies: an engine that has not seen the connection answer begins with few.
        """
        told: dict[str, int] = document.get("limits", {})
        here = self._deployment.engines
        others = {engine: limit for engine, limit in told.items() if engine in here}
        return {**others, self._deployment.engine_id: self._limit}

    def _read_claims(self, document: LimitDocument, at: float) -> dict[str, PlaceClaim]:
        """Read the claims of the engines that are there."""
        claims = {e: PlaceClaim(*told) for e, told in document.get("places", {}).items()}
        return {
            engine: claim
            for engine, claim in claims.items()
            if engine in self._deployment.engines or 0 <= at - claim.at < SILENCE_S
        }

    def note_engines(self) -> None:
        """Share the places with the other engines, or take all of them if this engine is alone."""
        is_shared = not self._deployment.is_alone
        if is_shared == self._is_shared:
            return
        self._is_shared = is_shared
        used = self._semaphore.used_count
        self._share = PlaceShare(used if is_shared else 0, 0, is_contended=False)
        self._semaphore.set_limit(used if is_shared else self._limit)
        if is_shared and self._count_wanted():
            self._ask()

    def read_row(self, document: LimitDocument) -> None:
        """Give back places that other engines lack."""
        at = max((one[3] for one in document.get("places", {}).values()), default=0.0)
        claims = self._read_claims(document, at)
        me = self._deployment.engine_id
        if self._is_shared and me not in claims and self._semaphore.limit:
            self._semaphore.set_limit(0)
            self._ask()
        elif self._is_shared and me in claims:
            share = find_share(claims, me, max(self._read_limits(document).values()), at)
            self._share = PlaceShare(self._share.held, share.fair, share.is_contended)
            if self._is_to_shrink():
                self._ask()

    def tick(self) -> None:
        """Give back places that were not needed lately."""
        self._earlier_peak, self._peak = self._peak, self._count_wanted()
        if self._is_shared and self._is_to_shrink():
            self._ask()
