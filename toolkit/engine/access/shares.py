"""Shares: the connections that an account may use, its own and those an operator shares with it.

Every use of a connection is checked here, so tenancy is decided in one place. A shared connection
names the account that it is shared with. It resolves to no secret once the share has ended
(`EngineContext.resolve_secret`), even if the object is still in use.
"""

import json
from collections.abc import Sequence
from typing import Final

from pydantic import Field

from toolkit.contract.base import format_rfc3339, now
from toolkit.contract.connections import Connection, Everyone
from toolkit.contract.errors import Detail, ErrorCode, RequestError, WorkError, build_not_found
from toolkit.engine.records import Records
from toolkit.store import (
    SHARED_WITH_ALL,
    AccountScope,
    AllAccounts,
    Change,
    ConfigurationCache,
    DeleteRow,
    ReadScope,
    ReplaceRow,
    Row,
    Store,
)

ANY_ACCOUNT: Final[Everyone] = "all"
UNSHARED_MESSAGE = (
    "The connection is no longer shared with this account, and no other is left: register one."
)
DELETED_MESSAGE = "The connection was deleted, and no other is left: register one."


class SharedConnection(Connection):
    """Another account's connection, as shared with an account that may use it.

    Attributes:
        lent_to: account that may use it; never sent to a client.
    """

    shared: bool = True
    lent_to: str = Field(exclude=True)


