"""Administration of accounts by the operator of a data directory; a server may be running."""

import asyncio
import json
import time
from decimal import Decimal

from toolkit.contract.account import Account, ApiKey, KeyCreated
from toolkit.contract.base import Record, format_rfc3339, now
from toolkit.contract.connections import Connection
from toolkit.contract.endpoints import Infrastructure
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.money import ZERO_USD, to_wire_usd
from toolkit.engine.access.accounts import LOCAL_EMAIL, find_account
from toolkit.engine.access.api_keys import complete_key, has_ended, make_key, revoke_key
from toolkit.engine.money.allowance import Allowances, make_account_limit
from toolkit.engine.money.amounts import from_nano_usd
from toolkit.engine.records import Records
from toolkit.settings import Settings
from toolkit.store import AccountScope, Change, PatchDocument, Row, Store, UpdateRow
from toolkit.store.stored_bytes import COUNTED_COLUMNS

MAX_END_WAIT_S = 10.0  # the longest wait, in seconds, for other processes to end an account's work
POLL_INTERVAL_S = 0.1
BILLED_TABLES = ("endpoints", "compute", "storage")


class AccountSummary(Account):
    """An account in the operator's list, with its spending and stored data.

    Attributes:
        operator: whether the account may share its connections.
        spent_usd_today: cost of its work since midnight, UTC.
        records: number of its records: work, artifacts, connections, keys and the rest.
        stored_bytes: total size of these records, including the artifacts' bytes.
    """

    operator: bool
    spent_usd_today: float
    records: int
    stored_bytes: int


class AccountKey(ApiKey):
    """A key, and the cost of its work since midnight, UTC."""

    spent_usd_today: float = 0.0


class RentedResource(Record):
    """A resource that an account has at a GPU cloud."""

    id: str
    kind: str
    name: str
    status: str


class AccountDetails(AccountSummary):
    """The details of an account for the operator, which never include a secret.

    Attributes:
        left_usd_today: rest of its daily limit; None without a limit.
        spent_usd_this_month: cost of its work since the first of the month, UTC.
        artifact_bytes, record_bytes: sizes of its artifacts and of its records.
        max_stored_bytes: maximum size that it may store, by the settings of this process.
        under_way: number of its runs, jobs, workflows and tasks that have not ended.
        allow_env: variables that its pointers may name in addition to the conventional variables.
            None for an account that signed up, which may name no own variables.
    """

    left_usd_today: float | None
    spent_usd_this_month: float
    artifact_bytes: int
    record_bytes: int
    max_stored_bytes: int
    under_way: int
    allow_env: list[str] | None
    keys: list[AccountKey]
    connections: list[Connection]
    rented: list[RentedResource]


class AccountDisabled(Account):
    """An account that was disabled.

    Attributes:
        ended: number of runs, jobs, workflows and tasks that this call ended.
        under_way: number of runs, jobs, workflows and tasks that have not ended yet.
        rented: its resources at a GPU cloud, which are billed until they are deleted.
    """

    ended: int
    under_way: int
    rented: list[RentedResource]


class AccountRecovered(KeyCreated):
    """A new key for an account that lost its own; it is shown only once.

    Attributes:
        account: account that the key belongs to.
        revoked: ids of the keys that were revoked at the same time.
        still_good: other valid keys of the account.
    """

    account: Account
    revoked: list[str]
    still_good: list[AccountKey]


