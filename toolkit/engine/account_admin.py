"""Accounts as whoever operates a data directory sees and changes them; a server may be running."""

import asyncio
import json
import time
from decimal import Decimal

from toolkit.contract.account import Account, ApiKey, KeyCreated
from toolkit.contract.base import Record, now, rfc3339
from toolkit.contract.connections import Connection
from toolkit.contract.endpoints import Infrastructure
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.engine.accounts import LOCAL_EMAIL, find_account
from toolkit.engine.allowance import Allowances, limit_of_account
from toolkit.engine.keys import complete_key, has_ended, new_key, revoke_key
from toolkit.engine.nanos import dollars
from toolkit.settings import Settings
from toolkit.store import Change, Patch, Row, Store, Update
from toolkit.store.accounting import TEXTS

END_S = 10.0  # the longest to wait for others to end what an account has under way
POLL_S = 0.1
RENTED = ("endpoints", "compute", "storage")


class AccountSummary(Account):
    """An account in a list.

    Attributes:
        operator: whether it may share its connections.
        spent_usd_today: what its work cost since midnight, UTC.
        records: how many records it keeps: work, artifacts, connections, keys and the rest.
        stored_bytes: what these take, artifacts' bytes included.
    """

    operator: bool
    spent_usd_today: float
    records: int
    stored_bytes: int


class AccountKey(ApiKey):
    """A key, and what its work cost since midnight, UTC."""

    spent_usd_today: float = 0.0


class Rented(Record):
    """Something that an account has at a GPU cloud."""

    id: str
    kind: str
    name: str
    status: str


