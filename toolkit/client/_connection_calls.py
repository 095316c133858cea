"""Sharing and trusting connections, as far as both clients do it alike."""

from collections.abc import Sequence
from typing import Literal, TypeVar

from toolkit.client._resource_calls import DeletableCalls, HandleCalls
from toolkit.client._wire.messages import drop_none
from toolkit.contract.choices import ConnectionType

H = TypeVar("H")  # a handle, or for the async client what is awaited for one


class ConnectionHandleCalls(HandleCalls[H]):
    """The calls of a connection."""

    def share(self, accounts: Literal["all"] | Sequence[str]) -> H:
        """Have other accounts use it, too; each is billed and limited by itself.

        Args:
            accounts: the ids of the accounts that it is shared with from now on, beside those that
                it is shared with already; or `all`, those that are yet to be opened among them.

        Raises:
            RequestError: `FORBIDDEN` for an account that is no operator's, or a key without the
                scope `admin`; `NOT_FOUND`; `CONFLICT` for some where it is shared with all.
        """
        return self._call("POST", "/share", json={"accounts": _format_members(accounts)})

    def unshare(self, account: str | None = None) -> H:
        """Share it no longer: with one account, or with nobody.

        Work under way that has not called its vendor yet uses another connection, or fails.

        Args:
            account: the id of the account that loses it; all do, by default.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` for one account where it is shared with all.
        """
        return self._call("DELETE", "/share", params=drop_none(account=account))

    def trust(self) -> H:
        """Use models under budgets again that billed more than was reserved for them.

        It names them as `overbilled`; nobody else takes them off that list.
        """
        return self._call("POST", "/trust")


class ConnectionCalls(DeletableCalls[H]):
    """The calls of `client.connections`."""

    def create(
        self,
        provider: str,
        connection_type: ConnectionType,
        secret_ref: str,
        *,
        share: Literal["all"] | Sequence[str] | None = None,
    ) -> H:
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

    def share(self, id: str, accounts: Literal["all"] | Sequence[str]) -> H:
        """Have other accounts use a connection, too; each is billed and limited by itself.

        Args:
            id: of a connection of an operator's account.
            accounts: the ids of the accounts that it is shared with from now on, beside those that
                it is shared with already; or `all`, those that are yet to be opened among them.

        Raises:
            RequestError: `FORBIDDEN` for an account that is no operator's, or a key without the
                scope `admin`; `NOT_FOUND`; `CONFLICT` for some where it is shared with all.
        """
        return self._call("POST", id, "/share", json={"accounts": _format_members(accounts)})

    def unshare(self, id: str, account: str | None = None) -> H:
        """Share a connection no longer: with one account, or with nobody.

        Work under way that has not called its vendor yet uses another connection, or fails.

        Args:
            id: of the connection.
            account: the id of the account that loses it; all do, by default.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` for one account where it is shared with all.
        """
        return self._call("DELETE", id, "/share", params=drop_none(account=account))

    def trust(self, id: str) -> H:
        """Use models under budgets again that billed more than was reserved for them.

        A connection names them as `overbilled`; nobody else takes them off that list.
        """
        return self._call("POST", id, "/trust")


def _format_members(accounts: Literal["all"] | Sequence[str]) -> str | list[str]:
    """Return the accounts that a connection is shared with, as the wire has them."""
    return accounts if isinstance(accounts, str) else list(accounts)
