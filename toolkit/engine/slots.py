"""Places for jobs: so many in all, so many for each account, and turns for those who wait."""

from collections import Counter

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

    def place(self, account_id: str, root_id: str) -> "Place":
        """One place, for as long as it is entered; entering waits until there is one."""
        return Place(self, account_id, root_id)

    async def acquire(self, account_id: str, root_id: str) -> None:
        """Wait for a place."""
        own = self._accounts.get(account_id)
        if own is None:
            own = self._accounts[account_id] = FairLimiter(self._of_account)
        self._wanted[account_id] += 1
        try:
            await own.acquire(root_id)
            try:
                await self._in_all.acquire(account_id)
            except BaseException:
                own.release()
                raise
        except BaseException:
            self._no_longer_wanted(account_id)
            raise

    def release(self, account_id: str) -> None:
        """Give a place back."""
        self._in_all.release()
        self._accounts[account_id].release()
        self._no_longer_wanted(account_id)

    def _no_longer_wanted(self, account_id: str) -> None:
        self._wanted[account_id] -= 1
        if not self._wanted[account_id]:
            del self._wanted[account_id], self._accounts[account_id]


class Place:
    """A place that is held while it is entered."""

    __slots__ = ("_account_id", "_root_id", "_slots")

    def __init__(self, slots: Slots, account_id: str, root_id: str) -> None:
        self._slots, self._account_id, self._root_id = slots, account_id, root_id

    async def __aenter__(self) -> None:
        await self._slots.acquire(self._account_id, self._root_id)

    async def __aexit__(self, *_: object) -> None:
        self._slots.release(self._account_id)
