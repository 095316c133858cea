"""Limits of concurrent jobs, in all and by account, with fair queues for those who wait."""

from collections import Counter

from toolkit.engine.concurrency.fair_semaphore import FairSemaphore


class ConcurrencyLimits:
    """Limits of concurrent jobs; accounts are served round-robin, and within one its work items.

    An account that has reached its own limit waits for its own jobs and holds up nobody else.

    >>> slots = ConcurrencyLimits(in_all=8, of_account=4)
    >>> slots.is_full("acc_1")
    False
    """

    def __init__(self, in_all: int, of_account: int) -> None:
        self._all_jobs = FairSemaphore(in_all)
        # At most as many as in all: a lone account so waits in its own queue, where its work items
        # are served round-robin.
        self._max_per_account = min(of_account, in_all)
        self._accounts: dict[str, FairSemaphore] = {}
        self._wanted: Counter[str] = Counter()

    @property
    def is_idle(self) -> bool:
        """True while no job has a slot or waits for one."""
        return not self._wanted

    def is_full(self, account_id: str) -> bool:
        """Tell whether the account's next job has to wait."""
        own = self._accounts.get(account_id)
        return self._all_jobs.is_full or (own is not None and own.is_full)

    def hold_slot(self, account_id: str, root_id: str) -> "JobSlot":
        """Return a slot that is held while it is entered; to enter it waits until one is free."""
        return JobSlot(self, account_id, root_id)

    async def acquire(self, account_id: str, root_id: str) -> None:
        """Wait for a slot."""
        own = self._accounts.get(account_id)
        if own is None:
            own = self._accounts[account_id] = FairSemaphore(self._max_per_account)
        self._wanted[account_id] += 1
        try:
            if not own.try_acquire():
                await own.acquire(root_id)
            try:
                if not self._all_jobs.try_acquire():
                    await self._all_jobs.acquire(account_id)
            except BaseException:
                own.release()
                raise
        except BaseException:
            self._drop_claim(account_id)
            raise

    def release(self, account_id: str) -> None:
        """Release a slot."""
        self._all_jobs.release()
        self._accounts[account_id].release()
        self._drop_claim(account_id)

    def _drop_claim(self, account_id: str) -> None:
        self._wanted[account_id] -= 1
        if not self._wanted[account_id]:
            del self._wanted[account_id], self._accounts[account_id]


class JobSlot:
    """A slot that is held while it is entered."""

    __slots__ = ("_account_id", "_root_id", "_slots")

    def __init__(self, slots: ConcurrencyLimits, account_id: str, root_id: str) -> None:
        self._slots, self._account_id, self._root_id = slots, account_id, root_id

    async def __aenter__(self) -> None:
        await self._slots.acquire(self._account_id, self._root_id)

    async def __aexit__(self, *_: object) -> None:
        self._slots.release(self._account_id)
