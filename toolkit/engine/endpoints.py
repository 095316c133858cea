"""Serverless endpoints: written down before the vendor is asked, so that none is orphaned."""

from typing import Any

from toolkit.contract.base import ErrorInfo, now, rfc3339
from toolkit.contract.connections import Connection
from toolkit.contract.endpoints import Endpoint, EndpointCreate
from toolkit.contract.errors import ErrorCode, RequestError, ToolkitError, not_found
from toolkit.contract.ids import Prefix, new_id
from toolkit.engine.core import Core
from toolkit.engine.driver import NO_HOOKS
from toolkit.plugins import Access, Operation, Reply, Vendor, VendorFault
from toolkit.plugins.infrastructure import EndpointCreation, EndpointDeletion, EndpointState
from toolkit.store import Insert, Update

DEFAULT_POOL = "ADA_24"


class Endpoints:
    """`/v1/endpoints`."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def create(self, account_id: str, request: EndpointCreate) -> Endpoint:
        """Create an endpoint at the GPU cloud that the account has connected.

        Raises:
            RequestError: `CREDENTIALS_MISSING`; `NOT_FOUND` for a template or storage that is not
                there; `INVALID_REQUEST` for fewer workers at most than at least.
        """
        if request.workers_min > request.workers_max:
            raise RequestError(ErrorCode.INVALID_REQUEST, "workers_min is more than workers_max.")
        for what in ("template", "storage"):
            named = getattr(request, f"{what}_id")
            if named is not None:
                raise not_found(what, named)
        vendor, connection = await self._cloud(account_id)
        endpoint = Endpoint(
            id=new_id(Prefix.ENDPOINT),
            created_at=now(),
            **{**request.model_dump(), "gpu_ids": request.gpu_ids or DEFAULT_POOL},
        )
        row: dict[str, object] = {
            "id": endpoint.id,
            "account_id": account_id,
            "status": endpoint.status,
            "vendor_id": None,
            "connection_id": connection.id,
            "created_at": rfc3339(endpoint.created_at),
            "doc": endpoint.model_dump_json(),
            "spec": "{}",
        }
        await self._core.store.write([Insert("endpoints", row)])
        creation = EndpointCreation(
            name=endpoint.name,
            gpu_pool=endpoint.gpu_ids,
            workers_min=endpoint.workers_min,
            workers_max=endpoint.workers_max,
            image=endpoint.image,
            reference=endpoint.id,
        )
        try:
            state = await self._ask(vendor, connection, creation)
        except (VendorFault, ToolkitError) as error:
            endpoint.error = ErrorInfo(code=error.code.name, message=error.message)
            await self._save(endpoint, "failed")
            return endpoint
        if not isinstance(state, EndpointState):
            raise TypeError(f"{vendor.id} answered a creation with {type(state).__name__}")
        await self._save(endpoint, "ready", vendor_id=state.vendor_id)
        return endpoint

    async def get(self, account_id: str, endpoint_id: str) -> Endpoint:
        """One endpoint.

        Raises:
            RequestError: `NOT_FOUND`, for one that was deleted too.
        """
        return Endpoint.model_validate_json(str((await self._row(account_id, endpoint_id))["doc"]))

    async def list(self, account_id: str, limit: int, before: str | None) -> list[Endpoint]:
        """A page of endpoints, newest first."""
        rows = await self._core.store.page("endpoints", account_id, limit=limit, before=before)
        return [
            Endpoint.model_validate_json(str(row["doc"]))
            for row in rows
            if row["status"] != "deleted"
        ]

    async def delete(self, account_id: str, endpoint_id: str) -> Endpoint:
        """Destroy an endpoint at its vendor; the answer is its last state.

        Raises:
            RequestError: `NOT_FOUND`.
            RequestError: also `CONFLICT` when the vendor did not do it.
        """
        row = await self._row(account_id, endpoint_id)
        endpoint = Endpoint.model_validate_json(str(row["doc"]))
        if row["vendor_id"] is not None:
            vendor, connection = await self._cloud(account_id)
            await self._save(endpoint, "deleting")
            deletion = EndpointDeletion(vendor_id=str(row["vendor_id"]))
            try:
                await self._ask(vendor, connection, deletion)
            except VendorFault as error:
                raise RequestError(
                    ErrorCode.CONFLICT, f"The vendor did not delete it: {error.message}"
                ) from None
        endpoint.deleted = True
        await self._save(endpoint, "deleted")
        return endpoint

    async def _row(self, account_id: str, endpoint_id: str) -> dict[str, object]:
        row = await self._core.store.get("endpoints", endpoint_id)
        if row is None or row["account_id"] != account_id or row["status"] == "deleted":
            raise not_found("endpoint", endpoint_id)
        return row

    async def _save(self, endpoint: Endpoint, status: str, **columns: object) -> None:
        endpoint.status = status  # type: ignore[assignment]  # callers pass the model's literals
        values = {"status": status, "doc": endpoint.model_dump_json(), **columns}
        await self._core.store.write([Update("endpoints", endpoint.id, values)])

    async def _cloud(self, account_id: str) -> tuple[Vendor, Connection]:
        """The vendor that offers endpoints, and the account's connection to it."""
        offering = [
            vendor
            for vendor in self._core.registry.vendors.values()
            if EndpointCreation.kind in vendor.infrastructure
        ]
        connections = await self._core.connections(account_id)
        for vendor in offering:
            if vendor.id in connections:
                return vendor, connections[vendor.id]
        names = ", ".join(vendor.id for vendor in offering)
        raise RequestError(
            ErrorCode.CREDENTIALS_MISSING, f"An endpoint needs a connection: register {names}."
        )

    async def _ask(
        self, vendor: Vendor, connection: Connection, operation: Operation[Any]
    ) -> Reply:
        access: Access = await self._core.access(vendor, connection, "")
        flow = vendor.infrastructure[operation.kind](operation, access)
        timeouts = self._core.timeouts(vendor.id)
        reply: Reply = await self._core.driver.run(flow, NO_HOOKS, timeouts=timeouts, via=vendor.id)
        return reply
