# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.connections`: pointers to the secrets of vendors."""

from collections.abc import Sequence
from typing import Literal, Self

from toolkit.client._collections import Collection
from toolkit.client._definition_views import ConnectionView
from toolkit.client._record_view import (
    ConnectionTestView,
    DiscoveredVariable,
    RecordView,
    find_variable,
)
from toolkit.client._sync.handle import Deletable
from toolkit.client._sync.resource import DeletableResource
from toolkit.client._wire.messages import drop_none
from toolkit.contract import connections
from toolkit.contract.choices import ConnectionType
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.health import Provider
from toolkit.contract.suggestions import ask_meant


class Connection(ConnectionView, Deletable[connections.Connection]):
    """A provider connection."""

    noun, resource, record_type = "Connection", "providers/connections", connections.Connection

    def share(self, accounts: Literal["all"] | Sequence[str]) -> Self:
        """Have other accounts use it, too; each is billed and limited by itself.

        Args:
            accounts: the ids of the accounts that it is shared with from now on, beside those that
                it is shared with already; or `all`, those that are yet to be opened among them.

        Raises:
            RequestError: `FORBIDDEN` for an account that is no operator's, or a key without the
                scope `admin`; `NOT_FOUND`; `CONFLICT` for some where it is shared with all.
        """
        return self._call("POST", "/share", json={"accounts": _format_members(accounts)})

    def unshare(self, account: str | None = None) -> Self:
        """Share it no longer: with one account, or with nobody.

        Work under way that has not called its vendor yet uses another connection, or fails.

        Args:
            account: the id of the account that loses it; all do, by default.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` for one account where it is shared with all.
        """
        return self._call("DELETE", "/share", params=drop_none(account=account))

    def test(self) -> ConnectionTestView:
        """Tell whether the pointer resolves and the vendor takes the key; costs nothing."""
        return ConnectionTestView(
            self._http.request_record(connections.ConnectionTest, "POST", f"{self.path}/test")
        )

    def trust(self) -> Self:
        """Use models under budgets again that billed more than was reserved for them.

        It names them as `overbilled`; nobody else takes them off that list.
        """
        return self._call("POST", "/trust")


class Connections(DeletableResource[Connection]):
    """`client.connections`."""

    handle = Connection

    def create(
        self,
        provider: str,
        connection_type: ConnectionType,
        secret_ref: str,
        *,
        share: Literal["all"] | Sequence[str] | None = None,
    ) -> Connection:
        """Register a pointer to a secret: the *name* of a variable, never its value.

        The service tests it for free; `warning` has the fault that it found.

        Args:
            provider: a vendor's id, such as `openai`.
            connection_type: `environment` or `aws_secrets_manager`.
            secret_ref: the name of the variable, or of the secret.
            share: the ids of accounts that may use it, too, or `all`; for operators.

        Raises:
            RequestError: `INVALID_REQUEST`; whatever `share` refuses.
        """
        body = {
            "provider": provider,
            "connection_type": connection_type,
            "secret_ref": secret_ref,
            **({} if share is None else {"share": _format_members(share)}),
        }
        return self._create(body)

    def share(
        self,
        id: str,
        accounts: Literal["all"] | Sequence[str],
    ) -> Connection:
        """Have other accounts use a connection, too; each is billed and limited by itself.

        Args:
            id: of a connection of an operator's account.
            accounts: the ids of the accounts that it is shared with from now on, beside those that
                it is shared with already; or `all`, those that are yet to be opened among them.

        Raises:
            RequestError: `FORBIDDEN` for an account that is no operator's, or a key without the
                scope `admin`; `NOT_FOUND`; `CONFLICT` for some where it is shared with all.
        """
        return self._call("POST", id, "/share", {"accounts": _format_members(accounts)})

    def unshare(self, id: str, account: str | None = None) -> Connection:
        """Share a connection no longer: with one account, or with nobody.

        Work under way that has not called its vendor yet uses another connection, or fails.

        Args:
            id: of the connection.
            account: the id of the account that loses it; all do, by default.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` for one account where it is shared with all.
        """
        path = f"/{self.handle.resource}/{id}/share"
        params = drop_none(account=account)
        record = self._http.request_record(self.handle.record_type, "DELETE", path, params=params)
        return self._wrap(record)

    def discover(self) -> Collection[RecordView[DiscoveredVariable]]:
        """Find the vendors' conventional variables set in this process, and those connected.

        Connect those you want by `connect`. A service elsewhere reads its own environment, so a
        variable set here helps only where both are the same process.
        """
        page = self._http.request_page(Provider, "/providers")
        rows = [find_variable(provider) for provider in page.records]
        return Collection([RecordView(row, "Variable") for row in rows], "conventional variables")

    def connect(self, *providers: str) -> Collection[Connection]:
        """Register the conventional variables of vendors, such as `connect("openai")`.

        Args:
            *providers: vendors; `all` for those that are not connected and whose variable is set.

        Raises:
            RequestError: `INVALID_REQUEST` for a vendor that is not in the catalogue.
        """
        found = [row.record for row in self.discover()]
        known = {one.provider: one.variable for one in found}
        if providers == ("all",):
            providers = tuple(one.provider for one in found if one.set and not one.connected)
        for provider in providers:
            if provider not in known:
                told = f"Connect one of {', '.join(known)}. {ask_meant(provider, known)}"
                raise RequestError(ErrorCode.INVALID_REQUEST, told.rstrip())
        made = [self.create(name, "environment", known[name]) for name in providers]
        return Collection(made, "connections")

    def test(self, id: str) -> ConnectionTestView:
        """Tell whether the pointer resolves and the vendor takes the key; costs nothing."""
        path = f"/providers/connections/{id}/test"
        return ConnectionTestView(
            self._http.request_record(connections.ConnectionTest, "POST", path)
        )

    def trust(self, id: str) -> Connection:
        """Use models under budgets again that billed more than was reserved for them.

        A connection names them as `overbilled`; nobody else takes them off that list.
        """
        return self._call("POST", id, "/trust")


def _format_members(accounts: Literal["all"] | Sequence[str]) -> str | list[str]:
    """Return the accounts that a connection is shared with, as the wire has them."""
    return accounts if isinstance(accounts, str) else list(accounts)