class Shares:
    """The connections that accounts may use, and the sharing of them by operators."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._connections = Records(store).connections
        self._lent = ConfigurationCache(store, self._load_shared)

    async def list_own(self, scope: ReadScope) -> list[tuple[Connection, Row]]:
        """List the connections of a scope (one or all accounts) with their rows, newest first."""
        rows = await self._connections.find_rows(scope)
        return [(read_connection(row), row) for row in reversed(rows)]

    async def list_shared(self, scope: ReadScope) -> Sequence[tuple[Connection, Row]]:
        """List the connections that are shared with an account and their rows, newest first.

        The health in these rows may be out of date. The list is empty for a scope of all accounts,
        because all connections are then its own.
        """
        return () if isinstance(scope, AllAccounts) else await self._lent.find(scope.account_id)

    async def _load_shared(self, account_id: str) -> Sequence[tuple[Connection, Row]]:
        rows = await self._store.list_shared_connections(account_id)
        return [
            (
                SharedConnection.model_validate(
                    {**dict(read_connection(row)), "shared": True, "lent_to": account_id}
                ),
                row,
            )
            for row in reversed(rows)
            if _can_share(row)
        ]

    async def find(self, scope: ReadScope, connection_id: str) -> Connection:
        """Find a connection by its id among a scope's own connections and those shared with it.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        own_connection = await self._connections.find(scope, connection_id)
        if own_connection is not None:
            return own_connection
        for connection, _ in await self.list_shared(scope):
            if connection.id == connection_id:
                return connection
        raise build_not_found("connection", connection_id)

    async def find_own(self, account_id: str, connection_id: str) -> Connection:
        """Find a connection that an account may change.

        Raises:
            RequestError: `NOT_FOUND`; `FORBIDDEN` for a connection that is only shared with it.
        """
        connection = await self.find(AccountScope(account_id), connection_id)
        if isinstance(connection, SharedConnection):
            raise RequestError(
                ErrorCode.FORBIDDEN,
                f"`{connection_id}` is shared with you: only its owner can change it.",
            )
        return connection

    async def check_usable(self, connection_id: str, borrower: str | None) -> None:
        """Refuse a connection that was deleted, or that is no longer shared.

        Args:
            connection_id: the connection.
            borrower: account that it is shared with; None for its owner's own use.

        Raises:
            WorkError: `CREDENTIALS_MISSING`.
        """
        row = await self._store.get_row("connections", connection_id, "deleted")
        if row is None or row["deleted"]:
            raise WorkError(ErrorCode.CREDENTIALS_MISSING, DELETED_MESSAGE)
        if borrower is not None:
            shared_connections = await self.list_shared(AccountScope(borrower))
            if all(connection.id != connection_id for connection, _ in shared_connections):
                raise WorkError(ErrorCode.CREDENTIALS_MISSING, UNSHARED_MESSAGE)

    async def show(self, connection: Connection) -> Connection:
        """Return a connection as its account may see it.

        A borrower sees no secret pointer. The owner sees the accounts that it is shared with.
        """
        if isinstance(connection, SharedConnection):
            return Connection(**{**dict(connection), "secret_ref": ""})
        rows = await self._store.find_rows("shares", connection_id=connection.id)
        account_ids = [str(row["shared_with"]) for row in rows]
        shared_with = ANY_ACCOUNT if SHARED_WITH_ALL in account_ids else account_ids or None
        return connection.model_copy(update={"shared_with": shared_with})

    async def check_operator(self, account_id: str) -> None:
        """Refuse an account that is not an operator's.

        Raises:
            RequestError: `FORBIDDEN`.
        """
        row = await self._store.get_row("accounts", account_id, "operator")
        if row is None or not row["operator"]:
            raise RequestError(
                ErrorCode.FORBIDDEN,
                "Only an operator's account can share connections: the administrator of the server"
                " can promote an account with `toolkit account promote`.",
            )

    async def make_share_changes(
        self, account_id: str, connection_id: str, accounts: Everyone | Sequence[str]
    ) -> list[Change]:
        """Return the changes that share a connection with more accounts, or with all.

        Args:
            account_id: account that owns the connection.
            connection_id: connection to share, which the same transaction may create.
            accounts: ids of accounts, or `all`, which includes accounts opened later.

        Raises:
            RequestError: `FORBIDDEN` for an account that is no operator's, `NOT_FOUND` for an
                unknown account, `INVALID_REQUEST` for the account itself, `CONFLICT` for
                some accounts if it is shared with all.
        """
        await self.check_operator(account_id)
        earlier = await self._store.find_rows("shares", connection_id=connection_id)
        if accounts == ANY_ACCOUNT:
            obsolete_rows = [row for row in earlier if row["shared_with"] != SHARED_WITH_ALL]
            put = _make_put(connection_id, SHARED_WITH_ALL)
            return [*(DeleteRow("shares", str(row["id"])) for row in obsolete_rows), put]
        if any(row["shared_with"] == SHARED_WITH_ALL for row in earlier):
            raise RequestError(
                ErrorCode.CONFLICT,
                "The connection is shared with all accounts: end that share first.",
            )
        for borrower in accounts:
            if borrower == account_id:
                raise RequestError(
                    ErrorCode.INVALID_REQUEST,
                    "The connection already belongs to this account.",
                    details=[Detail("accounts", "names the account itself")],
                )
            if await self._store.get_row("accounts", borrower, "id") is None:
                raise build_not_found("account", borrower)
        return [_make_put(connection_id, borrower) for borrower in accounts]

    async def make_unshare_changes(
        self, connection_id: str, account_id: str | None = None
    ) -> list[Change]:
        """Return the changes that end a connection's share with an account; by default, all shares.

        Raises:
            RequestError: `CONFLICT` for a single account if it is shared with all.
        """
        rows = await self._store.find_rows("shares", connection_id=connection_id)
        if account_id is not None and any(row["shared_with"] == SHARED_WITH_ALL for row in rows):
            raise RequestError(
                ErrorCode.CONFLICT,
                "The connection is shared with all accounts: end that share, then share it with"
                " single accounts.",
            )
        share_rows = [row for row in rows if account_id in (None, row["shared_with"])]
        return [DeleteRow("shares", str(row["id"])) for row in share_rows]


def find_borrower(connection: Connection) -> str | None:
    """Return the account that a shared connection is lent to, or None for its owner's own use."""
    return connection.lent_to if isinstance(connection, SharedConnection) else None


def read_connection(row: Row) -> Connection:
    """Parse the connection in a row's document."""
    return Connection.model_validate_json(str(row["doc"]))


def _can_share(row: Row) -> bool:
    """Check that the account of the owner of a shared connection is not disabled.

    Args:
        row: row of a connection, with its owner's document; the owner must be an operator.
    """
    return json.loads(str(row["owner"])).get("disabled_at") is None


def _make_put(connection_id: str, shared_with: str) -> ReplaceRow:
    row: dict[str, object] = {
        "id": f"{connection_id}|{shared_with}",
        "connection_id": connection_id,
        "shared_with": shared_with,
        "created_at": format_rfc3339(now()),
    }
    return ReplaceRow("shares", row)
