"""What a key may spend in a day, kept in the store, so that all processes keep to it together."""

import asyncio
from collections import Counter
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import partial
from typing import TypeAlias

from toolkit.contract.account import ApiKey
from toolkit.contract.base import now
from toolkit.contract.errors import ErrorCode, RequestError, WorkError
from toolkit.contract.money import format_usd
from toolkit.engine.budget import Reservation
from toolkit.engine.nanos import dollars, nanos
from toolkit.store import OverLimit, Spend, Store

Record: TypeAlias = Callable[[Spend], "asyncio.Future[None]"]


class Allowances:
    """Takes what calls may cost from the day's allowance of the key they are made for.

    What was taken for a call that a crash cut off stays taken: its vendor may bill it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._under_way: Counter[str] = Counter()
        self._given_back = asyncio.Event()  # set, and replaced, each time something is

    async def check(self, key_id: str | None, bound: Decimal | None) -> None:
        """Refuse work at once for which too little is left today.

        What calls under way hold may be given back, so who fits beside what is spent may wait.

        Args:
            key_id: whose allowance.
            bound: the most that the work's first call may come to; none where that is not known.

        Raises:
            RequestError: `BUDGET_EXCEEDED`.
        """
        key = await self._limited(key_id)
        if key is None:
            return
        limit = _limit(key)
        row = await self._store.get("spending", _row_id(key.purse))
        spent = dollars(0 if row is None else row["nano"])
        asked = bound or Decimal(0)
        waits = self._under_way[_row_id(key.purse)] > 0
        if asked > limit or (not waits and (spent >= limit or spent + asked > limit)):
            raise RequestError(ErrorCode.BUDGET_EXCEEDED, _over(limit, spent))

    async def limits(self, key_id: str | None) -> bool:
        """Whether a key has an allowance, so that nothing without a known bound is called."""
        return await self._limited(key_id) is not None

    async def hold(
        self, key_id: str | None, amount: Decimal | None, held: Reservation, record: Record
    ) -> None:
        """Have what a call may cost held here too, waiting while others may give some back.

        Args:
            key_id: whose allowance.
            amount: what to hold; none where it is not known.
            held: the same, in the budgets of this process.
            record: writes what the call did cost, together with the record of it.

        Raises:
            WorkError: `BUDGET_EXCEEDED`, also for a price that is not known; nothing is held then.
        """
        try:
            key = await self._limited(key_id)
            if key is not None:
                held.settled = await self._taken(key.purse, _limit(key), amount, record)
        except BaseException:
            held.settle(Decimal(0))
            raise

    async def _taken(
        self, purse: str, limit: Decimal, amount: Decimal | None, record: Record
    ) -> Callable[[Decimal], None]:
        """Take an amount from the day's allowance; what is to be told what the call did cost."""
        if amount is None:
            raise WorkError(
                ErrorCode.BUDGET_EXCEEDED,
                "The price of this call is unknown, so it cannot be kept to the key's allowance.",
            )
        row_id, nano, most = _row_id(purse), nanos(amount, ROUND_CEILING), nanos(limit, ROUND_FLOOR)
        while True:
            given_back = self._given_back
            try:
                await self._store.write([Spend(row_id, purse, nano, most)])
            except OverLimit:
                if not (given_back.is_set() or self._under_way[row_id]):
                    raise WorkError(ErrorCode.BUDGET_EXCEEDED, _over(limit, amount)) from None
                await given_back.wait()
            else:
                self._under_way[row_id] += 1
                return partial(self._settle, row_id, nano, record)

    def _settle(self, row_id: str, taken: int, record: Record, actual: Decimal) -> None:
        """Replace what was taken by what the call cost."""
        written = record(Spend(row_id, "", nanos(actual, ROUND_CEILING) - taken, None))
        written.add_done_callback(partial(self._end, row_id))

    def _end(self, row_id: str, written: "asyncio.Future[None]") -> None:
        # What could not be written stays taken; whoever writes the record is told why.
        if not written.cancelled():
            written.exception()
        self._under_way[row_id] -= 1
        self._given_back.set()
        self._given_back = asyncio.Event()

    async def _limited(self, key_id: str | None) -> ApiKey | None:
        """The key, if it has an allowance."""
        if key_id is None:
            return None
        row = await self._store.get("api_keys", key_id)
        if row is None:
            return None  # the key of a notebook on its own process is never written down
        key = ApiKey.model_validate_json(str(row["doc"]))
        return None if key.max_cost_usd_per_day is None else key


def _limit(key: ApiKey) -> Decimal:
    return Decimal(str(key.max_cost_usd_per_day))


def _row_id(purse: str) -> str:
    """One row for each allowance and day, by UTC; a key and those it is rotated to share one."""
    return f"{purse}:{now():%Y-%m-%d}"


def _over(limit: Decimal, amount: Decimal) -> str:
    return (
        f"The key may spend {format_usd(limit, exact=True)} a day, and"
        f" {format_usd(amount, exact=True)} is spent or asked for; it starts anew at midnight UTC."
    )
