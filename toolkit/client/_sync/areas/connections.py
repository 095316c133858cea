# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.connections`: pointers to the secrets of vendors."""

from toolkit.client import _wire
from toolkit.client._collections import Collection
from toolkit.client._shown import ConnectionTestView, Discovered, Shown
from toolkit.client._sync.area import Area
from toolkit.client._sync.handle import Handle
from toolkit.contract import connections
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.health import Provider


class Connection(Handle[connections.Connection]):
    """A provider connection."""

    kind, area, model = "Connection", "providers/connections", connections.Connection

    @property
    def provider(self) -> str:
        """The provider that it leads to."""
        return self.record.provider

    @property
    def connection_type(self) -> str:
        """The place its secret is in: the environment, or a secrets manager."""
        return self.record.connection_type

    @property
    def secret_ref(self) -> str:
        """The name of the secret, never the secret."""
        return self.record.secret_ref

    @property
    def warning(self) -> str | None:
        """What a free test found wrong as it was made; none if nothing, or if it was read."""
        return None if self.record.warning is None else self.record.warning.message


class Connections(Area[Connection]):
    """`client.connections`."""

    handle = Connection

    def create(self, provider: str, connection_type: str, secret_ref: str) -> Connection:
        """Register a pointer to a secret: the *name* of a variable, never its value.

        The service tests it for free; the answer's `warning` tells what it found wrong.
        """
        body = {
            "provider": provider,
            "connection_type": connection_type,
            "secret_ref": secret_ref,
        }
        return self._posted(body)

    def discover(self) -> Collection[Shown[Discovered]]:
        """Which vendors' conventional variables are set in this process, and which are connected.

        Connect those you want by `connect`. A service elsewhere reads its own environment, so what
        is set here helps only where both are the same process.
        """
        found, _ = self._http.page(Provider, "/providers")
        rows = [_wire.discovered(provider) for provider in found]
        return Collection([Shown(row, "Variable") for row in rows], "conventional variables")

    def connect(self, *providers: str) -> Collection[Connection]:
        """Register the conventional variables of vendors, such as `connect("openai")`.

        Raises:
            RequestError: `INVALID_REQUEST` for a vendor that is not in the catalogue.
        """
        known = {row.record.provider: row.record.variable for row in self.discover()}
        for provider in providers:
            if provider not in known:
                raise RequestError(ErrorCode.INVALID_REQUEST, f"Connect one of {', '.join(known)}.")
        made = [self.create(name, "environment", known[name]) for name in providers]
        return Collection(made, "connections")

    def test(self, id: str) -> ConnectionTestView:  # noqa: A002
        """Whether the pointer resolves and the vendor takes the key; costs nothing."""
        path = f"/providers/connections/{id}/test"
        return ConnectionTestView(self._http.data(connections.ConnectionTest, "POST", path))

    def trust(self, id: str) -> Connection:  # noqa: A002
        """Use models under budgets again that billed more than was reserved for them.

        A connection names them as `overbilled`; nobody else takes them off that list.
        """
        return self._asked("POST", id, "/trust")

    def delete(self, id: str) -> Connection:  # noqa: A002
        """Forget a connection."""
        return self._asked("DELETE", id)
