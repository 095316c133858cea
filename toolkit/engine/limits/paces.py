"""Paces: limits on requests or tokens a minute for all engines of a deployment together."""

import asyncio
import time
from collections.abc import Mapping
from functools import partial

from toolkit.contract.errors import ServiceError
from toolkit.engine.concurrency.token_buckets import MAX_AHEAD_S, UnitPace
from toolkit.engine.limits.deployment import Deployment, SharedRow
from toolkit.store import LimitDocument

# Calls arrive at a vendor less evenly than they leave: a little of its limit is left unused.
MARGIN = 0.98
# The minimum time between two calls, as a fraction of the average.
LEAST_GAP = 0.85


class SharedPaces(SharedRow):
    """The limits on one connection's requests and tokens a minute, for all engines together.

    Args:
        row_id: id of the row that the engines share.
        paces: the paces of the connection's vendor, by the name of the unit.
        deployment: the engines.
    """

    def __init__(self, row_id: str, paces: Mapping[str, UnitPace], deployment: Deployment) -> None:
        super().__init__(row_id, deployment)
        self._paces = paces
        # Until when units are used up, by this engine or by all known ones; monotonic clock.
        self._used_until: dict[str, float] = {}
        self._left_at = 0.0  # when the last call was made, or will be

    async def wait(self, units: Mapping[str, float]) -> None:
        """Wait until a call may be made that uses the given number of units of each kind."""
        sizes = {name: units[name] for name in self._paces if units.get(name)}
        if not sizes:
            return
        await _sleep_until(await self._take(sizes))
        if "requests" in sizes:
            # Calls that were delayed meanwhile must not all start at once.
            gap_s = LEAST_GAP / self._paces["requests"].per_s
            self._left_at = max(time.monotonic(), self._left_at + gap_s)
            await _sleep_until(self._left_at)

    async def _take(self, sizes: Mapping[str, float]) -> float:
        """Take units; return the time from when they may be used, by the monotonic clock.

        Without the store, this engine takes only an equal share of each limit.
        """
        if not self._deployment.is_alone:
            try:
                start, times = await self._change(
                    partial(self._take_shared, sizes, self._share_used())
                )
            except ServiceError:
                # Other engines' use is unknown without the store: each takes an equal share.
                sizes = {name: n * len(self._deployment.engines) for name, n in sizes.items()}
            else:
                self._learn(times)
                return self._deployment.to_local(start)
        return self._take_here(sizes)

    def _take_here(self, sizes: Mapping[str, float]) -> float:
        at = time.monotonic()
        starts = [at]
        for name, units in sizes.items():
            start, self._used_until[name] = self._paces[name].take(
                self._used_until.get(name), at, units
            )
            starts.append(start)
        return max(starts)

    def _take_shared(
        self,
        sizes: Mapping[str, float],
        own_times: Mapping[str, float],
        document: LimitDocument,
        at: float,
    ) -> tuple[float, dict[str, float]]:
        """Take units in the shared row; return when they may be used, and the row's times.

        Args:
            sizes: the number of units of each kind.
            own_times: times until which units are used up, if the row has none.
            document: the document of the row.
            at: the store's time.
        """
        times = document.setdefault("used_until", {})
        starts = [at]
        for name, units in sizes.items():
            previous = times.get(name, own_times.get(name))
            start, times[name] = self._paces[name].take(previous, at, units)
            starts.append(start)
        return max(starts), dict(times)

    def adjust(self, name: str, units: float) -> None:
        """Correct a unit's count by the excess that a call used; if negative, give units back."""
        pace = self._paces.get(name)
        if pace is None or not units:
            return
        used_until = self._used_until.get(name, time.monotonic())
        self._used_until[name] = used_until + units / pace.per_s
        self._change_later(partial(self._adjust, name, units))

    def _adjust(self, name: str, units: float, document: LimitDocument, at: float) -> None:
        times = document.setdefault("used_until", {})
        times[name] = times.get(name, at) + units / self._paces[name].per_s

    def _share_used(self) -> dict[str, float]:
        return {name: self._deployment.to_shared(at) for name, at in self._used_until.items()}

    def note_engines(self) -> None:
        """Publish the units that this engine used to the others, as it may have been alone."""
        if self._used_until:
            self._change_later(partial(_raise_used, self._share_used()))

    def read_row(self, document: LimitDocument) -> None:
        """Update the used units from the row after any engine has changed it."""
        self._learn(document.get("used_until", {}))

    def _learn(self, times: Mapping[str, float]) -> None:
        for name, at in times.items():
            self._used_until[name] = self._deployment.to_local(at)


async def _sleep_until(at: float) -> None:
    """Sleep until a time of the monotonic clock."""
    left_s = at - time.monotonic()
    if left_s > 0:
        await asyncio.sleep(left_s)


def _raise_used(own_times: Mapping[str, float], document: LimitDocument, at: float) -> None:
    """Raise the times until which units are used up in a row to those that this engine knows."""
    times = document.setdefault("used_until", {})
    for name, until in own_times.items():
        previous = times.get(name, at)
        times[name] = max(previous if previous <= at + MAX_AHEAD_S else at, until)
