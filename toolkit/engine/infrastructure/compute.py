"""Compute: GPU pods, rented by the hour at the GPU cloud that the account has connected."""

from contextlib import suppress

from toolkit.contract.base import ErrorInfo, now
from toolkit.contract.compute import Compute, ComputeCreate
from toolkit.contract.endpoints import InfrastructureStatus
from toolkit.contract.errors import ErrorCode, ServiceError, ToolkitError
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.money import to_wire_usd
from toolkit.engine.context import EngineContext
from toolkit.engine.infrastructure.catalog import Catalog
from toolkit.engine.infrastructure.managed_resource import ManagedResource, make_vendor_name
from toolkit.engine.infrastructure.resource_refs import resolve_refs
from toolkit.engine.request_context import RequestContext
from toolkit.plugins import ProviderError
from toolkit.plugins.infrastructure import (
    PodCreation,
    PodReading,
    PodState,
    PodStatus,
)

_STATUSES: dict[PodStatus, InfrastructureStatus] = {
    "creating": "creating",
    "running": "ready",
    "stopped": "failed",
    "failed": "failed",
    "terminated": "failed",
}


class Computes(ManagedResource[Compute, PodState]):
    """The operations of `/v1/compute`: GPU pods."""

    table = "compute"
    creation = PodCreation
    resource = "pod"

    def __init__(self, core: EngineContext, catalog: Catalog) -> None:
        super().__init__(core, core.records.compute)
        self._catalog = catalog

    async def create(self, context: RequestContext, request: ComputeCreate) -> Compute:
        """Rent a pod; its status is `creating` until its container runs.

        Raises:
            RequestError: `FORBIDDEN` for a key with an allowance; `CREDENTIALS_MISSING`;
                `NOT_FOUND` for an unknown template or storage, `CONFLICT` if either is not ready;
                `INVALID_REQUEST` for a GPU that is not in the catalogue, or a template for
                endpoints.
        """
        await self._core.allowances.check_renting(context)
        refs = await resolve_refs(
            self._core,
            context.account_id,
            request.storage_id,
            request.template_id,
            serverless=False,
        )
        await self._catalog.check_gpu(context.scope, request.gpu_type)
        compute = Compute(id=new_id(Prefix.COMPUTE), created_at=now(), **request.model_dump())
        creation = PodCreation(
            name=make_vendor_name(compute),
            gpu_id=compute.gpu_type,
            image=compute.image,
            template_id=refs.template_id,
            volume_id=refs.volume_id,
            data_center=refs.data_center,
        )
        await self._create_at_vendor(context, compute, creation, refs.own_ids)
        return compute

    async def get(self, context: RequestContext, compute_id: str) -> Compute:
        """Return a pod; while it is being created, ask its vendor for the state and save it.

        If the vendor does not answer, the last known state is returned.

        Raises:
            RequestError: `NOT_FOUND`, also for a deleted pod.
        """
        row = await self._records.get_row(context.scope, compute_id)
        compute = self._records.read(row)
        if compute.status != "creating" or row["vendor_id"] is None:
            return compute
        try:
            place = await self._find_place(row)
            reading = PodReading(vendor_id=str(row["vendor_id"]))
            state = await self._core.ask_vendor(*place, reading)
        except (ProviderError, ToolkitError) as error:
            is_gone = isinstance(error, ProviderError) and error.status == 404
            if not is_gone or not await self._is_unchanged(row):
                return compute  # its state is unknown now: return the last known state
            message = "The pod no longer exists at its vendor."
            compute.error = ErrorInfo(code=ErrorCode.PROVIDER_UNAVAILABLE.name, message=message)
            with suppress(ServiceError):  # the answer is still correct; the next read saves it
                await self._save(compute, "failed")
        else:
            if await self._is_unchanged(row):
                with suppress(ServiceError):
                    await self._record_state(compute, state)
        return compute

    async def _record_state(self, record: Compute, state: PodState) -> None:
        """Save a pod's price and status from its vendor's reply; a stopped pod counts as failed."""
        if state.usd_per_hour is not None:
            record.cost_per_hour_usd = to_wire_usd(state.usd_per_hour)
        status = _STATUSES[state.status]
        record.status_detail = None
        if status == "failed":
            message = f"The pod is {state.status} at its vendor."
            record.error = ErrorInfo(code=ErrorCode.PROVIDER_UNAVAILABLE.name, message=message)
        await self._save(record, status, vendor_id=state.vendor_id)
