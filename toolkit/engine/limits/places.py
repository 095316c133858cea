"""Places: the limit of calls in flight by a connection, divided among a deployment's engines."""

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
    """An engine's claim to places for calls in flight, as stored in the shared row.

    Attributes:
        places: number of places that the engine may use.
        demand: number of places that it could use.
        since: store time at which it got its first place or began to wait for it.
        at: store time of the claim.
    """

    places: int
    demand: int
    since: float
    at: float


def share_fairly(limit: int, demand: Mapping[str, int], order: Sequence[str]) -> dict[str, int]:
    """Share places by max-min fairness: spare places go to engines that want more, in `order`.

    >>> share_fairly(8, {"a": 1, "b": 9, "c": 5}, ["a", "b", "c"])
    {'a': 1, 'b': 4, 'c': 3}
    """
    shares = dict.fromkeys(order, 0)
    remainder = limit
    while remainder > 0:
        open_to_more = [engine for engine in order if shares[engine] < demand[engine]]
        if not open_to_more:
            break
        portion = max(1, remainder // len(open_to_more))
        for engine in open_to_more:
            increment = min(portion, demand[engine] - shares[engine], remainder)
            shares[engine] += increment
            remainder -= increment
    return shares


@dataclass(frozen=True, slots=True)
class PlaceShare:
    """An engine's share of the places for calls in flight.

    Attributes:
        places: number of places that the engine holds.
        fair: its fair share, given the wishes of all engines.
        is_contended: whether another engine has less than its fair share, or too many are held.
    """

    places: int
    fair: int
    is_contended: bool


def find_share(claims: Mapping[str, PlaceClaim], engine: str, limit: int, at: float) -> PlaceShare:
    """Find how many places for calls an engine holds, and its fair share, given all claims."""
    order = sorted(claims, key=lambda name: _make_turn_key(name, claims[name], at))
    fair = share_fairly(limit, {name: claims[name].demand for name in claims}, order)
    is_contended = any(claims[name].places < fair[name] for name in claims if name != engine)
    # An engine that others considered dead may be back.
    is_contended |= sum(claim.places for claim in claims.values()) > limit
    return PlaceShare(claims[engine].places, fair[engine], is_contended)


def _make_turn_key(engine: str, claim: PlaceClaim, at: float) -> tuple[bool, bool, float, str]:
    has_turn = claim.places > 0 and at - claim.since < TURN_S
    return not has_turn, claim.places > 0, claim.since, engine


class SharedPlaces(SharedRow):
    """The places of a connection, one for each call in flight, which all engines share.

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
        self._requested = 0  # places, as last published to the others
        # The most places wanted at once since the last tick, and in the interval before it.
        self._peak = self._earlier_peak = 0
        self._asking: asyncio.Task[None] | None = None
        self._is_shared = not deployment.is_alone
        semaphore.set_limit(0 if self._is_shared else limit)

    def set_limit(self, limit: int) -> None:
        """Set the number of places for all engines."""
        self._limit = limit
        self._requested = min(self._requested, self._share.places)  # was for the old limit
        if not self._is_shared:
            self._semaphore.set_limit(limit)

    async def acquire(self, group: str) -> None:
        """Wait for a place, as each call in flight takes one; groups are served round-robin."""
        if self._is_shared:
            self._peak = max(self._peak, self._count_demand() + 1)
            if self._semaphore.is_full:
                self._ask()
        await self._semaphore.acquire(group)
        while await self._deployment.catch_up():
            self._semaphore.release(group)
            await self._semaphore.acquire(group)

    def release(self, group: str) -> None:
        """Release the place of an ended call, and give it to other engines if they lack places."""
        self._semaphore.release(group)
        if self._is_shared and self._is_to_shrink():
            self._ask()

    def _count_demand(self) -> int:
        return self._semaphore.used_count + self._semaphore.waiting_count

    def _find_demand(self) -> int:
        return max(self._peak, self._earlier_peak, self._count_demand())

    def _find_target(self) -> int:
        """Find the number of places that this engine should hold."""
        demand = self._find_demand()
        if self._share.is_contended:
            return min(demand, self._share.fair)
        return demand + demand // 2  # some in advance, so that not every call must ask

    def _is_to_shrink(self) -> bool:
        """Check whether places are held that others lack, or many more than are wanted."""
        ceiling = self._find_target() if self._share.is_contended else self._find_demand() * 2
        return self._share.places > max(self._semaphore.used_count, ceiling)

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
        places = self._share.places
        # It holds all that it asked for, and wants more by now.
        has_new_wish = places >= self._requested < self._find_demand()
        return places < max(1, self._share.fair) or has_new_wish

    async def _exchange(self) -> None:
        """Give back places that are not needed, and take the needed places that are free."""
        semaphore, target = self._semaphore, self._find_target()
        # Lower the limit first: another engine may take a place before this engine knows.
        semaphore.set_limit(min(semaphore.limit, target))
        places = max(semaphore.limit, semaphore.used_count)
        demand = self._find_demand() if self._share.is_contended else target
        self._requested = demand
        change = partial(self._claim, places, semaphore.used_count, demand)
        try:
            share = await self._change(change)
        except ServiceError:
            # Other engines' places are unknown without the store: each takes an equal share.
            part = max(1, self._limit // len(self._deployment.engines))
            share = PlaceShare(part, part, is_contended=True)
        if self._is_shared:
            self._share = share
            semaphore.set_limit(
                min(share.places, share.fair) if share.is_contended else share.places
            )

    def _claim(
        self, places: int, calls: int, demand: int, document: LimitDocument, at: float
    ) -> PlaceShare:
        """Claim places in the shared row, up to the fair share if free; return this engine's share.

        The engine keeps the places that it has, unless others considered it dead meanwhile.
        """
        me = self._deployment.engine_id
        limits = document["limits"] = self._read_limits(document)
        limit = max(limits.values())
        demand = min(demand, limit)
        claims = self._read_claims(document, at)
        previous = claims.get(me)
        if previous is None:
            places = calls
        since = at if previous is None or (previous.places > 0) != (places > 0) else previous.since
        claims[me] = PlaceClaim(places, max(demand, places), since, at)
        share = find_share(claims, me, limit, at)
        free = limit - sum(claim.places for claim in claims.values())
        grant = places + max(0, min(share.fair - places, free))
        if grant and not places:
            since = at
        claims[me] = PlaceClaim(grant, max(demand, grant), since, at)
        if not claims[me].demand:
            del claims[me]
        document["places"] = claims
        return PlaceShare(grant, share.fair, share.is_contended)

    def _read_limits(self, document: LimitDocument) -> dict[str, int]:
        """Read the number of places that each present engine states; this engine's is current.

        The largest applies: an engine that has not seen the connection answer begins with few.
        """
        stored_limits: dict[str, int] = document.get("limits", {})
        engines = self._deployment.engines
        peer_limits = {
            engine: limit for engine, limit in stored_limits.items() if engine in engines
        }
        return {**peer_limits, self._deployment.engine_id: self._limit}

    def _read_claims(self, document: LimitDocument, at: float) -> dict[str, PlaceClaim]:
        """Read the claims of engines that have the store open or claimed within `SILENCE_S`."""
        claims = {e: PlaceClaim(*fields) for e, fields in document.get("places", {}).items()}
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
        calls = self._semaphore.used_count
        self._share = PlaceShare(calls if is_shared else 0, 0, is_contended=False)
        self._semaphore.set_limit(calls if is_shared else self._limit)
        if is_shared and self._count_demand():
            self._ask()

    def read_row(self, document: LimitDocument) -> None:
        """Update the fair share from the row, and give back places that other engines lack.

        If this engine's claim is missing, it stops new calls and asks for places again.
        """
        at = max((fields[3] for fields in document.get("places", {}).values()), default=0.0)
        claims = self._read_claims(document, at)
        me = self._deployment.engine_id
        if self._is_shared and me not in claims and self._semaphore.limit:
            self._semaphore.set_limit(0)
            self._ask()
        elif self._is_shared and me in claims:
            share = find_share(claims, me, max(self._read_limits(document).values()), at)
            self._share = PlaceShare(self._share.places, share.fair, share.is_contended)
            if self._is_to_shrink():
                self._ask()

    def tick(self) -> None:
        """Give back places that were not needed lately."""
        self._earlier_peak, self._peak = self._peak, self._count_demand()
        if self._is_shared and self._is_to_shrink():
            self._ask()
