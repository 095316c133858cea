"""The faults of a trial, with their times and the calls that they cut off."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

# Maximum time from the send of a request until the vendor receives it, on a busy machine.
ON_ITS_WAY_S = 0.2
# Maximum time of the commit of an answer without faults. A hundredth take 0.25 seconds, and more
# while other tests run.
WRITTEN_S = 1.0


@dataclass
class Strike:
    """A fault, with times of the monotonic clock.

    Attributes:
        kind: name of the fault.
        at, over: begin and end of the strike.
        engines: names of the affected engines in the vendor's ledger; empty for all engines.
        mended: end of the repair; until then, its planned end.
        lasts: True if the repair comes later.
        is_instant: True if only calls in flight at the strike are cut off, because a dead or frozen
            engine begins no call. Otherwise calls that begin before the repair may be, too.
    """

    kind: str
    at: float
    over: float = math.inf
    engines: frozenset[str] = frozenset()
    mended: float = math.inf
    lasts: bool = False
    is_instant: bool = True

    def hits(self, engine: str) -> bool:
        """Return whether the fault hit an engine."""
        return not self.engines or engine in self.engines

    def cuts_off(self, engine: str, began: float, done: float) -> bool:
        """Return whether the fault hit the engine of a call while the call was in flight.

        Args:
            engine: name of the engine; empty if it died as the vendor received the call.
            began: time at which the vendor received the call.
            done: latest time of the commit of its answer.
        """
        if not engine:
            earliest, latest = self.at - ON_ITS_WAY_S, self.over + ON_ITS_WAY_S
            return not self.lasts and earliest <= began <= latest
        until = self.over if self.is_instant else self.mended
        return self.hits(engine) and began <= until + ON_ITS_WAY_S and done >= self.at


def find_done(engine: str, ended: float, checked_s: float, strikes: Iterable[Strike]) -> float:
    """Return the latest time of the commit of an answer, if its engine lived.

    Args:
        engine: name of the engine.
        ended: time of the vendor's answer.
        checked_s: seconds for which the engine checks the answer.
        strikes: faults that may have delayed the commit. Faults of the engine add up; a fault of
            another engine, which may be frozen in a transaction with locked rows, counts once.
    """
    soon = done = ended + checked_s + WRITTEN_S
    for strike in sorted(strikes, key=lambda strike: strike.at):
        is_in_time = strike.at <= (done if strike.hits(engine) else soon)
        if strike.lasts and is_in_time and strike.mended >= ended:
            done = max(done, strike.mended + WRITTEN_S)
    return done
