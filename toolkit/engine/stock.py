"""What an account keeps at a GPU cloud: written down before the vendor is asked, never orphaned."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from toolkit.contract.base import ErrorInfo, now, rfc3339
from toolkit.contract.connections import Connection
from toolkit.contract.endpoints import Infrastructure, InfrastructureStatus
from toolkit.contract.errors import ErrorCode, RequestError, ToolkitError
from toolkit.engine.core import Core
from toolkit.engine.driver import NO_HOOKS
from toolkit.engine.once import accept
from toolkit.plugins import Access, Operation, Reply, Vendor, VendorFault
from toolkit.store import Insert, Row, Update

K = TypeVar("K", bound=Infrastructure)


class Stock(Generic[K]):
    """One kind of infrastructure: its table, its records, and the vendor that has it.

    Args:
        table: where the records are.
        word: what one is called in messages.
        record: the contract's model of one.
        creation: the operation that makes one; vendors with a flow for it offer the kind.
    """

    def __init__(
        self, core: Core, table: str, word: str, record: type[K], creation: type[Operation[Any]]
    ) -> None:
        self._core = core
        self._table = table
        self._word = word
        self._record = record
        self._creation = creation

    async def create(self, account_id: str, record: K, creation: Operation[Any]) -> Reply | None:
        """Write a record down, then have the vendor make the thing.

        Returns:
            the vendor's answer; none where it refused, and the record says why.

        Raises:
            RequestError: `CREDENTIALS_MISSING`.
        """
        vendor, connection = await self._cloud(account_id)
        row: dict[str, object] = {
            "id": record.id,
            "account_id": account_id,
            "status": record.status,
            "vendor_id": None,
            "connection_id": connection.id,
            "created_at": rfc3339(now()),
            "doc": record.model_dump_json(),
            "spec": "{}",
        }
        await accept(self._core, [Insert(self._table, row)], record)
        try:
            return await self._ask(vendor, connection, creation)
        except (VendorFault, ToolkitError) as error:
            record.error = ErrorInfo(code=error.code.name, message=error.message)
            await self.save(record, "failed")
            return None

    async def get(self, account_id: str, record_id: str) -> tuple[K, str | None]:
        """A record, and the vendor's own id of the thing.

        Raises:
            RequestError: `NOT_FOUND`, for one that was deleted too.
        """
        row = await self._core.owned(self._table, self._word, account_id, record_id)
        vendor_id = row["vendor_id"]
        return self._read(row), None if vendor_id is None else str(vendor_id)

    async def page(self, account_id: str, limit: int, before: str | None) -> list[K]:
        """A page of records, newest first."""
        rows = await self._core.store.page(
            self._table, account_id, limit=limit, before=before, without="deleted"
        )
        return [self._read(row) for row in rows]

    async def save(self, record: K, status: InfrastructureStatus, **columns: object) -> None:
        """Write a record down as it stands now."""
        record.status = status
        values = {"status": status, "doc": record.model_dump_json(), **columns}
        await self._core.store.write([Update(self._table, record.id, values)])

    async def ask(self, account_id: str, operation: Operation[Any]) -> Reply:
        """Ask the vendor about what it made.

        Raises:
            VendorFault: its failure.
            RequestError: `CREDENTIALS_MISSING`.
        """
        return await self._ask(*(await self._cloud(account_id)), operation)

    async def delete(
        self, account_id: str, record_id: str, deletion: Callable[[str], Operation[Any]]
    ) -> K:
        """Have the vendor destroy it; the answer is its last state.

        Raises:
            RequestError: `NOT_FOUND`, or `CONFLICT` when the vendor did not do it.
        """
        record, vendor_id = await self.get(account_id, record_id)
        if vendor_id is not None:
            place = await self._cloud(account_id)
            await self.save(record, "deleting")
            try:
                await self._ask(*place, deletion(vendor_id))
            except VendorFault as fault:
                raise RequestError(
                    ErrorCode.CONFLICT, f"The vendor did not delete it: {fault.message}"
                ) from None
        record.deleted = True
        await self.save(record, "deleted")
        return record

    def _read(self, row: Row) -> K:
        return self._record.model_validate_json(str(row["doc"]))

    async def _cloud(self, account_id: str) -> tuple[Vendor, Connection]:
        """The vendor that offers this, and the account's connection to it."""
        offering = [
            vendor
            for vendor in self._core.registry.vendors.values()
            if self._creation.kind in vendor.infrastructure
        ]
        connections = await self._core.connections(account_id)
        for vendor in offering:
            if vendor.id in connections:
                return vendor, connections[vendor.id]
        names = ", ".join(vendor.id for vendor in offering)
        raise RequestError(
            ErrorCode.CREDENTIALS_MISSING, f"This needs a connection: register {names}."
        )

    async def _ask(
        self, vendor: Vendor, connection: Connection, operation: Operation[Any]
    ) -> Reply:
        access: Access = await self._core.access(vendor, connection, "")
        flow = vendor.infrastructure[operation.kind](operation, access)
        timeouts = self._core.timeouts(vendor.id)
        reply: Reply = await self._core.driver.run(flow, NO_HOOKS, timeouts=timeouts, via=vendor.id)
        return reply
