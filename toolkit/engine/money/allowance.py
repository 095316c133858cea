"""Allowances of keys and accounts, daily or total, kept in the store for all processes."""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import partial
from typing import TypeAlias

from toolkit.contract.account import ApiKey
from toolkit.contract.base import format_rfc3339, now
from toolkit.contract.errors import ErrorCode, RequestError, WorkError
from toolkit.contract.money import ZERO_USD, format_usd, from_wire_usd
from toolkit.engine.concurrency.cancellation import finish_before_cancel
from toolkit.engine.money.abandoned_holds import make_hold_id
from toolkit.engine.money.amounts import from_nano_usd, to_nano_usd
from toolkit.engine.money.budget import Reservation
from toolkit.engine.request_context import RequestContext
from toolkit.store import (
    AddSpending,
    Change,
    ConfigurationCache,
    DeleteRow,
    InsertRow,
    Lease,
    OverLimit,
    Store,
)

WriteRecord: TypeAlias = Callable[[Sequence[Change]], "asyncio.Future[None]"]
POLL_INTERVAL_S = 0.2  # seconds between two reads of other processes' settlements
# A reservation older than this is stale if no lock file shows that its process has ended.
MAX_CALL_S = 3600.0
# Suffix of the id of the row for all days. Pruning deletes rows whose last ten characters sort
# before a day's, and a day begins with a digit.
TOTAL_PERIOD = "total-cost"


@dataclass(frozen=True, slots=True)
class SpendingLimit:
    """A spending limit, of a day or in total.

    Attributes:
        allowance_id: id that spending is counted under: the first key of a rotation chain, or an
            account.
        usd: amount of the limit, in US dollars.
        holder: holder of the limit, as the subject of a sentence.
        is_daily: False for the total of all days.
    """

    allowance_id: str
    usd: Decimal
    holder: str
    is_daily: bool = True

    @property
    def nano_usd(self) -> int:
        """The limit, in billionths of a dollar."""
        return to_nano_usd(self.usd, ROUND_FLOOR)

    @property
    def row_id(self) -> str:
        """The id of today's row, by UTC, or of the row of all days."""
        return f"{self.allowance_id}:{f'{now():%Y-%m-%d}' if self.is_daily else TOTAL_PERIOD}"


@dataclass(frozen=True, slots=True)
class AllowanceHold:
    """A reservation of a call's maximum cost in an allowance of a day or in a total allowance.

    Attributes:
        id: id of the reservation.
        row_id: id of the row of the allowance's spending.
        nano_usd: amount reserved, in billionths of a dollar.
    """

    id: str
    row_id: str
    nano_usd: int


