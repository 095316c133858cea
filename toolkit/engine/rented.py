"""A kind of thing at a GPU cloud: its table, its records, and the vendor that has it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from toolkit.contract.base import now, rfc3339
from toolkit.contract.connections import Connection
from toolkit.contract.endpoints import Infrastructure, InfrastructureStatus
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.engine.core import Core
from toolkit.plugins import Operation, Reply, Vendor
from toolkit.plugins.infrastructure import Listing, State
from toolkit.store import Change, Insert, Row, Update

K = TypeVar("K", bound=Infrastructure)
S = TypeVar("S", bound=State)
R = TypeVar("R", bound=Reply)

LONGEST_NAME = 160  # of ours in the vendor's, which has room for the id beside it


class Rented(Generic[K, S]):
    """What all kinds have; a subclass says what its kind is, and what goes with it.

    Attributes:
        table: where the records are.
        word: what one is called in messages.
        record: the contract's model of one.
        creation: the operation that makes one; vendors with a flow for it offer the kind.
        listing: the operation that lists them.
    """

    table: ClassVar[str]
    word: ClassVar[str]
    record: type[K]
    creation: ClassVar[type[Operation[Any]]]
    listing: Operation[Listing[S]]

    def __init__(self, core: Core) -> None:
        self._core = core

    # What subclasses may say of their kind.

    async def _deletion(self, record: K, vendor_id: str) -> Operation[Any]:
        """What destroys one."""
        raise NotImplementedError

    def _is_listed(self, record: K) -> bool:  # noqa: ARG002
        """Whether lists show it."""
        return True

    def _reference(self, row: Row) -> str:
        """The id that the vendor's name of it carries."""
        return str(row["id"])

    async def _check_deletable(self, account_id: str, record: K) -> None:
        """Refuse to delete what is in use."""

    async def _made(self, record: K, state: S) -> None:
        """Write down that the vendor has made it."""
        await self._save(record, "ready", vendor_id=state.vendor_id)

    async def _along(self, record: K, status: InfrastructureStatus) -> Sequence[Change]:  # noqa: ARG002
        """What is written together with a new status of it."""
        return ()

    # What subclasses use.

    def _inserted(
        self, account_id: str, record: K, connection: Connection, **spec: object
    ) -> Insert:
        row: dict[str, object] = {
            "id": record.id,
            "account_id": account_id,
            "status": record.status,
            "vendor_id": None,
            "connection_id": connection.id,
            "created_at": rfc3339(now()),
            "doc": record.model_dump_json(),
            "spec": self._spec({**spec, "at": rfc3339(now())}),
        }
        return Insert(self.table, row)

    async def _save(
        self,
        record: K,
        status: InfrastructureStatus,
        along: Sequence[Change] | None = None,
        **columns: object,
    ) -> None:
        """Write a record down as it stands now, with what goes `along` with its new status."""
        if status not in ("creating", "deleting"):
            record.status_detail = None
        record.status = status
        if status == "deleted":
            record.deleted_at = now()
        values = {"status": status, "doc": record.model_dump_json(), **columns}
        along = await self._along(record, status) if along is None else along
        await self._core.store.write([Update(self.table, record.id, values), *along])

    async def _ask(self, row: Row, operation: Operation[R]) -> R:
        """Ask the vendor that has it.

        Raises:
            VendorFault: its failure.
            RequestError: `CREDENTIALS_MISSING`.
            WorkError: `SECRET_UNRESOLVED`.
        """
        vendor, connection = await self._place(row)
        return await self._core.ask(vendor, connection, operation)

    async def _is_as(self, row: Row) -> bool:
        """Whether a record is still as it was read: another request may have deleted it."""
        current = await self._core.store.get(self.table, str(row["id"]), "doc")
        return current is not None and bool(current["doc"] == row["doc"])

    def _read(self, row: Row) -> K:
        return self.record.model_validate_json(str(row["doc"]))

    def _spec(self, more: Mapping[str, object]) -> str:
        """What the engine notes beside a record: who asked the vendor, when, and which cloud."""
        ours = {"owner": self._core.store.owner, "sandbox": self._core.settings.sandbox}
        return json.dumps({**more, **ours})

    async def _place(self, row: Row) -> tuple[Vendor, Connection]:
        """The vendor and connection it was made by; once that is deleted, an equal pointer's.

        Another key may be another account's at the vendor, where it would seem to be gone.

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


def vendor_name(record: Infrastructure) -> str:
    """What a vendor is to call it: its name, and its id to know it by."""
    return f"{record.name[:LONGEST_NAME]}-{record.id}"