class AccountAdmin:
    """Administration of accounts, alongside any process that serves them."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._allowances = Allowances(store)

    async def list_all(self) -> list[AccountSummary]:
        """List every account, the oldest first."""
        return [await self._summarize(row) for row in await self._store.find_rows("accounts")]

    async def describe(self, identifier: str) -> AccountDetails:
        """Describe one account, by its id or its address.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        row = await find_account(self._store, identifier)
        summary = await self._summarize(row)
        artifacts, records = await self._store.get_stored_bytes(summary.id)
        limit, remaining_usd = summary.max_cost_usd_per_day, None
        if limit is not None:
            remaining_usd = to_wire_usd(
                await self._allowances.find_remaining_today(make_account_limit(summary.id, limit))
            )
        month = await self._sum_spending(summary.id, _format_today()[:8] + "01")
        connections = await self._store.find_owned_rows(
            "connections", AccountScope(summary.id), deleted=False
        )
        return AccountDetails(
            **dict(summary),
            left_usd_today=remaining_usd,
            spent_usd_this_month=to_wire_usd(sum(month.values(), ZERO_USD)),
            artifact_bytes=artifacts,
            record_bytes=records,
            max_stored_bytes=self._settings.max_stored_bytes,
            under_way=len(await self._find_open(summary.id)),
            allow_env=None if row["spec"] is None else json.loads(row["spec"])["allow_env"],
            keys=await self._list_keys(summary.id),
            connections=[Connection.model_validate_json(row["doc"]) for row in connections],
            rented=await self._find_rented(summary.id),
        )

    async def list_keys(self, identifier: str) -> list[AccountKey]:
        """List the keys of an account, also revoked and expired keys, the newest first.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        return await self._list_keys(str((await find_account(self._store, identifier))["id"]))

    async def disable(self, identifier: str, *, let_finish: bool = False) -> AccountDisabled:
        """Disable an account's keys, and end its unfinished work.

        Other processes learn of it through the store. This method waits a limited time for them
        to end the work.

        Args:
            identifier: id or address of the account.
            let_finish: let unfinished work continue.

        Raises:
            RequestError: `NOT_FOUND`, `CONFLICT` for the account of this directory's notebooks.
        """
        account = _parse_account(await find_account(self._store, identifier))
        if account.email == LOCAL_EMAIL:
            raise RequestError(
                ErrorCode.CONFLICT,
                "Notebooks on this data directory use this account without a key, so it cannot be"
                " disabled: restrict access to the files instead.",
            )
        account.disabled_at = account.disabled_at or now()
        patch = PatchDocument(
            "accounts", account.id, {"disabled_at": format_rfc3339(account.disabled_at)}
        )
        open_roots = await self._find_open(account.id)
        ending = set() if let_finish else {str(root["id"]) for root in open_roots}
        # In one transaction: a process that sees it disabled also sees its work cancelled.
        await self._store.write([patch, *map(_make_cancellation, ending)])
        if not let_finish:
            ending |= await self._wait_for_end(account.id)
        remaining_ids = {str(root["id"]) for root in await self._find_open(account.id)}
        return AccountDisabled(
            **dict(account),
            ended=len(ending - remaining_ids),
            under_way=len(remaining_ids),
            rented=await self._find_rented(account.id),
        )

    async def _wait_for_end(self, account_id: str) -> set[str]:
        """Wait a limited time for other processes to end an account's work.

        Work that was accepted meanwhile is cancelled too.

        Returns:
            the ids of the unfinished work that was seen.
        """
        seen_ids: set[str] = set()
        deadline = time.monotonic() + MAX_END_WAIT_S
        while time.monotonic() < deadline:
            # A request that was authenticated just before may have its work accepted just after.
            await asyncio.sleep(POLL_INTERVAL_S)
            open_roots = await self._find_open(account_id)
            late_ids = [str(root["id"]) for root in open_roots if not root["cancel_requested"]]
            if late_ids:
                await self._store.write([_make_cancellation(root_id) for root_id in late_ids])
            seen_ids.update(str(root["id"]) for root in open_roots)
            owners = [root["owner"] for root in open_roots if root["owner"] is not None]
            if all(self._store.is_stale_owner(owner) for owner in owners):
                break
        return seen_ids

    async def enable(self, identifier: str) -> Account:
        """Enable a disabled account's keys again.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        account = _parse_account(await find_account(self._store, identifier))
        account.disabled_at = None
        await self._store.write([PatchDocument("accounts", account.id, {"disabled_at": None})])
        return account

    async def set_operator(self, identifier: str, *, operator: bool) -> Account:
        """Allow an account to share its connections with others, or stop allowing it.

        Its shares are kept, but others can use them only while it may share.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        account = _parse_account(await find_account(self._store, identifier))
        await self._store.write([UpdateRow("accounts", account.id, {"operator": operator})])
        return account

    async def recover(self, identifier: str, *, revoke_others: bool = False) -> AccountRecovered:
        """Make a key with all scopes for an account that lost its own; it is shown only once.

        Args:
            identifier: id or address of the account.
            revoke_others: revoke all other keys of the account at once.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        account = _parse_account(await find_account(self._store, identifier))
        active_keys = [key for key in await self._list_keys(account.id) if not has_ended(key)]
        key, insert, record = make_key(account.id, name="recovered")
        changes: list[Change] = [insert]
        if revoke_others:
            changes += [change for old_key in active_keys for change in revoke_key(old_key)]
        await self._store.write(changes)
        return AccountRecovered(
            **dict(record),
            api_key=key,
            account=account,
            revoked=[old_key.id for old_key in active_keys] if revoke_others else [],
            still_good=[] if revoke_others else active_keys,
        )

    async def _summarize(self, row: Row) -> AccountSummary:
        account = _parse_account(row)
        counts = [
            await self._store.count_rows(table, AccountScope(account.id))
            for table in COUNTED_COLUMNS
        ]
        spending = await self._sum_spending(account.id, _format_today())
        return AccountSummary(
            **dict(account),
            operator=bool(row["operator"]),
            spent_usd_today=to_wire_usd(sum(spending.values(), ZERO_USD)),
            records=sum(counts),
            stored_bytes=sum(await self._store.get_stored_bytes(account.id)),
        )

    async def _sum_spending(self, account_id: str, first: str) -> dict[str, Decimal]:
        """Sum the cost of an account's work from a day on, for each key that asked for work."""
        days = (first, _format_today())
        rows = await self._store.sum_rows(
            "usage", ["nano"], ["key_id"], AccountScope(account_id), "day", days
        )
        return {str(row["key_id"]): from_nano_usd(row["nano"]) for row in rows}

    async def _list_keys(self, account_id: str) -> list[AccountKey]:
        spending = await self._sum_spending(account_id, _format_today())
        records = Records(self._store).keys
        rows = await records.find_rows(AccountScope(account_id))
        keys = [await complete_key(self._allowances, records.read(row)) for row in reversed(rows)]
        return [
            AccountKey(**dict(key), spent_usd_today=to_wire_usd(spending.get(key.id, ZERO_USD)))
            for key in keys
        ]

    async def _find_open(self, account_id: str) -> list[Row]:
        return await self._store.find_owned_rows("roots", AccountScope(account_id), open=True)

    async def _find_rented(self, account_id: str) -> list[RentedResource]:
        resources = []
        for table in BILLED_TABLES:
            for row in await self._store.find_owned_rows(table, AccountScope(account_id)):
                record = Infrastructure.model_validate_json(str(row["doc"]))
                if record.status != "deleted":
                    resources.append(RentedResource(**record.model_dump(), kind=table))
        return resources


def _parse_account(row: Row) -> Account:
    return Account.model_validate_json(str(row["doc"]))


def _make_cancellation(root_id: str) -> Change:
    return UpdateRow("roots", root_id, {"cancel_requested": True})


def _format_today() -> str:
    return format_rfc3339(now())[:10]
