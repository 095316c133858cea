"""Base of the kinds of resources at a GPU cloud: table, records, and vendor."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from toolkit.contract.base import format_rfc3339, now
from toolkit.contract.connections import Connection
from toolkit.contract.endpoints import Infrastructure, InfrastructureStatus
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.engine.context import EngineContext
from toolkit.plugins import Operation, Reply, Vendor
from toolkit.plugins.infrastructure import ResourceListing, ResourceState
from toolkit.store import Change, InsertRow, Repository, Row

K = TypeVar("K", bound=Infrastructure)
S = TypeVar("S", bound=ResourceState)
R = TypeVar("R", bound=Reply)

MAX_NAME_CHARS = 160  # the part of our name in the vendor's, which also contains the id


class ResourceType(Generic[K, S]):
    """A kind of resource at a GPU cloud; a subclass defines the kind and what goes with it.

    Attributes:
        table: the table of its records.
        creation: the operation that creates one; vendors with a flow for it offer the kind.
        listing: the operation that lists them.
    """

    table: ClassVar[str]
    creation: ClassVar[type[Operation[Any]]]
    listing: Operation[ResourceListing[S]]

    def __init__(self, core: EngineContext, records: Repository[K]) -> None:
        self._core = core
        self._records = records

    # Hooks for subclasses.

    async def _make_deletion(self, record: K, vendor_id: str) -> Operation[Any]:
        """Return the operation that destroys a resource."""
        raise NotImplementedError

    def _is_listed(self, record: K) -> bool:  # noqa: ARG002
        """Tell whether lists include a record."""
        return True

    def _get_reference(self, row: Row) -> str:
        """Return the id that the resource's name at the vendor contains."""
        return str(row["id"])

    async def _check_deletable(self, account_id: str, record: K) -> None:
        """Refuse to delete a resource that is in use."""

    async def _record_state(self, record: K, state: S) -> None:
        """Record that the vendor has created the resource."""
        await self._save(record, "ready", vendor_id=state.vendor_id)

    async def _make_companion_changes(
        self,
        record: K,  # noqa: ARG002
        status: InfrastructureStatus,  # noqa: ARG002
    ) -> Sequence[Change]:
        """Return the changes to write together with a new status of a resource."""
        return ()

    # Helpers for subclasses.

    def _make_insert(
        self, account_id: str, record: K, connection: Connection, **spec: object
    ) -> InsertRow:
        return self._records.make_insert(
            account_id,
            record,
            status=record.status,
            vendor_id=None,
            connection_id=connection.id,
            spec=self._make_spec({**spec, "at": format_rfc3339(now())}),
        )

    async def _save(
        self,
        record: K,
        status: InfrastructureStatus,
        along: Sequence[Change] | None = None,
        **columns: object,
    ) -> None:
        """Save a record with its new status, and the changes that go `along` with it."""
        if status not in ("creating", "deleting"):
            record.status_detail = None
        record.status = status
        if status == "deleted":
            record.deleted_at = now()
        along = await self._make_companion_changes(record, status) if along is None else along
        saved = self._records.make_update(record, status=status, **columns)
        await self._core.store.write([saved, *along])

    async def _ask(self, row: Row, operation: Operation[R]) -> R:
        """Ask the vendor of a resource.

        Raises:
            ProviderError: its failure.
            RequestError: `CREDENTIALS_MISSING`.
            WorkError: `SECRET_UNRESOLVED`.
        """
        vendor, connection = await self._find_place(row)
        return await self._core.ask_vendor(vendor, connection, operation)

    async def _is_unchanged(self, row: Row) -> bool:
        """Tell whether a record is unchanged since it was read: it may have been deleted."""
        current = await self._core.store.get_row(self.table, str(row["id"]), "doc")
        return current is not None and bool(current["doc"] == row["doc"])

    def _make_spec(self, more: Mapping[str, object]) -> str:
        """Return the engine's notes on a record: who called the vendor, when, and which cloud."""
        ours = {"owner": self._core.store.owner, "sandbox": self._core.settings.sandbox}
        return json.dumps({**more, **ours})

    async def _find_place(self, row: Row) -> tuple[Vendor, Connection]:
        """Find a resource's vendor and connection; once that is deleted, one with an equal pointer.

        Another key may belong to another account at the vendor, where it would seem to be gone.

        Raises:
            RequestError: `CREDENTIALS_MISSING`.
        """
        connection = await self._core.find_renter(row)
        vendor = self._core.registry.vendors.get(connection.provider)
        if vendor is not None and self.creation.kind in vendor.infrastructure:
            return vendor, connection
        raise RequestError(
            ErrorCode.CREDENTIALS_MISSING,
            "Connect its vendor again, by the pointer it was made by.",
        )


def make_vendor_name(record: Infrastructure) -> str:
    """Return a resource's name at the vendor: its own name, and its id to recognise it by."""
    return f"{record.name[:MAX_NAME_CHARS]}-{record.id}"