class Allowances:
    """The allowances of keys and accounts, from which calls reserve their maximum cost.

    Each call's reservation is a row of its own. So every process can distinguish spent money from
    reserved money, and refuses only a call that does not fit in addition to the spent amount.
    The reservation of a call that a crash interrupted counts as spent: its vendor may bill it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._limits = ConfigurationCache(store, self._load_limits)
        # Total limits of keys that are never stored, by the id of the key.
        self._local_limits: dict[str, SpendingLimit] = {}
        self._released = asyncio.Event()  # set and replaced whenever a reservation is released
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        # Reservations of this process whose settlement could not be written, by the id of the day's
        # row. They count as spent until the process that resumes the work decides.
        self._unwritten: defaultdict[str, set[str]] = defaultdict(set)

    async def check_bound(self, context: RequestContext, bound: Decimal | None) -> None:
        """Refuse work if too little of an allowance, of today or in total, is left for it.

        Args:
            context: context of the request.
            bound: maximum cost of the work's first call, in US dollars; None if unknown.

        Raises:
            RequestError: `BUDGET_EXCEEDED`.
        """
        nano = to_nano_usd(bound or ZERO_USD, ROUND_CEILING)
        async for limit, spent in self._iterate_spent(context):
            if spent >= limit.nano_usd or spent + nano > limit.nano_usd:
                raise RequestError(ErrorCode.BUDGET_EXCEEDED, _explain_exceeded(limit, spent))

    async def check_renting(self, context: RequestContext) -> None:
        """Refuse to rent resources if an allowance applies, which cannot bound a cost by the hour.

        Raises:
            RequestError: `FORBIDDEN`.
        """
        for limit in await self.find_limits(context):
            owner = "a key" if limit.allowance_id != context.account_id else "an account"
            kind = "a daily allowance" if limit.is_daily else "an allowance"
            raise RequestError(
                ErrorCode.FORBIDDEN,
                f"{limit.holder} has {kind}, which cannot bound the cost of rented resources,"
                f" because they are billed by the hour even when idle: use {owner} without an"
                " allowance, or an endpoint with workers_min 0.",
            )

    async def find_remaining(self, context: RequestContext) -> Decimal | None:
        """Return the US dollars that the tightest allowance leaves, or None without a limit.

        Amounts reserved for calls in flight count as left.
        """
        rooms = [
            limit.usd - from_nano_usd(spent) async for limit, spent in self._iterate_spent(context)
        ]
        return min(rooms, default=None)

    async def find_remaining_today(self, limit: SpendingLimit) -> Decimal:
        """Return the unspent rest of an allowance, daily or total, in US dollars; at least 0."""
        spent, _ = await self._read_totals(limit)
        return max(ZERO_USD, limit.usd - from_nano_usd(spent))

    async def raise_exceeded(self, context: RequestContext) -> None:
        """Raise the error that the tightest allowance is exceeded; return if no allowance applies.

        Raises:
            RequestError: `BUDGET_EXCEEDED`.
        """
        rooms = [
            (limit.nano_usd - spent, _explain_exceeded(limit, spent))
            async for limit, spent in self._iterate_spent(context)
        ]
        if rooms:
            raise RequestError(ErrorCode.BUDGET_EXCEEDED, min(rooms)[1])

    async def _iterate_spent(
        self, context: RequestContext
    ) -> AsyncIterator[tuple[SpendingLimit, int]]:
        for limit in await self.find_limits(context):
            yield limit, (await self._read_totals(limit))[0]

    async def hold(
        self,
        lease: Lease,
        call: tuple[str, int],
        limits: Sequence[SpendingLimit],
        amount: Decimal | None,
        reservation: Reservation,
        record: WriteRecord,
    ) -> None:
        """Reserve a call's maximum cost in all limits, waiting while other calls may release some.

        Args:
            lease: lease on the work that makes the call.
            call: id of the job that makes the call, and the number of its attempt.
            limits: limits that the call counts against, from `find_limits`.
            amount: amount to reserve, in US dollars; None if unknown.
            reservation: reservation of the same amount in the budgets of this process.
            record: function that writes the call's actual cost together with its record.

        Raises:
            WorkError: `BUDGET_EXCEEDED`, also if the price is unknown; nothing stays reserved then.
        """
        try:
            if limits:
                holds = await self._take(lease, call, limits, amount)
                reservation.on_settle = partial(self._settle, holds, record)
                # A cancel that arrived during the write is raised here and releases the hold.
                await asyncio.sleep(0)
        except BaseException:
            reservation.settle(ZERO_USD)
            raise

    async def _take(
        self,
        lease: Lease,
        call: tuple[str, int],
        limits: Sequence[SpendingLimit],
        amount: Decimal | None,
    ) -> list[AllowanceHold]:
        """Reserve an amount in all limits or in none, waiting while calls may release some."""
        if amount is None:
            raise WorkError(
                ErrorCode.BUDGET_EXCEEDED,
                "The price of this call is unknown, so an allowance cannot bound its cost:"
                " client.route(...) shows which model has no price, and docs/costs.md explains how"
                " to set it; or use a key without an allowance.",
            )
        nano = to_nano_usd(amount, ROUND_CEILING)
        line = self._locks[limits[0].allowance_id]
        if not line.locked():
            holds = await self._try_to_take(lease, call, limits, nano)
            if holds is not None:
                return holds
        # One call at a time: otherwise all would retry on every release.
        async with line:
            while True:
                release = self._released
                holds = await self._try_to_take(lease, call, limits, nano)
                if holds is not None:
                    return holds
                # Read again each time: a limit may have changed, or a new day has begun.
                limits = await self.find_limits(RequestContext.of_lease(lease))
                if await self._must_wait(limits, nano):
                    with suppress(TimeoutError):
                        await asyncio.wait_for(release.wait(), POLL_INTERVAL_S)

    async def _try_to_take(
        self, lease: Lease, call: tuple[str, int], limits: Sequence[SpendingLimit], nano: int
    ) -> list[AllowanceHold] | None:
        """Reserve an amount if the spent and reserved amounts leave room; otherwise return None.

        The write is fenced by the lease: once another process has the work, nothing more is
        reserved.
        """
        holds = [AllowanceHold(make_hold_id(lease, *call), limit.row_id, nano) for limit in limits]
        changes: list[Change] = []
        for limit, hold in zip(limits, holds, strict=True):
            changes += [
                AddSpending(hold.row_id, limit.allowance_id, nano, limit.nano_usd),
                InsertRow("reservations", self._make_row(hold)),
            ]
        writing = self._store.write(changes, lease=lease, conditional=True)
        try:
            # Otherwise nothing would ever release the amounts already taken.
            await finish_before_cancel(writing)
        except OverLimit:
            return None
        return holds

    def _make_row(self, hold: AllowanceHold) -> dict[str, object]:
        return {
            "id": hold.id,
            "spending_id": hold.row_id,
            "owner": self._store.owner,
            "nano": hold.nano_usd,
            "created_at": format_rfc3339(now()),
        }

    async def _must_wait(self, limits: Sequence[SpendingLimit], nano: int) -> bool:
        """Check whether an amount must wait; raise `BUDGET_EXCEEDED` if waiting cannot help."""
        waits = False
        for limit in limits:
            spent, reserved = await self._read_totals(limit)
            if spent + nano > limit.nano_usd:
                raise WorkError(ErrorCode.BUDGET_EXCEEDED, _explain_exceeded(limit, spent))
            waits |= spent + reserved + nano > limit.nano_usd
        return waits

    async def _read_totals(self, limit: SpendingLimit) -> tuple[int, int]:
        """Read an allowance's spent amount, and the amount that calls in flight have reserved.

        Reservations that are too old count as spent, and are deleted.
        """
        total, reservations = await self._store.get_spending(limit.row_id)
        self._unwritten[limit.row_id] &= {str(row["id"]) for row in reservations}
        reserved, stale_ids = 0, []
        for row in reservations:
            age_s = (now() - datetime.fromisoformat(str(row["created_at"]))).total_seconds()
            is_late, row_id = age_s > MAX_CALL_S, str(row["id"])
            if not is_late and self._is_under_way(limit.row_id, row_id, str(row["owner"])):
                reserved += int(row["nano"])
            elif is_late:
                stale_ids.append(row_id)
        if stale_ids:
            # Counts as spent: the sum includes it already.
            self._store.write(
                [DeleteRow("reservations", hold_id) for hold_id in stale_ids], eager=False
            )
        return total - reserved, reserved

    def _is_under_way(self, row_id: str, reservation_id: str, owner: str) -> bool:
        """Check whether a reservation's call may still end and release some of it."""
        if owner == self._store.owner:
            return reservation_id not in self._unwritten[row_id]
        return not self._store.is_stale_owner(owner)

    def _settle(self, holds: Sequence[AllowanceHold], record: WriteRecord, actual: Decimal) -> None:
        nano = to_nano_usd(actual, ROUND_CEILING)
        changes: list[Change] = []
        for hold in holds:
            changes += [
                AddSpending(hold.row_id, "", nano - hold.nano_usd, None),
                DeleteRow("reservations", hold.id),
            ]
        record(changes).add_done_callback(partial(self._finish_settlement, holds))

    def _finish_settlement(
        self, holds: Sequence[AllowanceHold], writing: "asyncio.Future[None]"
    ) -> None:
        # A failed write leaves the amount taken; the writer of the record gets the error.
        if writing.cancelled() or writing.exception() is not None:
            for hold in holds:
                self._unwritten[hold.row_id].add(hold.id)
        self._released.set()
        self._released = asyncio.Event()

    async def find_limits(self, context: RequestContext) -> Sequence[SpendingLimit]:
        """Find the limits that work counts against, the account's first.

        If there is any limit, no call without a known bound is made.
        """
        return await self._limits.find((context.account_id, context.key_id))

    async def _load_limits(self, identity: tuple[str, str | None]) -> Sequence[SpendingLimit]:
        account_id, key_id = identity
        limits = []
        account = await self._store.get_row("accounts", account_id, "doc")
        a_day = None if account is None else json.loads(account["doc"]).get("max_cost_usd_per_day")
        if a_day is not None:
            limits.append(make_account_limit(account_id, a_day))
        # The key of a notebook's embedded engine is never stored.
        row = None if key_id is None else await self._store.get_row("api_keys", key_id, "doc")
        if row is not None:
            limits += make_key_limits(ApiKey.model_validate_json(str(row["doc"])))
        elif key_id in self._local_limits:
            limits.append(self._local_limits[key_id])
        return tuple(limits)

    def limit_local_key(self, key_id: str, usd: float) -> None:
        """Set the total limit of a key that is never stored, before its first use.

        Args:
            key_id: id of the key.
            usd: maximum total cost, in US dollars.
        """
        limit = SpendingLimit(key_id, from_wire_usd(usd), "The key", is_daily=False)
        self._local_limits[key_id] = limit


def make_account_limit(account_id: str, usd: float) -> SpendingLimit:
    """Make the limit of an account from its daily amount, in US dollars."""
    return SpendingLimit(account_id, from_wire_usd(usd), "The account")


def make_key_limits(key: ApiKey) -> list[SpendingLimit]:
    """Make the limits that a key's allowances set, of a day and in total."""
    allowances = ((key.max_cost_usd_per_day, True), (key.max_cost_usd, False))
    return [
        SpendingLimit(key.allowance_id, from_wire_usd(usd), "The key", is_daily=is_daily)
        for usd, is_daily in allowances
        if usd is not None
    ]


def _explain_exceeded(limit: SpendingLimit, spent: int) -> str:
    period = "a day" if limit.is_daily else "in total"
    next_step = "wait until midnight UTC." if limit.is_daily else "use another key."
    return (
        f"{limit.holder} may spend {format_usd(limit.usd, exact=True)} {period}, of which"
        f" {format_usd(from_nano_usd(spent), exact=True)} is spent,"
        f" and the rest does not cover this: {next_step}"
    )
