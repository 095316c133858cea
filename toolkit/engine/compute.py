"""Compute: GPU pods, rented by the hour at the GPU cloud that the account has connected."""

from toolkit.contract.base import ErrorInfo, now
from toolkit.contract.compute import Compute, ComputeCreate
from toolkit.contract.endpoints import InfrastructureStatus
from toolkit.contract.errors import ErrorCode, ToolkitError
from toolkit.contract.ids import Prefix, new_id
from toolkit.engine.core import Core
from toolkit.engine.stock import Stock
from toolkit.plugins import Reply, VendorFault
from toolkit.plugins.infrastructure import PodAction, PodCreation, PodReading, PodState, PodStatus

_STATUSES: dict[PodStatus, InfrastructureStatus] = {
    "creating": "creating",
    "running": "ready",
    "stopped": "failed",
    "failed": "failed",
    "terminated": "failed",
}


class Computes:
    """`/v1/compute`."""

    def __init__(self, core: Core) -> None:
        self._stock = Stock(core, "compute", "compute", Compute, PodCreation)

    async def create(self, account_id: str, request: ComputeCreate) -> Compute:
        """Rent a pod; it is `creating` until its container runs.

        Raises:
            RequestError: `CREDENTIALS_MISSING`.
        """
        compute = Compute(id=new_id(Prefix.COMPUTE), created_at=now(), **request.model_dump())
        creation = PodCreation(name=compute.name, gpu_id=compute.gpu_type, image=compute.image)
        state = await self._stock.create(account_id, compute, creation)
        if isinstance(state, PodState):
            await self._stand(compute, state, vendor_id=state.vendor_id)
        return compute

    async def get(self, account_id: str, compute_id: str) -> Compute:
        """One pod; its vendor is asked how it stands until it is ready.

        Raises:
            RequestError: `NOT_FOUND`, for one that was deleted too.
        """
        compute, vendor_id = await self._stock.get(account_id, compute_id)
        if compute.status != "creating" or vendor_id is None:
            return compute
        try:
            state = await self._stock.ask(account_id, PodReading(vendor_id=vendor_id))
        except VendorFault as fault:
            if fault.status != 404:
                return compute  # how it stands is not known just now: as it stood
            message = "The pod is gone at its vendor."
            compute.error = ErrorInfo(code=ErrorCode.PROVIDER_UNAVAILABLE.name, message=message)
            await self._stock.save(compute, "failed")
        except ToolkitError:
            return compute  # its connection is gone, and a read needs none
        else:
            await self._stand(compute, state)
        return compute

    async def list(self, account_id: str, limit: int, before: str | None) -> list[Compute]:
        """A page of pods, newest first, as they stood when last looked at."""
        return await self._stock.page(account_id, limit, before)

    async def delete(self, account_id: str, compute_id: str) -> Compute:
        """Give a pod back; the answer is its last state, and nothing is billed from then on.

        Raises:
            RequestError: `NOT_FOUND`, or `CONFLICT` when the vendor did not do it.
        """
        return await self._stock.delete(
            account_id,
            compute_id,
            lambda vendor_id: PodAction(vendor_id=vendor_id, action="terminate"),
        )

    async def _stand(self, compute: Compute, state: Reply, **columns: object) -> None:
        """Write down how a pod stands."""
        if not isinstance(state, PodState):
            raise TypeError(f"a pod was described by {type(state).__name__}")
        if state.usd_per_hour is not None:
            compute.cost_per_hour_usd = float(state.usd_per_hour)
        status = _STATUSES[state.status]
        if status == "failed":
            message = f"The pod is {state.status} at its vendor."
            compute.error = ErrorInfo(code=ErrorCode.PROVIDER_UNAVAILABLE.name, message=message)
        await self._stock.save(compute, status, **columns)
