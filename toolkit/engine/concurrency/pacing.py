"""Fair use of the event loop: long work is done in slices and leaves most of it to others."""

import asyncio
import time
from collections import OrderedDict
from typing import Self
from weakref import WeakKeyDictionary

from toolkit.engine.concurrency.fair_semaphore import FairSemaphore

SLICE_S = 0.005
# While other accounts are active, an account's long work rests for this multiple of its run time.
OTHERS_SHARE, MAX_REST_S = 2.0, 1.0
ACTIVE_WINDOW_S = 0.25  # an account is active for this time after a request
MAX_ACCOUNTS = 1_000
# A longer iteration of the loop had work to do; the maximum wait for an idle iteration.
IDLE_TURN_S, MAX_WAIT_S = 0.0004, 0.05
NODE_COST_S = 0.004  # the loop's time for one node


class LoopShares:
    """The turns of long work on one event loop, and the accounts that were active on it lately."""

    def __init__(self) -> None:
        # Admits one slice of long work at a time, of any account.
        self._semaphore = FairSemaphore(1)
        self._active_at: OrderedDict[str, float] = OrderedDict()
        self._rests_until: OrderedDict[str, float] = OrderedDict()

    def note(self, account_id: str) -> None:
        """Note that an account has made a request."""
        _put_time(self._active_at, account_id, time.monotonic())

    def charge(self, account_id: str | None, seconds: float) -> None:
        """Add to the rest that an account's long work must take, by the seconds that it ran.

        Long work without an account is not charged.
        """
        if account_id is None:
            return
        now = time.monotonic()
        start = max(now, self._rests_until.get(account_id, now))
        end = min(start + seconds * OTHERS_SHARE, now + MAX_REST_S)
        _put_time(self._rests_until, account_id, end)

    async def acquire_turn(self, account_id: str | None) -> None:
        """Wait until long work may go on: it is next, has rested enough, and the loop is idle."""
        while True:
            await self._semaphore.acquire(account_id or "")
            try:
                rest_s = self._find_rest_s(account_id)
                if rest_s <= 0:
                    await self._wait_until_idle()
                    return
            except BaseException:
                self.release_turn(account_id)
                raise
            self.release_turn(account_id)
            await asyncio.sleep(rest_s)

    def release_turn(self, account_id: str | None) -> None:
        """End a turn of an account's long work, so that other long work may run."""
        self._semaphore.release(account_id or "")

    def _find_rest_s(self, account_id: str | None) -> float:
        """Return the seconds that an account's long work must still rest; 0 or less if it need not.

        It need not rest while no other account is active.
        """
        if account_id is None or not self.has_others(account_id):
            return 0.0
        return self._rests_until.get(account_id, 0.0) - time.monotonic()

    def has_others(self, account_id: str) -> bool:
        """Check whether another account has made a request within `ACTIVE_WINDOW_S`."""
        start = time.monotonic() - ACTIVE_WINDOW_S
        for active_id, at in reversed(self._active_at.items()):
            if at < start:
                return False
            if active_id != account_id:
                return True
        return False

    @staticmethod
    async def _wait_until_idle() -> None:
        """Let iterations of the loop go by until one had nothing to do, or `MAX_WAIT_S` passed."""
        began = before = time.perf_counter()
        while before - began < MAX_WAIT_S:
            await asyncio.sleep(0)
            after = time.perf_counter()
            if after - before < IDLE_TURN_S:
                return
            before = after


def _put_time(times: OrderedDict[str, float], account_id: str, at: float) -> None:
    """Store the latest time of an account; drop the oldest entry if there are too many."""
    times[account_id] = at
    times.move_to_end(account_id)
    if len(times) > MAX_ACCOUNTS:
        times.popitem(last=False)


_SHARES: "WeakKeyDictionary[asyncio.AbstractEventLoop, LoopShares]" = WeakKeyDictionary()


def get_loop_shares() -> LoopShares:
    """Return the `LoopShares` of the running event loop, made at the first call."""
    loop = asyncio.get_running_loop()
    shares = _SHARES.get(loop)
    if shares is None:
        shares = _SHARES[loop] = LoopShares()
    return shares


def note_activity(account_id: str) -> None:
    """Note that an account has made a request: the long work of others makes way for it."""
    get_loop_shares().note(account_id)


async def yield_to_others(account_id: str) -> None:
    """Wait for a turn before a step of an account's long work, if other accounts are active."""
    loop = get_loop_shares()
    if loop.has_others(account_id):
        await loop.acquire_turn(account_id)
        loop.charge(account_id, NODE_COST_S)
        loop.release_turn(account_id)


class Pacer:
    """The pacer of one piece of long work, which divides it into slices.

    The first slice is free. Work that needs more slices queues with all other long work of the
    loop, the accounts in turn. An iteration of the loop therefore holds one slice, however many
    callers ask for much at once. While other accounts are active, two thirds of the loop's time are
    theirs: an account's next slices wait in proportion to the time of its earlier slices.

    Args:
        account_id: the account that the work belongs to; without an account it is only divided.

    >>> async def add(numbers: list[int]) -> int:
    ...     total = 0
    ...     async with Pacer() as pacer:
    ...         for number in numbers:
    ...             total += number
    ...             await pacer.pause()
    ...     return total
    """

    def __init__(self, account_id: str | None = None) -> None:
        self._account_id = account_id
        self._began = time.perf_counter()
        self._shares = get_loop_shares()
        self._has_turn = False

    async def __aenter__(self) -> Self:
        """Begin the first slice."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the last slice, and release the turn."""
        self._release_turn()

    async def pause(self) -> None:
        """Let other work run if this slice has lasted for `SLICE_S`; otherwise go on at once."""
        if time.perf_counter() - self._began >= SLICE_S:
            await self.end_slice()

    async def end_slice(self) -> None:
        """End this slice and wait for the next turn; used before a step that cannot be divided."""
        self._release_turn()
        # Without it, a semaphore that nobody waits for would be acquired again at once.
        await asyncio.sleep(0)
        await self._shares.acquire_turn(self._account_id)
        self._has_turn = True
        self._began = time.perf_counter()

    def _release_turn(self) -> None:
        self._shares.charge(self._account_id, time.perf_counter() - self._began)
        if self._has_turn:
            self._has_turn = False
            self._shares.release_turn(self._account_id)
