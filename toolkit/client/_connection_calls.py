"""Calls about connections, which both clients share."""

import os
from collections.abc import Sequence
from typing import Literal, TypeVar

from toolkit.client._resource_calls import DeletableCalls, HandleCalls
from toolkit.client._wire.messages import drop_none
from toolkit.contract.base import Record
from toolkit.contract.choices import ConnectionType
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.health import Provider
from toolkit.contract.suggestions import ask_meant

H = TypeVar("H")  # a handle; in the async client, a coroutine that returns one


class ConnectionHandleCalls(HandleCalls[H]):
    """The methods of a connection's handle, for the sync and the async client."""

    def share(self, accounts: Literal["all"] | Sequence[str]) -> H:
        """Share the connection with other accounts, each with its own bill and limits.

        Args:
            accounts: ids of further accounts that share it; or `all`, for every present and future
                account.

        Raises:
            RequestError: `FORBIDDEN` unless the account is an operator's and the key has the scope
                `admin`; `NOT_FOUND`; `CONFLICT` for single accounts if all share it.
        """
        return self._call("POST", "/share", json={"accounts": _format_members(accounts)})

    def unshare(self, account: str | None = None) -> H:
        """Stop sharing the connection, with one account or with all.

        Running work that has not called its vendor yet uses another connection, or fails.

        Args:
            account: id of the account that loses access. Default: all accounts.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` for one account if all share it.
        """
        return self._call("DELETE", "/share", params=drop_none(account=account))

    def trust(self) -> H:
        """Let work with a budget use the models in `overbilled` again.

        These models billed more than was reserved for them. Only this call clears the list.
        """
        return self._call("POST", "/trust")


class ConnectionCalls(DeletableCalls[H]):
    """The methods of `client.connections`, for the sync and the async client."""

    def create(
        self,
        provider: str,
        connection_type: ConnectionType,
        secret_ref: str,
        *,
        share: Literal["all"] | Sequence[str] | None = None,
    ) -> H:
        """Register a pointer to a secret: the *name* of a variable, never its value.

        The service tests the connection for free, and reports a fault in `warning`.

        Args:
            provider: id of a vendor, such as `openai`.
            connection_type: `environment` or `aws_secrets_manager`.
            secret_ref: name of the variable or of the secret.
            share: ids of accounts that share it, or `all`. Only operators may set this.

        Raises:
            RequestError: `INVALID_REQUEST`, and the errors of `share`.
        """
        body = {
            "provider": provider,
            "connection_type": connection_type,
            "secret_ref": secret_ref,
            **({} if share is None else {"share": _format_members(share)}),
        }
        return self._create(body)

    def share(self, id: str, accounts: Literal["all"] | Sequence[str]) -> H:
        """Share a connection with other accounts, each with its own bill and limits.

        Args:
            id: id of a connection of an operator's account.
            accounts: ids of further accounts that share it; or `all`, for every present and future
                account.

        Raises:
            RequestError: `FORBIDDEN` unless the account is an operator's and the key has the scope
                `admin`; `NOT_FOUND`; `CONFLICT` for single accounts if all share it.
        """
        return self._call("POST", id, "/share", json={"accounts": _format_members(accounts)})

    def unshare(self, id: str, account: str | None = None) -> H:
        """Stop sharing a connection, with one account or with all.

        Running work that has not called its vendor yet uses another connection, or fails.

        Args:
            id: id of the connection.
            account: id of the account that loses access. Default: all accounts.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` for one account if all share it.
        """
        return self._call("DELETE", id, "/share", params=drop_none(account=account))

    def trust(self, id: str) -> H:
        """Let work with a budget use the models in a connection's `overbilled` again.

        These models billed more than was reserved for them. Only this call clears the list.
        """
        return self._call("POST", id, "/trust")


def _format_members(accounts: Literal["all"] | Sequence[str]) -> str | list[str]:
    """Return the accounts to share with as the service takes them: `all`, or a list of ids."""
    return accounts if isinstance(accounts, str) else list(accounts)


class DiscoveredVariable(Record):
    """A vendor's conventional variable, as this process sees it.

    Attributes:
        set: whether the variable is set here; its value is not read.
    """

    provider: str
    title: str
    variable: str
    set: bool
    connected: bool


def find_variable(provider: Provider) -> DiscoveredVariable:
    """Report whether a vendor's conventional variable is set here, and connected."""
    variable = provider.conventional_variable
    return DiscoveredVariable(
        provider=provider.id,
        title=provider.title,
        variable=variable,
        set=bool(os.environ.get(variable)),
        connected=provider.connected,
    )


def choose_variables(
    providers: Sequence[str], known: Sequence[DiscoveredVariable]
) -> dict[str, str]:
    """Choose the variables of the vendors to connect, by vendor; `all` stands for all new ones.

    Raises:
        RequestError: `INVALID_REQUEST` for an unknown vendor.
    """
    variables = {vendor.provider: vendor.variable for vendor in known}
    if tuple(providers) == ("all",):
        providers = [vendor.provider for vendor in known if vendor.set and not vendor.connected]
    for provider in providers:
        if provider not in variables:
            hint = f"Connect one of {', '.join(variables)}. {ask_meant(provider, variables)}"
            raise RequestError(ErrorCode.INVALID_REQUEST, hint.rstrip())
    return {provider: variables[provider] for provider in providers}
