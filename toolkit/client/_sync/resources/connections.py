# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.connections`: pointers to the secrets of vendors."""

from toolkit.client._collections import Collection
from toolkit.client._connection_calls import ConnectionCalls, ConnectionHandleCalls
from toolkit.client._definition_views import ConnectionView
from toolkit.client._record_view import (
    ConnectionTestView,
    DiscoveredVariable,
    RecordView,
    find_variable,
)
from toolkit.client._replies import Reply
from toolkit.client._sync.handle import Deletable
from toolkit.client._sync.resource import Resource
from toolkit.contract import connections
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.health import Provider
from toolkit.contract.suggestions import ask_meant


class Connection(
    ConnectionView,
    Deletable[connections.Connection],
    ConnectionHandleCalls[Reply["Connection"]],
):
    """A provider connection."""

    noun, resource, record_type = "Connection", "providers/connections", connections.Connection

    def test(self) -> ConnectionTestView:
        """Check whether the pointer resolves and the vendor takes the key; costs nothing."""
        return self._http.request_view(
            ConnectionTestView, connections.ConnectionTest, "POST", f"{self.path}/test"
        )


class Connections(ConnectionCalls[Reply[Connection]], Resource[Connection]):
    """`client.connections`."""

    handle = Connection

    def discover(self) -> Collection[RecordView[DiscoveredVariable]]:
        """Find the vendors' conventional variables set in this process, and those connected.

        Connect the vendors that you want by `connect`. A remote service reads its own environment,
        so a variable set here helps only if both are the same process.
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
        records = [row.record for row in self.discover()]
        variables = {record.provider: record.variable for record in records}
        if providers == ("all",):
            providers = tuple(
                record.provider for record in records if record.set and not record.connected
            )
        for provider in providers:
            if provider not in variables:
                hint = f"Connect one of {', '.join(variables)}. {ask_meant(provider, variables)}"
                raise RequestError(ErrorCode.INVALID_REQUEST, hint.rstrip())
        handles = [self.create(name, "environment", variables[name]) for name in providers]
        return Collection(handles, "connections")

    def test(self, id: str) -> ConnectionTestView:
        """Check whether the pointer resolves and the vendor takes the key; costs nothing."""
        path = f"/providers/connections/{id}/test"
        return self._http.request_view(ConnectionTestView, connections.ConnectionTest, "POST", path)