class AccountDetails(AccountSummary):
    """All that an operator may want to know of an account: never a secret.

    Attributes:
        left_usd_today: what its daily limit leaves; none where it has no limit.
        spent_usd_this_month: what its work cost since the first of the month, UTC.
        artifact_bytes, record_bytes: what it keeps, of the most that it may.
        max_stored_bytes: that most, by the settings of this process.
        under_way: how many of its runs, jobs, workflows and tasks are not done.
        allow_env: what its pointers may name beside the conventional variables; none where it was
            signed up, and may name nothing of its own.
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
    rented: list[Rented]


class AccountDisabled(Account):
    """An account that was disabled.

    Attributes:
        ended: how many runs, jobs, workflows and tasks were ended.
        under_way: how many are not done yet.
        rented: what it has at a GPU cloud, which is billed until it is deleted.
    """

    ended: int
    under_way: int
    rented: list[Rented]


class AccountRecovered(KeyCreated):
    """A new key for an account whose own was lost, shown this once.

    Attributes:
        account: whose key it is.
        revoked: the ids of the keys that were revoked for it.
        still_good: the account's other keys.
    """

    account: Account
    revoked: list[str]
    still_good: list[AccountKey]


class AccountAdmin:
    """Reads and changes accounts beside whatever process serves them."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._allowances = Allowances(store)

    async def list_all(self) -> list[AccountSummary]:
        """Every account, the oldest first."""
        return [await self._summarize(row) for row in await self._store.find("accounts")]

    async def describe(self, named: str) -> AccountDetails:
        """One account, by its id or its address.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        row = await find_account(self._store, named)
        summary = await self._summarize(row)
        artifacts, records = await self._store.stored_bytes(summary.id)
        limit, left = summary.max_cost_usd_per_day, None
        if limit is not None:
            left = await self._allowances.left_today(limit_of_account(summary.id, limit))
        month = await self._spent(summary.id, _today()[:8] + "01")
        connections = await self._store.find("connections", account_id=summary.id, deleted=False)
        return AccountDetails(
            **dict(summary),
            left_usd_today=left,
            spent_usd_this_month=float(sum(month.values())),
            artifact_bytes=artifacts,
            record_bytes=records,
            max_stored_bytes=self._settings.max_stored_bytes,
            under_way=len(await self._find_open(summary.id)),
            allow_env=None if row["spec"] is None else json.loads(row["spec"])["allow_env"],
            keys=await self._list_keys(summary.id),
            connections=[Connection.model_validate_json(each["doc"]) for each in connections],
            rented=await self._find_rented(summary.id),
        )

    async def list_keys(self, named: str) -> list[AccountKey]:
        """The keys of an account, those that have ended too, the newest first.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        return await self._list_keys(str((await find_account(self._store, named))["id"]))

    async def disable(self, named: str, *, let_finish: bool = False) -> AccountDisabled:
        """Have an account's keys refused, and end what it has under way.

        Other processes are told through the store, and what they end is waited for, `END_S` at
        the most.

        Args:
            named: its id or its address.
            let_finish: have what is under way go on.

        Raises:
            RequestError: `NOT_FOUND`, `CONFLICT` for the account of notebooks right here.
        """
        account = _read(await find_account(self._store, named))
        if account.email == LOCAL_EMAIL:
            raise RequestError(
                ErrorCode.CONFLICT,
                "It is the account of notebooks on this directory, which need no key: it is"
                " disabled by whoever owns the files.",
            )
        account.disabled_at = account.disabled_at or now()
        disabled = Patch("accounts", account.id, {"disabled_at": rfc3339(account.disabled_at)})
        open_roots = await self._find_open(account.id)
        ending = set() if let_finish else {str(root["id"]) for root in open_roots}
        # In one transaction: whoever sees that it is disabled has its work cancelled, too.
        await self._store.write([disabled, *map(_cancel, ending)])
        if not let_finish:
            ending |= await self._wait_for_end(account.id)
        left = {str(root["id"]) for root in await self._find_open(account.id)}
        return AccountDisabled(
            **dict(account),
            ended=len(ending - left),
            under_way=len(left),
            rented=await self._find_rented(account.id),
        )

    async def _wait_for_end(self, account_id: str) -> set[str]:
        """Wait while a living process works on what is to be ended; the ids of all that was."""
        seen: set[str] = set()
        until = time.monotonic() + END_S
        while time.monotonic() < until:
            # A request that was let in just before may have its work accepted just after.
            await asyncio.sleep(POLL_S)
            held = await self._find_open(account_id)
            late = [str(root["id"]) for root in held if not root["cancel_requested"]]
            if late:
                await self._store.write([_cancel(root_id) for root_id in late])
            seen.update(str(root["id"]) for root in held)
            owners = [root["owner"] for root in held if root["owner"] is not None]
            if all(self._store.has_gone(owner) for owner in owners):
                break
        return seen

    async def enable(self, named: str) -> Account:
        """Have a disabled account's keys work again.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        account = _read(await find_account(self._store, named))
        account.disabled_at = None
        await self._store.write([Patch("accounts", account.id, {"disabled_at": None})])
        return account

    async def set_operator(self, named: str, *, operator: bool) -> Account:
        """Have an account share its connections with others, or with nobody.

        What it has shared is kept, and is used by others only while it may share.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        account = _read(await find_account(self._store, named))
        await self._store.write([Update("accounts", account.id, {"operator": operator})])
        return account

    async def recover(self, named: str, *, revoke_others: bool = False) -> AccountRecovered:
        """Make a key with all scopes for an account whose own was lost; it is shown this once.

        Args:
            named: its id or its address.
            revoke_others: make all its other keys invalid at once.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        account = _read(await find_account(self._store, named))
        others = [key for key in await self._list_keys(account.id) if not has_ended(key)]
        key, inserted, record = new_key(account.id, name="recovered")
        changes: list[Change] = [inserted]
        if revoke_others:
            changes += [change for other in others for change in revoke_key(other)]
        await self._store.write(changes)
        return AccountRecovered(
            **dict(record),
            api_key=key,
            account=account,
            revoked=[other.id for other in others] if revoke_others else [],
            still_good=[] if revoke_others else others,
        )

    async def _summarize(self, row: Row) -> AccountSummary:
        account = _read(row)
        counts = [await self._store.count(table, account.id) for table in TEXTS]
        spent = await self._spent(account.id, _today())
        return AccountSummary(
            **dict(account),
            operator=bool(row["operator"]),
            spent_usd_today=float(sum(spent.values())),
            records=sum(counts),
            stored_bytes=sum(await self._store.stored_bytes(account.id)),
        )

    async def _spent(self, account_id: str, first: str) -> dict[str, Decimal]:
        """What an account's work cost from a day on, by the key that asked for it."""
        days = (first, _today())
        rows = await self._store.sums("usage", ["nano"], ["key_id"], account_id, "day", days)
        return {str(row["key_id"]): dollars(row["nano"]) for row in rows}

    async def _list_keys(self, account_id: str) -> list[AccountKey]:
        spent = await self._spent(account_id, _today())
        rows = await self._store.find("api_keys", account_id=account_id)
        keys = [await complete_key(self._allowances, row) for row in reversed(rows)]
        return [
            AccountKey(**dict(key), spent_usd_today=float(spent.get(key.id, 0))) for key in keys
        ]

    async def _find_open(self, account_id: str) -> list[Row]:
        return await self._store.find("roots", account_id=account_id, open=True)

    async def _find_rented(self, account_id: str) -> list[Rented]:
        found = []
        for table in RENTED:
            for row in await self._store.find(table, account_id=account_id):
                record = Infrastructure.model_validate_json(str(row["doc"]))
                if record.status != "deleted":
                    found.append(Rented(**record.model_dump(), kind=table))
        return found


def _read(row: Row) -> Account:
    return Account.model_validate_json(str(row["doc"]))


def _cancel(root_id: str) -> Change:
    return Update("roots", root_id, {"cancel_requested": True})


def _today() -> str:
    return rfc3339(now())[:10]
