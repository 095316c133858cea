"""What failed in a trial, when, and whose calls it cut off."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

# A request that was sent may reach the vendor so much later, on a busy machine.
ON_ITS_WAY_S = 0.2
# So long an answer may take to be written down while nothing fails: a hundredth take 0.25 seconds,
# and more where other tests run beside.
WRITTEN_S = 1.0


@dataclass
class Strike:
    """A fault, by the monotonic clock.

    Attributes:
        kind: what it was.
        at, over: from when to when it struck.
        engines: those whose calls it cut off, by the names that the vendor has them by; none where
            it was what all of them share.
        mended: until when what it struck was held up; when that is planned to end, until it has.
        lasts: whether it is mended later.
        is_instant: whether only what was in flight as it struck is cut off: an engine that is dead
            or stands still begins no call. Else what begins until it is mended may be, too.
    """

    kind: str
    at: float
    over: float = math.inf
    engines: frozenset[str] = frozenset()
    mended: float = math.inf
    lasts: bool = False
    is_instant: bool = True

    def hits(self, engine: str) -> bool:
        """Tell whether it hit an engine."""
        return not self.engines or engine in self.engines

    def cuts_off(self, engine: str, began: float, done: float) -> bool:
        """Tell whether it cut a call off: whether that was of an engine it hit, and in flight.

        Args:
            engine: whose call it was; empty where that died as the vendor got it.
            began: when the vendor got it.
            done: when its answer was written down at the latest.
        """
        if not engine:
            earliest, latest = self.at - ON_ITS_WAY_S, self.over + ON_ITS_WAY_S
            return not self.lasts and earliest <= began <= latest
        until = self.over if self.is_instant else self.mended
        return self.hits(engine) and began <= until + ON_ITS_WAY_S and done >= self.at


def find_done(engine: str, ended: float, checked_s: float, strikes: Iterable[Strike]) -> float:
    """Find by when an answer was written down at the latest, had its engine lived.

    Args:
        engine: whose call it was.
        ended: when the vendor had answered.
        checked_s: how long the answer is looked at before.
        strikes: what may have held it up. What hit the engine may have held up what was held up by
            another strike; another engine, which stands still in a transaction, has rows locked.
    """
    soon = done = ended + checked_s + WRITTEN_S
    for strike in sorted(strikes, key=lambda one: one.at):
        is_in_time = strike.at <= (done if strike.hits(engine) else soon)
        if strike.lasts and is_in_time and strike.mended >= ended:
            done = max(done, strike.mended + WRITTEN_S)
    return done
