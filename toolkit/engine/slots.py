"""Places for jobs: so many in all, so many for each account, and turns for those who wait."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from toolkit.engine.limiter import FairLimiter


class Slots:
    """Who may carry out a job now: accounts take turns, and within one its roots do.

    An account that has as many under way as it may waits for its own and holds up nobody else.

    >>> slots = Slots(in_all=8, of_account=4)
    >>> slots.full("acc_1")
    False
    """

    def __init__(self, in_all: int, of_account: int) -> None:
        self._in_all = FairLimiter(in_all)
        # No more than there are: a lone account so waits in its own line, where its roots take
        # turns.
        self._of_account = min(of_account, in_all)
        self._accounts: dict[str, FairLimiter] = {}
        self._wanted: Counter[str] = Counter()

    def full(self, account_id: str) -> bool:
        """Whether the account's next job has to wait."""
        own = self._accounts.get(account_id)
        return self._in_all.full or (own is not None and own.full)

    @asynccontextmanager
    async def place(self, account_id: str, root_id: str) -> AsyncIterator[None]:
        """One place, once there is one."""
        own = self._accounts.setdefault(account_id, FairLimiter(self._of_account))
        self._wanted[account_id] += 1
        try:
            await own.acquire(root_id)
            try:
                await self._in_all.acquire(account_id)
                try:
                    yield
                finally:
                    self._in_all.release()
            finally:
                own.release()
        finally:
            self._wanted[account_id] -= 1
            if not self._wanted[account_id]:
                del self._wanted[account_id], self._accounts[account_id]
