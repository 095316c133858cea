"""Serverless endpoints: workers that scale to zero, at the GPU cloud the account has connected."""

from toolkit.contract.base import now
from toolkit.contract.endpoints import Endpoint, EndpointCreate
from toolkit.contract.errors import ErrorCode, RequestError, not_found
from toolkit.contract.ids import Prefix, new_id
from toolkit.engine.core import Core
from toolkit.engine.stock import Stock
from toolkit.plugins.infrastructure import EndpointCreation, EndpointDeletion, EndpointState

DEFAULT_POOL = "ADA_24"


class Endpoints:
    """`/v1/endpoints`."""

    def __init__(self, core: Core) -> None:
        self._stock = Stock(core, "endpoints", "endpoint", Endpoint, EndpointCreation)

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
        endpoint = Endpoint(
            id=new_id(Prefix.ENDPOINT),
            created_at=now(),
            **{**request.model_dump(), "gpu_ids": request.gpu_ids or DEFAULT_POOL},
        )
        creation = EndpointCreation(
            name=endpoint.name,
            gpu_pool=endpoint.gpu_ids,
            workers_min=endpoint.workers_min,
            workers_max=endpoint.workers_max,
            image=endpoint.image,
            reference=endpoint.id,
        )
        state = await self._stock.create(account_id, endpoint, creation)
        if isinstance(state, EndpointState):
            await self._stock.save(endpoint, "ready", vendor_id=state.vendor_id)
        return endpoint

    async def get(self, account_id: str, endpoint_id: str) -> Endpoint:
        """One endpoint.

        Raises:
            RequestError: `NOT_FOUND`, for one that was deleted too.
        """
        endpoint, _ = await self._stock.get(account_id, endpoint_id)
        return endpoint

    async def list(self, account_id: str, limit: int, before: str | None) -> list[Endpoint]:
        """A page of endpoints, newest first."""
        return await self._stock.page(account_id, limit, before)

    async def delete(self, account_id: str, endpoint_id: str) -> Endpoint:
        """Destroy an endpoint at its vendor; the answer is its last state.

        Raises:
            RequestError: `NOT_FOUND`, or `CONFLICT` when the vendor did not do it.
        """
        return await self._stock.delete(
            account_id, endpoint_id, lambda vendor_id: EndpointDeletion(vendor_id=vendor_id)
        )
