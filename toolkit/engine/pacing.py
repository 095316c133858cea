"""Shares of the event loop: long work is done in slices, and leaves others the most of it."""

import asyncio
import time
from collections import OrderedDict
from types import TracebackType
from typing import Self
from weakref import WeakKeyDictionary

from toolkit.engine.limiter import FairLimiter

SLICE_S = 0.005
# While other accounts are active, an account's long work rests so many times as long as it took.
OTHERS_SHARE, MAX_REST_S = 2.0, 1.0
ACTIVE_S = 0.25  # an account that asked for something as lately as that is active
MAX_ACCOUNTS = 1_000
# A turn of the loop that took longer had something to do; for one that had not is waited so long.
IDLE_TURN_S, MAX_WAIT_S = 0.0004, 0.05
NODE_S = 0.004  # what a node takes of the loop


class _Loop:
    """What is known of one event loop.

    Attributes:
        turn: of long work, one slice at a time, whichever account's it is.
    """

    def __init__(self) -> None:
        self.turn = FairLimiter(1)
        self._active_at: OrderedDict[str, float] = OrderedDict()
        self._rests_until: OrderedDict[str, float] = OrderedDict()

    def note(self, account_id: str) -> None:
        """Note that an account has asked for something."""
        _put(self._active_at, account_id, time.monotonic())

    def charge(self, account_id: str | None, seconds: float) -> None:
        """Count what an account's long work has taken."""
        if account_id is None:
            return
        now = time.monotonic()
        since = max(now, self._rests_until.get(account_id, now))
        until = min(since + seconds * OTHERS_SHARE, now + MAX_REST_S)
        _put(self._rests_until, account_id, until)

    async def take_turn(self, account_id: str | None) -> None:
        """Wait until long work may go on: it is its turn, and nobody else has anything to do."""
        while True:
            await self.turn.acquire(account_id or "")
            try:
                rest_s = self._rest_s(account_id)
                if rest_s <= 0:
                    await self._wait_until_idle()
                    return
            except BaseException:
                self.turn.release()
                raise
            self.turn.release()
            await asyncio.sleep(rest_s)

    def _rest_s(self, account_id: str | None) -> float:
        """Tell how long an account's long work has to rest; not at all beside nobody else."""
        if account_id is None or not self.has_others(account_id):
            return 0.0
        return self._rests_until.get(account_id, 0.0) - time.monotonic()

    def has_others(self, account_id: str) -> bool:
        """Tell if an account other than this one is active."""
        since = time.monotonic() - ACTIVE_S
        for other, at in reversed(self._active_at.items()):
            if at < since:
                return False
            if other != account_id:
                return True
        return False

    @staticmethod
    async def _wait_until_idle() -> None:
        """Let turns of the loop go by until one had nothing to do."""
        began = before = time.perf_counter()
        while before - began < MAX_WAIT_S:
            await asyncio.sleep(0)
            after = time.perf_counter()
            if after - before < IDLE_TURN_S:
                return
            before = after


def _put(times: OrderedDict[str, float], account_id: str, at: float) -> None:
    """Keep the time of an account, as the latest; of the accounts so many at the most."""
    times[account_id] = at
    times.move_to_end(account_id)
    if len(times) > MAX_ACCOUNTS:
        times.popitem(last=False)


_LOOPS: "WeakKeyDictionary[asyncio.AbstractEventLoop, _Loop]" = WeakKeyDictionary()


def _get_loop() -> _Loop:
    loop = asyncio.get_running_loop()
    found = _LOOPS.get(loop)
    if found is None:
        found = _LOOPS[loop] = _Loop()
    return found


def note_activity(account_id: str) -> None:
    """Note that an account has asked for something: others' long work gives way to it."""
    _get_loop().note(account_id)


async def give_way(account_id: str) -> None:
    """Wait before one of many steps of an account's work, as long as others are active."""
    loop = _get_loop()
    if loop.has_others(account_id):
        await loop.take_turn(account_id)
        loop.charge(account_id, NODE_S)
        loop.turn.release()


class Pacer:
    """Divides one piece of long work into slices.

    The first slice is free. Whoever needs more queues with all other long work of the loop, in
    turns by account, so that one turn of the loop holds one slice, however many callers ask for
    much at once. While other accounts are active, two thirds of the loop's time are theirs: what
    an account's pieces took, the last ones that could not be divided too, its next ones wait for.

    Args:
        account_id: whose work it is; without one it only divides.

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
        self._loop = _get_loop()
        self._has_turn = False

    async def __aenter__(self) -> Self:
        """Begin the first slice."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the queue."""
        self._leave()

    async def pause(self) -> None:
        """Let others have their turns, where this slice has lasted long enough."""
        if time.perf_counter() - self._began >= SLICE_S:
            await self.end_slice()

    async def end_slice(self) -> None:
        """Let others have their turns before something that cannot be divided."""
        self._leave()
        # Without it a turn that nobody waits for would be taken again at once.
        await asyncio.sleep(0)
        await self._loop.take_turn(self._account_id)
        self._has_turn = True
        self._began = time.perf_counter()

    def _leave(self) -> None:
        self._loop.charge(self._account_id, time.perf_counter() - self._began)
        if self._has_turn:
            self._has_turn = False
            self._loop.turn.release()
