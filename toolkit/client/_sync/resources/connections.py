# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.connections`: pointers to the secrets of vendors."""

from toolkit.client._collections import Collection
from toolkit.client._connection_calls import (
    ConnectionCalls,
    ConnectionHandleCalls,
    DiscoveredVariable,
    choose_variables,
    find_variable,
)
from toolkit.client._definition_views import ConnectionView
from toolkit.client._record_view import ConnectionTestView, RecordView
from toolkit.client._replies import Reply
from toolkit.client._sync.handle import Deletable
from toolkit.client._sync.resource import Resource
from toolkit.contract import connections
from toolkit.contract.health import Provider


class Connection(
    ConnectionView,
    Deletable[connections.Connection],
    ConnectionHandleCalls[Reply["Connection"]],
):
    """A connection: a pointer to the secret that holds a vendor's key."""

    noun, resource, record_type = "Connection", "providers/connections", connections.Connection

    def test(self) -> ConnectionTestView:
        """Check whether the secret exists and the vendor accepts the key; costs nothing."""
        return self._http.request_view(
            ConnectionTestView, connections.ConnectionTest, "POST", f"{self.path}/test"
        )


class Connections(ConnectionCalls[Reply[Connection]], Resource[Connection]):
    """`client.connections`: register, test, share and delete connections."""

    handle = Connection

    def discover(self) -> Collection[RecordView[DiscoveredVariable]]:
        """List each vendor's conventional variable: whether it is set here, and connected.

        Connect the vendors that you want by `connect`. A remote service reads its own environment,
        so a variable set here helps only if both are the same process.
        """
        page = self._http.request_page(Provider, "/providers")
        rows = [find_variable(provider) for provider in page.records]
        return Collection([RecordView(row, "Variable") for row in rows], "conventional variables")

    def connect(self, *providers: str) -> Collection[Connection]:
        """Connect vendors by their conventional environment variables: `connect("openai")`.

        Args:
            *providers: vendors; `all` for those that are not connected and whose variable is set.

        Raises:
            RequestError: `INVALID_REQUEST` for a vendor that is not in the catalogue.
        """
        variables = choose_variables(providers, [row.record for row in self.discover()])
        handles = [
            self.create(provider, "environment", variable)
            for provider, variable in variables.items()
        ]
        return Collection(handles, "connections")

    def test(self, id: str) -> ConnectionTestView:
        """Check whether the secret exists and the vendor accepts the key; costs nothing."""
        path = f"/providers/connections/{id}/test"
        return self._http.request_view(ConnectionTestView, connections.ConnectionTest, "POST", path)
