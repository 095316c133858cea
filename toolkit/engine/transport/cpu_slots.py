"""The concurrency limit of CPU steps, with a fair share for each account."""

import asyncio
from collections import Counter, OrderedDict, deque


class CpuSlots:
    """A concurrency limit whose waiting accounts are served round-robin.

    A few slots are reserved for accounts that run no step at the moment. So an account that fills
    all other slots with long steps does not delay the first step of another account.

    >>> slots = CpuSlots(2, reserved=1)
    >>> slots.can_start("acc_1")
    True

    Args:
        limit: number of steps that run at once.
        reserved: number of further steps, each of an account that runs no other step.
    """

    def __init__(self, limit: int, reserved: int) -> None:
        self._limit = limit
        self._reserved = reserved
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    def can_start(self, account_id: str) -> bool:
        """Return True if a step of the account need not wait."""
        used = self._running.total()
        has_reserve = used < self._limit + self._reserved and not self._running[account_id]
        return used < self._limit or has_reserve

    async def acquire(self, account_id: str) -> None:
        """Wait for a slot; the steps of one account are served in their order."""
        if account_id not in self._waiting and self.can_start(account_id):
            self._running[account_id] += 1
            return
        slot = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(account_id, deque()).append(slot)
        try:
            await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled():
                self.release(account_id)  # the slot was granted just before the cancellation
            else:
                self._forget(account_id, slot)
            raise

    def release(self, account_id: str) -> None:
        """Release a slot of an account, and grant it to the account whose turn it is."""
        self._running[account_id] -= 1
        if not self._running[account_id]:
            del self._running[account_id]
        while (chosen := next(filter(self.can_start, self._waiting), None)) is not None:
            queue = self._waiting.pop(chosen)
            slot = queue.popleft()
            if queue:
                self._waiting[chosen] = queue  # behind the other accounts
            if not slot.done():
                self._running[chosen] += 1
                slot.set_result(None)

    def _forget(self, account_id: str, slot: "asyncio.Future[None]") -> None:
        """Remove a cancelled waiter, so that its account's turn goes to the next waiter."""
        queue = self._waiting.get(account_id)
        if queue is not None and slot in queue:
            queue.remove(slot)
            if not queue:
                del self._waiting[account_id]
